"""Tests that the policies in deploy/ cover the resources of one stack, and nothing of another in the same account.

usage: TRANSLATED_TEMPLATE=FILE.json pytest ci/tests/test_names.py
"""

import json
import re
import tomllib
from fnmatch import fnmatchcase
from itertools import permutations

import pytest
from policies import PLACE, RESOURCES, ROOT, TEMPLATES, all_arns, arns, documents, entries, evaluated, is_allowed, matches, statements, template

SAMCONFIG = tomllib.loads((ROOT / "samconfig.toml").read_text(encoding="utf-8"))
STACKS = [it["global"]["parameters"]["stack_name"] for it in SAMCONFIG.values() if isinstance(it, dict)]
# A prefix, and names that contain what follows the stack's name in patterns.
NAMES = sorted({*STACKS, "workspace-management", "workspace-management-keystable", "workspace-management-us-east-1"})

# Patterns for what several stacks share: APIs, alarms that are listed, CodeDeploy's settings, DNS changes and packages.
SHARED = {
    "arn:aws:apigateway:us-east-1::/apis/*",
    "arn:aws:apigateway:us-east-1::/domainnames/*",
    "arn:aws:apigateway:us-east-1::/tags/*",
    "arn:aws:cloudwatch:us-east-1:123456789012:alarm:*",
    "arn:aws:codedeploy:us-east-1:123456789012:deploymentconfig:CodeDeployDefault.Lambda*",
    "arn:aws:iam::123456789012:role/aws-service-role/*",
    "arn:aws:route53:::change/*",
    "arn:aws:s3:::artifacts/*",
}


def patterns(file, stack):
    """The ARNs, with wildcards, in a template for a stack."""
    return {text for text in re.findall('"(arn:[^"]+)"', json.dumps(template(file, stack))) if text not in SHARED}


def test_samconfig_has_two_stacks():
    assert len(set(STACKS)) == 2


@pytest.mark.parametrize("file", sorted(TEMPLATES))
def test_no_policy_of_a_stack_matches_a_resource_of_another(file):
    for stack, other in permutations(NAMES, 2):
        found = patterns(file, stack)
        assert [pattern for pattern in found if "*" in pattern and stack not in pattern] == []
        assert [(pattern, arn) for pattern in found for arn in all_arns(other) if fnmatchcase(arn, pattern)] == []


@pytest.mark.parametrize("stack", NAMES)
@pytest.mark.parametrize("file, policy", [("role.yaml", "Role"), ("operators.yaml", "Read")])
def test_policies_match_the_resources_of_their_stack(file, policy, stack):
    own = arns(stack)
    if policy == "Read":
        names = {"Function", "AlarmTopic", "LogGroup", "ApiLogGroup"}
        own = {name: arn for name, arn in own.items() if name in names or RESOURCES[name]["Type"] == "AWS::DynamoDB::Table"}
    assert len(own) > 10
    specific = [it for it in statements(template(file, stack), policy) if it["Resource"] != "*"]
    assert [name for name, arn in own.items() if not any(matches(it, arn) for it in specific)] == []


def test_statements_about_all_tables_name_all():
    tables = {name for name, resource in RESOURCES.items() if resource["Type"] == "AWS::DynamoDB::Table"}
    found = 0
    for file, policy in [("role.yaml", "Role"), ("role.yaml", "DoctorRole"), ("operators.yaml", "Read"), ("operators.yaml", "Operate")]:
        for statement in statements(template(file, "stack"), policy):
            if statement["Sid"] in {"Tables", "WorkspacectlTables", "WorkspacectlChanges"}:
                assert {name for name in tables if matches(statement, arns("stack")[name])} == tables, statement["Sid"]
                found += 1
    assert found == 4


@pytest.mark.parametrize("file", sorted(TEMPLATES))
def test_stack_names_cannot_contain_logical_ids(file):
    (name,) = [name for name in TEMPLATES[file]["Parameters"] if name.endswith("Stack")]
    pattern = TEMPLATES[file]["Parameters"][name]["AllowedPattern"]
    assert all(re.search(pattern, stack) for stack in NAMES)
    assert not re.search(pattern, "workspace-management-KeysTable-x")
    assert all(re.search("[A-Z]", logical_id) for logical_id in RESOURCES)


# The longest names. https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html: white space does not count.
@pytest.mark.parametrize("partition, region", [("aws", "ap-southeast-1"), ("aws-us-gov", "us-gov-west-1")])
def test_policies_are_within_iams_limits(partition, region):
    place = {**PLACE, "AWS::Partition": partition, "AWS::Region": region}
    for file in TEMPLATES:
        for name, resource in template(file, "s" * 32, place).items():
            document = resource["Properties"].get("PolicyDocument", resource["Properties"].get("Policies"))
            limit = {"AWS::IAM::ManagedPolicy": 6_144, "AWS::IAM::Role": 10_240}.get(resource["Type"])
            assert not limit or len(json.dumps(document, separators=(",", ":"))) <= limit, name


@pytest.mark.parametrize(
    "partition, region, domain",
    [("aws", "us-east-1", "amazonaws.com"), ("aws-us-gov", "us-gov-west-1", "amazonaws.com"), ("aws-cn", "cn-north-1", "amazonaws.com.cn")],
)
def test_the_boundary_lets_dynamodb_use_the_key_of_the_tables_in_each_partition(partition, region, domain):
    place = {**PLACE, "AWS::Partition": partition, "AWS::Region": region}
    boundary = statements(template("role.yaml", "stack", place), "Boundary")
    (key,) = [statement for statement in boundary if statement["Sid"] == "TableKey"]
    pattern = key["Condition"]["StringLike"]["kms:ViaService"]
    assert fnmatchcase(f"dynamodb.{region}.{domain}", pattern)
    assert not fnmatchcase(f"dynamodb.eu-west-1.{domain}", pattern)
    assert not fnmatchcase(f"s3.{region}.{domain}", pattern)


def test_the_boundary_allows_what_the_roles_of_the_stack_need():
    stack = "workspace-management-prod"
    own = arns(stack)
    names = {**PLACE, "AWS::StackName": stack, "PermissionsBoundary": "boundary"}
    for name, arn in own.items():
        names |= {name: arn if "IAM" in RESOURCES[name]["Type"] or "SNS" in RESOURCES[name]["Type"] else arn.split("/")[-1].split(":")[-1]}
        names |= {f"{name}.Arn": arn, f"{name}.StreamArn": f"{arn}/stream/2026-01-01T00:00:00.000"}
    boundary = statements(template("role.yaml", stack), "Boundary")
    needed = [
        (name, action, arn)
        for name, resource in RESOURCES.items()
        if resource["Type"].startswith("AWS::IAM::")
        for document in documents({name: evaluated(resource, names)}, name)
        for statement in document["Statement"]
        for action in entries(statement["Action"])
        for arn in entries(statement["Resource"])
    ]
    assert len(needed) > 50
    assert [it for it in needed if not is_allowed(boundary, *it[1:])] == []


def test_the_documents_name_the_stacks_of_samconfig():
    documents = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    named = {name for path in documents for name in re.findall(r"--stack ([a-z-]+)", path.read_text(encoding="utf-8"))}
    assert named == set(STACKS)
