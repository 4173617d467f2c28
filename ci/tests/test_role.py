"""Tests that the role in deploy/role.yaml may do what a deployment needs, and no more.

usage: TRANSLATED_TEMPLATE=FILE.json pytest ci/tests/test_role.py
FILE.json is the output of ci/translate.py. cfn-lint contains AWS's schemas, which list the actions
that CloudFormation needs for each type of resource.
"""

import json
import os
import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER
from samcli.yamlhelper import yaml_parse

ROOT = Path(__file__).parents[2]
STACK = "workspace-management-prod"
ACCOUNT = "us-east-1:123456789012"
IAM = "arn:aws:iam::123456789012"
API = "arn:aws:apigateway:us-east-1::"
BUCKET = "arn:aws:s3:::artifacts"

# The ARNs of the resources of each type in the stack STACK.
ARNS = {
    "AWS::ApiGatewayV2::Api": [f"{API}/apis", f"{API}/apis/a1b2c3"],
    "AWS::ApiGatewayV2::ApiMapping": [f"{API}/domainnames/api.example.com/apimappings/a1b2c3"],
    "AWS::ApiGatewayV2::DomainName": [f"{API}/domainnames", f"{API}/domainnames/api.example.com"],
    "AWS::ApiGatewayV2::Stage": [f"{API}/apis/a1b2c3/stages", f"{API}/apis/a1b2c3/stages/$default"],
    "AWS::CloudWatch::Alarm": [f"arn:aws:cloudwatch:{ACCOUNT}:alarm:{STACK}-LatencyAlarm-1A2B"],
    "AWS::CloudWatch::Dashboard": [
        f"arn:aws:cloudwatch::123456789012:dashboard/{STACK}-us-east-1",
    ],
    "AWS::DynamoDB::Table": [f"arn:aws:dynamodb:{ACCOUNT}:table/{STACK}-TeamsTable-1A2B"],
    "AWS::IAM::ManagedPolicy": [f"{IAM}:policy/{STACK}-RecordsReader-1A2B"],
    "AWS::IAM::Role": [f"{IAM}:role/{STACK}-FunctionRole-1A2B"],
    "AWS::Lambda::Function": [f"arn:aws:lambda:{ACCOUNT}:function:{STACK}-Function-1A2B"],
    "AWS::Lambda::Permission": [f"arn:aws:lambda:{ACCOUNT}:function:{STACK}-Function-1A2B"],
    "AWS::Logs::LogGroup": [
        f"arn:aws:logs:{ACCOUNT}:log-group:{STACK}-LogGroup-1A2B",
        f"arn:aws:logs:{ACCOUNT}:log-group:/aws/vendedlogs/{STACK}-api-0a1b2c",
    ],
    "AWS::Logs::MetricFilter": [f"arn:aws:logs:{ACCOUNT}:log-group:{STACK}-LogGroup-1A2B"],
    "AWS::SNS::Subscription": ["*"],  # Its actions have no resources.
    "AWS::SNS::Topic": [f"arn:aws:sns:{ACCOUNT}:{STACK}-AlarmTopic-1A2B"],
    "AWS::Route53::RecordSet": ["arn:aws:route53:::hostedzone/Z0123456789"],
}

# The ARNs for actions on resources of a different type.
OTHER_ARNS = {
    "dynamodb:UpdateTimeToLive": f"arn:aws:dynamodb:{ACCOUNT}:table/{STACK}-HistoryTable-1A2B",
    "iam:AttachRolePolicy": f"{IAM}:role/{STACK}-ReaderRole-1A2B",
    "iam:CreateServiceLinkedRole": f"{IAM}:role/aws-service-role/ops.apigateway.amazonaws.com/Name",
    "iam:DetachRolePolicy": f"{IAM}:role/{STACK}-ReaderRole-1A2B",
    "iam:PassRole": f"{IAM}:role/{STACK}-FunctionRole-1A2B",
    "route53:GetChange": "arn:aws:route53:::change/C0123456789",
    "sns:Subscribe": f"arn:aws:sns:{ACCOUNT}:{STACK}-AlarmTopic-1A2B",
    "sns:Unsubscribe": "*",
    "iam:GetRole": f"{IAM}:role/{STACK}-FunctionRole-1A2B",
    "s3:GetObject": f"{BUCKET}/key",
    "s3:GetObjectVersion": f"{BUCKET}/key",
}

