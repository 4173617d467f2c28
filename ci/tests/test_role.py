"""Tests that the role in deploy/role.yaml may do what a deployment needs, and no more.

usage: TRANSLATED_TEMPLATE=FILE.json pytest ci/tests/test_role.py
FILE.json is the output of ci/translate.py. cfn-lint contains AWS's schemas, which list the actions
that CloudFormation needs for each type of resource.
"""

import re
from fnmatch import fnmatchcase

import policies
import pytest
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER
from policies import RESOURCES, ROOT, entries, is_allowed, template

STACK = "workspace-management-prod"
IAM = "arn:aws:iam::123456789012"
API = "arn:aws:apigateway:us-east-1::"
BUCKET = "arn:aws:s3:::artifacts"
OWN = policies.arns(STACK)

# The ARNs of the resources whose names do not begin with the stack's name.
ARNS = {
    "AWS::ApiGatewayV2::Api": [f"{API}/apis", f"{API}/apis/a1b2c3"],
    "AWS::ApiGatewayV2::ApiMapping": [f"{API}/domainnames/api.example.com/apimappings/a1b2c3"],
    "AWS::ApiGatewayV2::DomainName": [f"{API}/domainnames", f"{API}/domainnames/api.example.com"],
    "AWS::ApiGatewayV2::Stage": [f"{API}/apis/a1b2c3/stages", f"{API}/apis/a1b2c3/stages/$default"],
    "AWS::Lambda::Alias": [f"{OWN['Function']}:live"],
    "AWS::Lambda::Permission": [f"{OWN['Function']}:live"],
    "AWS::Lambda::Version": [OWN["Function"], f"{OWN['Function']}:7"],
    "AWS::Logs::MetricFilter": [OWN["LogGroup"]],
    "AWS::SNS::Subscription": ["*"],  # Its actions have no resources.
    "AWS::Route53::RecordSet": ["arn:aws:route53:::hostedzone/Z0123456789"],
}

# The ARNs for actions on resources of a different type.
OTHER_ARNS = {
    **dict.fromkeys(
        ["codedeploy:CreateDeployment", "codedeploy:GetDeployment", "codedeploy:GetDeploymentGroup"],
        OWN["FunctionDeploymentGroup"],
    ),
    **dict.fromkeys(
        ["codedeploy:GetApplicationRevision", "codedeploy:RegisterApplicationRevision"],
        OWN["ServerlessDeploymentApplication"],
    ),
    "codedeploy:GetDeploymentConfig": "arn:aws:codedeploy:us-east-1:123456789012:deploymentconfig:CodeDeployDefault.LambdaCanary10Percent5Minutes",
    "codedeploy:StopDeployment": "*",  # It has no resources.
    "dynamodb:UpdateTimeToLive": OWN["HistoryTable"],
    "iam:AttachRolePolicy": OWN["ReaderRole"],
    "iam:CreateServiceLinkedRole": f"{IAM}:role/aws-service-role/ops.apigateway.amazonaws.com/Name",
    "iam:DetachRolePolicy": OWN["ReaderRole"],
    "route53:GetChange": "arn:aws:route53:::change/C0123456789",
    "sns:Subscribe": OWN["AlarmTopic"],
    "sns:Unsubscribe": "*",
    "iam:GetRole": OWN["FunctionRole"],
    "s3:GetObject": f"{BUCKET}/key",
    "s3:GetObjectVersion": f"{BUCKET}/key",
}

# The role that each type of resource gets. Nothing gets the role of readers.
PASSED = {"AWS::Lambda::Function": ["FunctionRole", "RolloutRole"], "AWS::CodeDeploy::DeploymentGroup": ["RolloutRole"]}

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
    "provisioned concurrency": ["lambda:*teProvisionedConcurrencyConfig"],
    "servers of CodeDeploy": ["codedeploy:RegisterOnPremisesInstance"],
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
            yield from ((action, arn) for arn in arns_for(action, resource_type))


def arns_for(action, resource_type):
    """The ARNs of the resources on which CloudFormation performs an action for a type of resource."""
    if action == "iam:PassRole":
        return [OWN[name] for name in PASSED.get(resource_type, [])]
    if action in OTHER_ARNS:
        return [OTHER_ARNS[action]]
    return ARNS.get(resource_type) or [OWN[name] for name, it in RESOURCES.items() if it["Type"] == resource_type]


RESOURCE_TYPES = {resource["Type"] for resource in RESOURCES.values()}


def statements(stack=STACK):
    """The statements of the role that may deploy a stack."""
    return policies.statements(template("role.yaml", stack), "Role")


@pytest.mark.parametrize("resource_type", sorted(RESOURCE_TYPES))
def test_the_role_may_manage_the_resources_of_the_stack(resource_type):
    needed = list(needed_actions(resource_type))
    assert needed
    assert [f"{action} on {arn}" for action, arn in needed if not is_allowed(statements(), action, arn)] == []


@pytest.mark.parametrize("stack", [STACK, "boundary", "boundary-of", "deploy", "deploy-deploy"])
def test_the_role_may_not_change_its_boundary_or_the_roles_of_its_own_stack(stack):
    role = template("role.yaml", stack)
    name = role["Boundary"]["Properties"]["ManagedPolicyName"]
    # The second policy is the boundary of a stack whose name begins with the name of this stack.
    arns = [f"{IAM}:policy/{name}", f"{IAM}:policy/{name}-prod"]
    arns.append(f"{IAM}:policy{role['TablePolicy']['Properties']['Path']}{stack}-RecordsReader-TablePolicy-1A2B")
    # In the worst case, the stack with the roles has a name that begins with the deployed stack's.
    paths = [role[name]["Properties"]["Path"] for name in ["Role", "DoctorRole"]]
    arns += [f"{IAM}:role{path}{stack}-deploy-Role-1A2B" for path in paths]
    actions = [action for statement in statements() for action in entries(statement["Action"])]
    assert not any("*" in action for action in actions)
    actions = [action for action in actions if action.startswith("iam:")]
    assert len(actions) > 20
    pairs = [(action, arn) for action in actions for arn in arns]
    assert [pair for pair in pairs if is_allowed(statements(stack), *pair)] == []


def test_the_role_may_give_permissions_only_to_roles_with_the_boundary():
    boundary = {"StringEquals": {"iam:PermissionsBoundary": {"Ref": "Boundary"}}}
    for statement in statements():
        for action in entries(statement["Action"]):
            if re.fullmatch("iam:(Attach|Create|Put)Role.*", action):
                assert statement["Condition"] == boundary, action


def test_the_role_may_pass_roles_to_the_services_that_assume_them():
    (passing,) = [statement for statement in statements() if statement["Action"] == "iam:PassRole"]
    names = {name for roles in PASSED.values() for name in roles}
    trusted = [RESOURCES[name]["Properties"]["AssumeRolePolicyDocument"]["Statement"] for name in names]
    services = {service for (statement,) in trusted for service in entries(statement["Principal"]["Service"])}
    assert set(passing["Condition"]["StringEquals"]["iam:PassedToService"]) == services
    assert {name for name, arn in OWN.items() if policies.matches(passing, arn)} == names


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
    boundary = policies.statements(template("role.yaml", STACK), "Boundary")
    assert {statement["Effect"] for statement in boundary} == {"Allow"}
    assert is_allowed(boundary, f"dynamodb:{action}", OWN[table]) == expected


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
