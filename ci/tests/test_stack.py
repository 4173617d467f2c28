"""Checks that a stack on moto contains every resource of its template that moto supports.

usage: STACK=NAME TRANSLATED_TEMPLATE=FILE.json WORKSPACECTL=FILE pytest ci/tests/test_stack.py
FILE.json is the output of ci/translate.py. AWS_ENDPOINT_URL is the URL of moto.
"""

import json
import os
import subprocess
from pathlib import Path

import boto3
import pytest

SUPPORTED = {
    "AWS::DynamoDB::Table",
    "AWS::IAM::ManagedPolicy",
    "AWS::IAM::Role",
    "AWS::Lambda::Function",
    "AWS::Logs::LogGroup",
}
ROOT = Path(__file__).parents[2]
OPERATIONS = {file.stem for file in ROOT.glob("events/*.json")} - {"env"}


@pytest.fixture(scope="module")
def declared():
    """The type of each resource of the template."""
    resources = json.loads(Path(os.environ["TRANSLATED_TEMPLATE"]).read_text(encoding="utf-8"))["Resources"]
    return {name: resource["Type"] for name, resource in resources.items()}


@pytest.fixture(scope="module")
def present():
    """The physical id of each resource of the stack."""
    found = boto3.client("cloudformation").describe_stack_resources(StackName=os.environ["STACK"])["StackResources"]
    return {resource["LogicalResourceId"]: resource["PhysicalResourceId"] for resource in found if resource.get("PhysicalResourceId")}


@pytest.fixture(scope="module")
def function(present):
    """The configuration of the function."""
    return boto3.client("lambda").get_function(FunctionName=present["Function"])["Configuration"]


def names_of(declared, kind):
    return {name for name in declared if declared[name] == kind}


@pytest.mark.parametrize("kind", sorted(SUPPORTED))
def test_the_stack_contains_every_resource_of_the_template(declared, present, kind):
    names = names_of(declared, kind)
    assert names, f"the template contains no {kind}"
    assert names - present.keys() == set(), f"the stack lacks resources of type {kind}"


def test_dynamodb_contains_every_table(declared, present):
    tables = {present[name] for name in names_of(declared, "AWS::DynamoDB::Table")}
    found = boto3.client("dynamodb").list_tables()["TableNames"]
    assert tables - set(found) == set(), "DynamoDB lacks tables of the stack"


def test_the_function_runs_the_bootstrap_binary_on_amazon_linux_2023(function):
    assert (function["Runtime"], function["Handler"]) == ("provided.al2023", "bootstrap")


def test_the_function_has_its_role(function, present):
    role = boto3.client("iam").get_role(RoleName=present["FunctionRole"])["Role"]
    assert function["Role"] == role["Arn"]


def test_the_environment_of_the_function_contains_every_table(function, declared, present):
    variables = function["Environment"]["Variables"]
    tables = {value for name, value in variables.items() if name.endswith("_TABLE")}
    assert tables == {present[name] for name in names_of(declared, "AWS::DynamoDB::Table")}


def doctor():
    """The exit code of `doctor`, and the status and detail of each check by its name."""
    command = [os.environ["WORKSPACECTL"], "--stack", os.environ["STACK"], "--json", "doctor"]
    output = subprocess.run(command, capture_output=True, text=True, check=False)
    assert output.stdout, output.stderr
    return output.returncode, {check["check"]: (check["status"], check["detail"]) for check in json.loads(output.stdout)}


def test_doctor_checks_the_tables_and_the_function(function, declared, present):
    # moto ignores this property, and makes numbers of variables.
    for name in names_of(declared, "AWS::DynamoDB::Table"):
        recovery = {"PointInTimeRecoveryEnabled": True}
        boto3.client("dynamodb").update_continuous_backups(TableName=present[name], PointInTimeRecoverySpecification=recovery)
    variables = {name: str(value) for name, value in function["Environment"]["Variables"].items()}

    def set_variables(changed):
        boto3.client("lambda").update_function_configuration(FunctionName=present["Function"], Environment={"Variables": variables | changed})

    set_variables({})
    code, checks = doctor()
    problems = {name: detail for name, (status, detail) in checks.items() if status != "ok"}
    assert problems.keys() == {"API", "Termination protection", "Recipients of alarms"}, problems
    assert (code, checks["API"][0]) == (1, "failed"), checks
    set_variables({"TEAMS_TABLE": "wrong"})
    status, detail = doctor()[1]["Function"]
    set_variables({})
    assert status == "failed"
    assert f"TEAMS_TABLE is wrong instead of {variables['TEAMS_TABLE']}" in detail


def test_a_route_of_each_operation_may_invoke_the_function(declared, present):
    routes = names_of(declared, "AWS::Lambda::Permission")
    assert len(routes) == len(OPERATIONS), f"routes: {routes}, operations: {OPERATIONS}"
    policy = json.loads(boto3.client("lambda").get_policy(FunctionName=present["Function"])["Policy"])
    assert len(policy["Statement"]) == len(OPERATIONS), f"statements: {policy['Statement']}"


def test_readers_of_another_account_can_assume_the_role(present):
    role = boto3.client("iam").get_role(RoleName=present["ReaderRole"])["Role"]
    assert role["AssumeRolePolicyDocument"]["Statement"][0]["Principal"] == {"AWS": ["123456789012", "arn:aws:iam::210987654321:role/reader"]}


def test_the_function_for_readers_follows_the_stream_of_the_stack(present):
    table = boto3.client("dynamodb").describe_table(TableName=present["DataStoresTable"])["Table"]
    outputs = {
        "OrganizationsTable": present["OrganizationsTable"],
        "DataStoresTable": present["DataStoresTable"],
        "DataStoresTableStreamArn": table["LatestStreamArn"],
        "RecordsReaderArn": present["RecordsReader"],
        "RecordsFollowerArn": present["RecordsFollower"],
    }
    cloudformation = boto3.client("cloudformation")
    cloudformation.create_stack(
        StackName="reader",
        TemplateBody=(ROOT / "docs/records/function.yaml").read_text(encoding="utf-8"),
        Capabilities=["CAPABILITY_IAM"],
        Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in outputs.items()],
    )
    cloudformation.get_waiter("stack_create_complete").wait(StackName="reader", WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    sources = boto3.client("lambda").list_event_source_mappings(EventSourceArn=table["LatestStreamArn"])["EventSourceMappings"]
    assert len(sources) == 1, sources