# The actions in the schemas that a deployment does not need, by purpose. None of them is for tags.
UNUSED = {
    "imports of records": ["dynamodb:*Item", "dynamodb:Query", "dynamodb:Scan", "dynamodb:*Import*"],
    "global tables": ["dynamodb:*TableReplica"],
    "tables and log groups, which the template retains": ["dynamodb:DeleteTable", "logs:PutLogGroupDeletionProtection"],
    "streams in Kinesis": ["dynamodb:*ableKinesis*", "dynamodb:UpdateKinesis*", "kinesis:*"],
    "policies of tables": ["dynamodb:PutResourcePolicy", "dynamodb:DeleteResourcePolicy"],
    "Contributor Insights": ["dynamodb:UpdateContributorInsights"],
    "functions in a VPC": ["ec2:*"],
    "functions with a file system": ["elasticfilesystem:*", "s3files:*"],
    "log delivery to Firehose": ["firehose:*"],
    "policies of groups and users": ["iam:*GroupPolicy", "iam:*UserPolicy"],
    "roles without a boundary": ["iam:DeleteRolePermissionsBoundary"],
    "keys of customers": ["kms:*", "logs:*KmsKey"],
    "signed code": ["lambda:DeleteFunctionCodeSigningConfig", "lambda:GetCodeSigningConfig"],
    "settings of runtimes, recursion and scaling": ["lambda:AssociateRuntimeAlias", "lambda:Put*Config"],
    "layers": ["lambda:GetLayerVersion"],
    "Managed Instances": ["lambda:PassCapacityProvider"],
    "versions": ["lambda:PublishVersion"],
    "masked logs and messages": ["*:PutDataProtectionPolicy", "logs:DeleteDataProtectionPolicy"],
    "indexes of logs": ["logs:PutIndexPolicy", "logs:DeleteIndexPolicy"],
    "the policy of all log groups of the account": ["logs:DeleteResourcePolicy"],
    "log groups that accept tokens": ["logs:PutBearerTokenAuthentication"],
    "APIs that are read from S3": ["s3:GetObjectMetadata", "s3:ListBucket", "s3:REST.PUT.OBJECT", "s3:getObject"],
}
UNUSED = [pattern for patterns in UNUSED.values() for pattern in patterns]
assert not any("tag" in pattern.lower() for pattern in UNUSED)


def needed_actions(resource_type):
    """The actions that CloudFormation needs to manage resources of a type, each with an ARN."""
    handlers = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", resource_type).schema["handlers"]
    # CloudFormation lists resources only for imports.
    actions = {
        action
        for name, handler in handlers.items()
        if name != "list"
        for action in handler["permissions"]
    }
    for action in sorted(actions):
        # For tables, the schema contains actions on the logs of imports.
        if resource_type == "AWS::DynamoDB::Table" and action.startswith("logs:"):
            continue
        if not any(fnmatchcase(action, pattern) for pattern in UNUSED):
            arns = [OTHER_ARNS[action]] if action in OTHER_ARNS else ARNS[resource_type]
            yield from ((action, arn) for arn in arns)


ROLE = yaml_parse((ROOT / "deploy/role.yaml").read_text(encoding="utf-8"))["Resources"]
TRANSLATED = json.loads(Path(os.environ["TRANSLATED_TEMPLATE"]).read_text(encoding="utf-8"))
RESOURCE_TYPES = {resource["Type"] for resource in TRANSLATED["Resources"].values()}


def policies(stack=STACK):
    """The policy documents of the role that may deploy a stack."""
    policies = evaluated(ROLE["Role"]["Properties"]["Policies"], stack)
    # The condition is true during the first deployment.
    policies = [policy["Fn::If"][1] if "Fn::If" in policy else policy for policy in policies]
    return [policy["PolicyDocument"] for policy in policies]


def evaluated(value, stack=STACK):
    """A value in which each `Fn::Sub` is a string."""
    parameters = {
        "AWS::Partition": "aws",
        "AWS::Region": "us-east-1",
        "AWS::AccountId": "123456789012",
        "DeployedStack": stack,
        "HostedZoneId": "Z0123456789",
        "ArtifactBucket.Arn": BUCKET,
    }
    text = json.dumps(value)
    text = re.sub(r"\$\{([^}]+)\}", lambda match: parameters[match[1]], text)
    text = re.sub(r'\{"Fn::Sub": ("[^"]*")\}', r"\1", text)
    return json.loads(text)


def entries(value):
    return value if isinstance(value, list) else [value]


def statements(stack=STACK):
    return [statement for policy in policies(stack) for statement in policy["Statement"]]


def is_allowed(action, arn, stack=STACK):
    return any(
        action in entries(statement["Action"])
        and any(fnmatchcase(arn, pattern) for pattern in entries(statement["Resource"]))
        for statement in statements(stack)
    )


