"""Checks that the roles in deploy/role.yaml may do what a deployment and the scheduled check need, and nothing else.

usage: TRANSLATED_TEMPLATE=FILE.json pytest ci/tests/test_role.py
FILE.json is the output of ci/translate.py. The permissions that CloudFormation needs for each type
of resource are those in AWS's schemas, which cfn-lint contains.
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
ZONE = "Z0123456789"
ACCOUNT = "us-east-1:123456789012"
BUCKET_ARN = "arn:aws:s3:::workspace-management-deploy-artifactbucket-1a2b"

# The ARNs of the resources of each type in the stack STACK.
ARNS = {
    "AWS::ApiGatewayV2::Api": ["arn:aws:apigateway:us-east-1::/apis", "arn:aws:apigateway:us-east-1::/apis/a1b2c3"],
    "AWS::ApiGatewayV2::ApiMapping": ["arn:aws:apigateway:us-east-1::/domainnames/api.example.com/apimappings/a1b2c3"],
    "AWS::ApiGatewayV2::DomainName": ["arn:aws:apigateway:us-east-1::/domainnames", "arn:aws:apigateway:us-east-1::/domainnames/api.example.com"],
    "AWS::ApiGatewayV2::Stage": ["arn:aws:apigateway:us-east-1::/apis/a1b2c3/stages", "arn:aws:apigateway:us-east-1::/apis/a1b2c3/stages/$default"],
    "AWS::CloudWatch::Alarm": [f"arn:aws:cloudwatch:{ACCOUNT}:alarm:{STACK}-LatencyAlarm-1A2B"],
    "AWS::CloudWatch::Dashboard": [f"arn:aws:cloudwatch::123456789012:dashboard/{STACK}-us-east-1"],
    "AWS::DynamoDB::Table": [f"arn:aws:dynamodb:{ACCOUNT}:table/{STACK}-TeamsTable-1A2B"],
    "AWS::IAM::ManagedPolicy": [f"arn:aws:iam::123456789012:policy/{STACK}-RecordsReader-1A2B"],
    "AWS::IAM::Role": [f"arn:aws:iam::123456789012:role/{STACK}-FunctionRole-1A2B"],
    "AWS::Lambda::Function": [f"arn:aws:lambda:{ACCOUNT}:function:{STACK}-Function-1A2B"],
    "AWS::Lambda::Permission": [f"arn:aws:lambda:{ACCOUNT}:function:{STACK}-Function-1A2B"],
    "AWS::Logs::LogGroup": [
        f"arn:aws:logs:{ACCOUNT}:log-group:{STACK}-LogGroup-1A2B",
        f"arn:aws:logs:{ACCOUNT}:log-group:/aws/vendedlogs/{STACK}-api-0a1b2c",
    ],
    "AWS::Logs::MetricFilter": [f"arn:aws:logs:{ACCOUNT}:log-group:{STACK}-LogGroup-1A2B"],
    "AWS::Route53::RecordSet": [f"arn:aws:route53:::hostedzone/{ZONE}"],
}

# Actions of other resources than those of the type.
OTHER_ARNS = {
    "iam:AttachRolePolicy": [f"arn:aws:iam::123456789012:role/{STACK}-ReaderRole-1A2B"],
    "iam:CreateServiceLinkedRole": ["arn:aws:iam::123456789012:role/aws-service-role/contributorinsights.dynamodb.amazonaws.com/Name"],
    "iam:DetachRolePolicy": [f"arn:aws:iam::123456789012:role/{STACK}-ReaderRole-1A2B"],
    "iam:PassRole": [f"arn:aws:iam::123456789012:role/{STACK}-FunctionRole-1A2B"],
    "route53:GetChange": ["arn:aws:route53:::change/C0123456789"],
    "s3:GetObject": [f"{BUCKET_ARN}/key"],
    "s3:GetObjectVersion": [f"{BUCKET_ARN}/key"],
}

# The permissions in AWS's schemas for what template.yaml does not use.
UNUSED = {
    "AWS::DynamoDB::Table": [
        "dynamodb:*Item dynamodb:Query dynamodb:Scan",  # imports
        "dynamodb:*Import* s3:*",
        "dynamodb:*KinesisStreamingDestination kinesis:*",
        "dynamodb:*TableReplica",
        "dynamodb:DeleteTable",  # the tables are retained
        "dynamodb:PutResourcePolicy dynamodb:DeleteResourcePolicy",
        "dynamodb:UpdateTimeToLive",
        "kms:*",  # AWS manages the key, and its key policy allows the account to use it through DynamoDB
        "logs:*",
    ],
    "AWS::IAM::ManagedPolicy": ["iam:*GroupPolicy iam:*UserPolicy"],
    "AWS::IAM::Role": ["iam:DeleteRolePermissionsBoundary"],
    "AWS::Lambda::Function": [
        "ec2:* elasticfilesystem:* s3files:* kms:*",
        "lambda:*CodeSigningConfig lambda:*RecursionConfig lambda:*ScalingConfig lambda:*RuntimeManagementConfig",
        "lambda:AssociateRuntimeAlias lambda:GetLayerVersion lambda:PassCapacityProvider lambda:PublishVersion",
    ],
    "AWS::Logs::LogGroup": [
        "firehose:* s3:* logs:*BearerTokenAuthentication logs:*KmsKey logs:*LogGroupDeletionProtection",
        "logs:*DataProtectionPolicy logs:*IndexPolicy logs:DeleteResourcePolicy",
    ],
}

# Those of the unused permissions that CloudFormation needs anyway, because it reads everything.
READ = [
    "dynamodb:DescribeKinesisStreamingDestination",
    "lambda:GetFunctionCodeSigningConfig",
    "lambda:GetFunctionRecursionConfig",
    "lambda:GetFunctionScalingConfig",
    "lambda:GetRuntimeManagementConfig",
    "logs:GetDataProtectionPolicy",
]

# What the schemas lack: calls of SAM and workspacectl, tags, and the API's access log.
STACK_ARN = f"arn:aws:cloudformation:{ACCOUNT}:stack/{STACK}/0a1b2c"
FURTHER = [
    (STACK_ARN, "cloudformation:CreateChangeSet DescribeChangeSet ExecuteChangeSet DescribeStackEvents DescribeStacks GetTemplateSummary DeleteStack"),
    ("arn:aws:cloudformation:us-east-1:aws:transform/Serverless-2016-10-31", "cloudformation:CreateChangeSet"),
    (f"{BUCKET_ARN}/key", "s3:GetObject PutObject"),
    (ARNS["AWS::IAM::ManagedPolicy"][0], "iam:TagPolicy UntagPolicy"),
    (ARNS["AWS::Lambda::Function"][0], "lambda:GetFunctionConfiguration ListTags"),
    # https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-logging.html
    ("*", "logs:CreateLogDelivery DeleteLogDelivery GetLogDelivery ListLogDeliveries UpdateLogDelivery"),
    ("*", "logs:DescribeLogGroups DescribeResourcePolicies PutResourcePolicy"),
    ("arn:aws:apigateway:us-east-1::/tags/arn%3Aaws%3Aapigateway", "apigateway:POST"),
]


def further():
    for arn, actions in FURTHER:
        service, _, names = actions.partition(":")
        yield from ((f"{service}:{name}", arn) for name in names.split())


def for_workspacectl(*commands):
    """What commands need, by ctl/permissions.json."""
    permissions = json.loads((ROOT / "ctl/permissions.json").read_text(encoding="utf-8"))
    for command in commands:
        for action, resources in permissions[command].items():
            for resource in resources:
                if resource == "STACK":
                    yield action, STACK_ARN
                elif resource.startswith("transform/"):
                    yield action, f"arn:aws:cloudformation:us-east-1:aws:{resource}"
                else:
                    yield action, f"arn:aws:dynamodb:{ACCOUNT}:table/{STACK}-{resource}-1A2B"


def is_unused(kind, action):
    patterns = " ".join(UNUSED.get(kind, [])).split()
    return action not in READ and any(fnmatchcase(action, pattern) for pattern in patterns)


def in_schema(kind):
    """The permissions with which CloudFormation manages a resource. Listing all of them is not part of that."""
    handlers = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema["handlers"]
    return {action for name, handler in handlers.items() if name != "list" for action in handler["permissions"]}


def for_resources(kind):
    for action in in_schema(kind):
        # apigateway:TagResource is not an action of IAM, and an OpenAPI document in S3 is not used.
        if is_unused(kind, action) or (kind.startswith("AWS::ApiGatewayV2::") and re.match("apigateway:(Unt|T)ag|s3:", action)):
            continue
        for arn in OTHER_ARNS.get(action, ARNS[kind]):
            yield action, arn


RESOURCES = json.loads(Path(os.environ["TRANSLATED_TEMPLATE"]).read_text(encoding="utf-8"))["Resources"]
KINDS = {resource["Type"] for resource in RESOURCES.values()}
TEMPLATE = yaml_parse((ROOT / "deploy/role.yaml").read_text(encoding="utf-8"))
ROLE = TEMPLATE["Resources"]["Role"]["Properties"]
DOCTOR = TEMPLATE["Resources"]["DoctorRole"]["Properties"]


def resolved(value):
    """A value of the template for the stack STACK and the hosted zone ZONE."""
    parameters = {"AWS::Partition": "aws", "AWS::Region": "us-east-1", "AWS::AccountId": "123456789012", "DeployedStack": STACK, "HostedZoneId": ZONE, "ArtifactBucket.Arn": BUCKET_ARN}
    if isinstance(value, list):
        return [resolved(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if "Fn::Sub" in value:
        return re.sub(r"\$\{([^}]+)\}", lambda match: parameters[match[1]], value["Fn::Sub"])
    if "Fn::If" in value:
        return resolved(value["Fn::If"][1])
    return {name: resolved(entry) for name, entry in value.items()}


def statements(role):
    return [statement for policy in resolved(role["Policies"]) for statement in policy["PolicyDocument"]["Statement"]]


POLICIES = [policy["PolicyDocument"] for policy in resolved(ROLE["Policies"])]
STATEMENTS = statements(ROLE)


def entries(value):
    return value if isinstance(value, list) else [value]


def is_allowed(action, arn, role=ROLE):
    return any(
        action in entries(statement["Action"]) and any(fnmatchcase(arn, pattern) for pattern in entries(statement["Resource"]))
        for statement in statements(role)
    )


def test_the_resources_of_every_type_in_the_template_are_known():
    assert KINDS == ARNS.keys()


@pytest.mark.parametrize("kind", sorted(ARNS))
def test_the_role_may_manage_the_resources_of_the_stack(kind):
    needed = list(for_resources(kind))
    assert needed
    assert [f"{action} on {arn}" for action, arn in needed if not is_allowed(action, arn)] == []


def test_the_role_may_run_sam_and_workspacectl():
    needed = [*further(), *for_workspacectl("doctor", "set")]
    assert [f"{action} on {arn}" for action, arn in needed if not is_allowed(action, arn)] == []


def test_the_role_may_do_nothing_else():
    needed = {action for kind in ARNS for action, _ in for_resources(kind)}
    needed |= {action for action, _ in [*further(), *for_workspacectl("doctor", "set")]}
    granted = {action for statement in STATEMENTS for action in entries(statement["Action"])}
    assert granted - needed == set()
    assert all(statement["Effect"] == "Allow" and "*" not in action for statement in STATEMENTS for action in entries(statement["Action"]))


def test_every_unused_permission_is_one_of_the_schema():
    for kind, lines in UNUSED.items():
        for pattern in " ".join(lines).split():
            assert any(fnmatchcase(action, pattern) for action in in_schema(kind)), f"{kind} has no permission {pattern}"


def test_the_role_may_not_change_other_stacks():
    # Only these actions have no resource in which the name of the stack could be.
    without_name = r"apigateway:|route53:|logs:\w*(LogDeliver|ResourcePolic|LogGroups)|cloudwatch:DescribeAlarms|iam:CreateServiceLinkedRole"
    needed = [pair for kind in ARNS for pair in for_resources(kind)] + [*further(), *for_workspacectl("doctor", "set")]
    others = [(action, arn.replace(STACK, "another-stack")) for action, arn in needed if STACK in arn and not re.match(without_name, action)]
    assert len(others) > 50
    assert [f"{action} on {arn}" for action, arn in others if is_allowed(action, arn)] == []


def test_the_role_may_only_store_packages_in_its_own_bucket():
    buckets = [statement["Resource"] for statement in STATEMENTS if any(action.startswith("s3:") for action in entries(statement["Action"]))]
    assert buckets == [f"{BUCKET_ARN}/*"]
    # CloudFormation needs the last package for a rollback, and the versions show what was replaced.
    bucket = TEMPLATE["Resources"]["ArtifactBucket"]
    assert bucket["DeletionPolicy"] == "RetainExceptOnCreate"
    assert bucket["Properties"]["VersioningConfiguration"] == {"Status": "Enabled"}
    assert "LifecycleConfiguration" not in bucket["Properties"]
    for action in ["DeleteObject", "DeleteObjectVersion", "PutBucketPolicy", "PutLifecycleConfiguration", "PutBucketVersioning"]:
        assert not is_allowed(f"s3:{action}", BUCKET_ARN) and not is_allowed(f"s3:{action}", f"{BUCKET_ARN}/key"), action


def test_the_bucket_requires_tls():
    policy = TEMPLATE["Resources"]["ArtifactBucketPolicy"]["Properties"]
    assert policy["Bucket"] == {"Ref": "ArtifactBucket"}
    [statement] = policy["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", "s3:*")
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert resolved(statement["Resource"][1]) == f"{BUCKET_ARN}/*"


def test_roles_are_limited_by_conditions():
    conditions = {statement["Sid"]: statement["Condition"] for statement in STATEMENTS if "Condition" in statement}
    services = ["ops.apigateway.amazonaws.com", "contributorinsights.dynamodb.amazonaws.com"]
    assert conditions == {
        "RolesWithBoundary": {"StringEquals": {"iam:PermissionsBoundary": {"Ref": "Boundary"}}},
        "PassRole": {"StringEquals": {"iam:PassedToService": "lambda.amazonaws.com"}},
        "ServiceLinkedRoles": {"StringEquals": {"iam:AWSServiceName": services}},
    }


def test_the_boundary_allows_what_the_roles_of_the_stack_need_and_nothing_else():
    boundary = TEMPLATE["Resources"]["Boundary"]["Properties"]["PolicyDocument"]["Statement"]
    limit = {action for statement in boundary for action in entries(statement["Action"])}
    policies = [policy["PolicyDocument"] for policy in resolved(RESOURCES["FunctionRole"]["Properties"]["Policies"])]
    policies += [RESOURCES[name]["Properties"]["PolicyDocument"] for name in ["RecordsReader", "RecordsFollower"]]
    needed = {action for policy in policies for statement in policy["Statement"] for action in entries(statement["Action"])}
    assert {action for action in limit if not action.startswith("kms:")} == needed
    conditions = {statement["Sid"]: statement["Condition"] for statement in boundary if "Condition" in statement}
    assert resolved(conditions) == {"TableKey": {"StringEquals": {"kms:ViaService": "dynamodb.us-east-1.amazonaws.com"}}}
    resources = {statement["Sid"]: resolved(statement["Resource"]) for statement in boundary}
    assert resources == {
        "Records": f"arn:aws:dynamodb:{ACCOUNT}:table/{STACK}-*",
        "Log": f"arn:aws:logs:{ACCOUNT}:log-group:{STACK}-*",
        "Traces": "*",
        "TableKey": "*",
    }
    for name, resource in RESOURCES.items():
        if resource["Type"] == "AWS::IAM::Role":
            assert resource["Properties"]["PermissionsBoundary"]["Fn::If"][0] == "HasPermissionsBoundary", name


@pytest.mark.parametrize("stack", [STACK, "boundary", "boundary-of", "deploy", "deploy-deploy"])
def test_the_role_may_not_change_its_boundary_or_the_roles_of_its_own_stack(stack, monkeypatch):
    monkeypatch.setitem(globals(), "STACK", stack)
    name = resolved(TEMPLATE["Resources"]["Boundary"]["Properties"]["ManagedPolicyName"])
    assert name == resolved(TEMPLATE["Outputs"]["PermissionsBoundary"]["Value"])
    assert name == f"boundary.{stack}"
    # Also not that of another stack, whose name begins with that of this one.
    arns = [f"arn:aws:iam::123456789012:policy/{name}", f"arn:aws:iam::123456789012:policy/{name}-prod"]
    # The worst name for the stack of the roles is one that begins with that of the deployed stack.
    arns += [f"arn:aws:iam::123456789012:role{role['Path']}{stack}-deploy-Role-1A2B" for role in [ROLE, DOCTOR]]
    actions = {action for statement in STATEMENTS for action in entries(statement["Action"]) if action.startswith("iam:")}
    assert len(actions) > 20
    assert [f"{action} on {arn}" for action in actions for arn in arns if is_allowed(action, arn)] == []


def test_the_role_may_not_delete_records_or_read_other_tables():
    table = f"arn:aws:dynamodb:{ACCOUNT}:table/{STACK}-TeamsTable-1A2B"
    for action in ["DeleteTable", "DeleteItem", "PutItem", "GetItem", "Query", "Scan"]:
        assert not is_allowed(f"dynamodb:{action}", table), action


def test_the_policies_are_within_the_limit_for_a_role():
    # https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html: without white space
    assert sum(len(json.dumps(policy, separators=(",", ":"))) for policy in POLICIES) < 10_240


def test_the_role_of_the_scheduled_check_may_run_doctor_and_nothing_else():
    needed = list(for_workspacectl("doctor"))
    assert [f"{action} on {arn}" for action, arn in needed if not is_allowed(action, arn, DOCTOR)] == []
    granted = {action for statement in statements(DOCTOR) for action in entries(statement["Action"])}
    assert granted == {action for action, _ in needed}
    others = [arn.replace(STACK, "another-stack") for _, arn in needed]
    assert [f"{action} on {arn}" for action in granted for arn in others if is_allowed(action, arn, DOCTOR)] == []
    scanned = {arn for arn in {arn for _, arn in needed} if is_allowed("dynamodb:Scan", arn, DOCTOR)}
    assert scanned == {f"arn:aws:dynamodb:{ACCOUNT}:table/{STACK}-KeysTable-1A2B"}
    assert all(statement["Effect"] == "Allow" for statement in statements(DOCTOR))


@pytest.mark.parametrize(("role", "parameter"), [(ROLE, "Subject"), (DOCTOR, "DoctorSubject")], ids=["deployment", "doctor"])
def test_only_the_environment_may_assume_the_role(role, parameter):
    [statement] = role["AssumeRolePolicyDocument"]["Statement"]
    issuer = "token.actions.githubusercontent.com"
    assert statement["Action"] == "sts:AssumeRoleWithWebIdentity"
    assert statement["Condition"] == {"StringEquals": {f"{issuer}:aud": "sts.amazonaws.com", f"{issuer}:sub": {"Ref": parameter}}}
    pattern = TEMPLATE["Parameters"][parameter]["AllowedPattern"]
    for subject in ["repo:owner/repository:environment:production", "repo:owner@1/repository@2:environment:production"]:
        assert re.fullmatch(pattern, subject), subject
    for subject in ["repo:owner/repository:ref:refs/heads/main", "repo:owner/repository:*", "repo:owner/*:environment:production"]:
        assert not re.fullmatch(pattern, subject), subject


def test_there_is_no_role_of_the_scheduled_check_without_its_subject():
    assert TEMPLATE["Parameters"]["DoctorSubject"]["Default"] == ""
    assert not re.fullmatch(TEMPLATE["Parameters"]["Subject"]["AllowedPattern"], "")
    assert TEMPLATE["Conditions"]["HasDoctor"] == {"Fn::Not": [{"Fn::Equals": [{"Ref": "DoctorSubject"}, ""]}]}
    for entry in [TEMPLATE["Resources"]["DoctorRole"], TEMPLATE["Outputs"]["DoctorRoleArn"]]:
        assert entry["Condition"] == "HasDoctor"