@pytest.mark.parametrize("resource_type", sorted(RESOURCE_TYPES))
def test_the_role_may_manage_the_resources_of_the_stack(resource_type):
    needed = list(needed_actions(resource_type))
    assert needed
    assert [f"{action} on {arn}" for action, arn in needed if not is_allowed(action, arn)] == []


@pytest.mark.parametrize("stack", [STACK, "boundary", "boundary-of", "deploy", "deploy-deploy"])
def test_the_role_may_not_change_its_boundary_or_the_roles_of_its_own_stack(stack):
    name = ROLE["Boundary"]["Properties"]["ManagedPolicyName"]["Fn::Sub"]
    name = name.replace("${DeployedStack}", stack)
    # The second policy is the boundary of a stack whose name begins with the name of this stack.
    arns = [f"{IAM}:policy/{name}", f"{IAM}:policy/{name}-prod"]
    # In the worst case, the stack with the roles has a name that begins with the deployed stack's.
    paths = [ROLE[role]["Properties"]["Path"] for role in ["Role", "DoctorRole"]]
    arns += [f"{IAM}:role{path}{stack}-deploy-Role-1A2B" for path in paths]
    actions = [action for statement in statements() for action in entries(statement["Action"])]
    # `is_allowed` does not support patterns in actions.
    assert not any("*" in action for action in actions)
    actions = [action for action in actions if action.startswith("iam:")]
    assert len(actions) > 20
    pairs = [(action, arn) for action in actions for arn in arns]
    assert [pair for pair in pairs if is_allowed(*pair, stack)] == []


def test_the_role_may_give_permissions_only_to_roles_with_the_boundary():
    boundary = {"StringEquals": {"iam:PermissionsBoundary": {"Ref": "Boundary"}}}
    for statement in statements():
        for action in entries(statement["Action"]):
            if re.fullmatch("iam:(Attach|Create|Put)Role.*", action):
                assert statement["Condition"] == boundary, action


@pytest.mark.parametrize(
    "action, table, expected",
    [
        ("BatchGetItem", "KeysTable", True),
        ("GetItem", "KeysTable", False),
        ("Scan", "KeysTable", False),
        ("PutItem", "KeysTable", False),
        ("UpdateItem", "OrganizationsTable", False),
        ("PutItem", "OrganizationsTable", False),
        ("BatchGetItem", "OrganizationsTable", True),
        ("Scan", "TeamsTable", True),
        ("PutItem", "TeamsTable", True),
        ("DeleteItem", "TeamsTable", False),
        ("PutItem", "HistoryTable", False),
        ("Query", "HistoryTable", False),
    ],
)
def test_the_boundary_lets_only_operators_write_organizations_api_keys_and_history(action, table, expected):
    arn = f"arn:aws:dynamodb:{ACCOUNT}:table/{STACK}-{table}-1A2B"
    effects = set()
    for statement in evaluated(ROLE["Boundary"]["Properties"]["PolicyDocument"]["Statement"]):
        patterns = entries(statement.get("Action", statement.get("NotAction")))
        has_action = any(fnmatchcase(f"dynamodb:{action}", pattern) for pattern in patterns)
        if has_action == ("Action" in statement) and fnmatchcase(arn, statement["Resource"]):
            effects.add(statement["Effect"])
    assert (effects == {"Allow"}) == expected


def test_security_md_names_each_statement_that_allows_changes():
    text = (ROOT / ".github/SECURITY.md").read_text(encoding="utf-8")
    section = text.split("## What GitHub's role can do")[1].split("\n## ")[0]
    read = re.compile("[a-z0-9]+:(Describe|Get|List|Scan)")
    changing = {
        statement["Sid"]
        for statement in statements()
        if not all(read.match(action) for action in entries(statement["Action"]))
    }
    named = {name for line in section.splitlines() if line.startswith("| ") for name in re.findall("`(.+?)`", line.split("|")[2])}
    assert named - {"Keys"} == changing


def test_the_role_may_not_change_a_stack_with_a_longer_name():
    arns = [f"{IAM}:role/{STACK}-reader-FunctionRole-1A2B", f"arn:aws:lambda:{ACCOUNT}:function:{STACK}-reader-Function-1A2B"]
    for action in ["iam:PassRole", "iam:UpdateAssumeRolePolicy", "lambda:UpdateFunctionCode"]:
        assert not any(is_allowed(action, arn) for arn in arns), action


def test_the_policies_are_within_the_limit_for_a_role():
    # https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html: no white space
    assert sum(len(json.dumps(policy, separators=(",", ":"))) for policy in policies()) < 10_240
