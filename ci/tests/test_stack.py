"""Tests a stack on moto: its resources, `doctor`, and the readers of its records.

usage: STACK=NAME TRANSLATED_TEMPLATE=FILE.json WORKSPACECTL=FILE pytest ci/tests/test_stack.py
FILE.json is the output of ci/translate.py. AWS_ENDPOINT_URL is the URL of moto.
"""

import json
import os
import subprocess
from pathlib import Path

import boto3
import pytest

# The types of resources that moto supports.
SUPPORTED = {
    "AWS::DynamoDB::Table",
    "AWS::IAM::ManagedPolicy",
    "AWS::IAM::Role",
    "AWS::Lambda::Function",
    "AWS::Logs::LogGroup",
}
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def declared():
    """The type of each resource of the template, by logical id."""
    resources = json.loads(Path(os.environ["TRANSLATED_TEMPLATE"]).read_text(encoding="utf-8"))["Resources"]
    return {name: resource["Type"] for name, resource in resources.items()}


@pytest.fixture(scope="module")
def present():
    """The physical id of each resource of the stack, by logical id."""
    found = boto3.client("cloudformation").describe_stack_resources(StackName=os.environ["STACK"])["StackResources"]
    return {resource["LogicalResourceId"]: resource["PhysicalResourceId"] for resource in found if resource.get("PhysicalResourceId")}


def test_the_stack_contains_every_resource_of_the_template_that_moto_supports(declared, present):
    assert SUPPORTED <= set(declared.values())
    names = {name for name, resource_type in declared.items() if resource_type in SUPPORTED}
    assert names - present.keys() == set()


def doctor():
    """The exit code of `doctor`, and the status and detail of each check, by its name."""
    command = [os.environ["WORKSPACECTL"], "--stack", os.environ["STACK"], "--json", "doctor"]
    output = subprocess.run(command, capture_output=True, text=True, check=False)
    assert output.stdout, output.stderr
    return output.returncode, {check["check"]: (check["status"], check["detail"]) for check in json.loads(output.stdout)}


def test_doctor_checks_the_tables_and_the_function(declared, present):
    # moto ignores point-in-time recovery and the time to live, and turns values of variables into numbers.
    expiry = {"AttributeName": "expires_at", "Enabled": True}
    boto3.client("dynamodb").update_time_to_live(TableName=present["HistoryTable"], TimeToLiveSpecification=expiry)
    for name, resource_type in declared.items():
        if resource_type == "AWS::DynamoDB::Table":
            recovery = {"PointInTimeRecoveryEnabled": True}
            boto3.client("dynamodb").update_continuous_backups(TableName=present[name], PointInTimeRecoverySpecification=recovery)
    function = boto3.client("lambda").get_function_configuration(FunctionName=present["Function"])
    variables = {name: str(value) for name, value in function["Environment"]["Variables"].items()}
    boto3.client("lambda").update_function_configuration(FunctionName=present["Function"], Environment={"Variables": variables})
    code, checks = doctor()
    failed = {name: detail for name, (status, detail) in checks.items() if status != "ok"}
    # moto also ignores the encryption and the limits that a template sets.
    ignored = "its encryption does not use AWS KMS; its write units have no maximum"
    tables = [name for name, detail in failed.items() if detail.split("; the write units of its index", maxsplit=1)[0] == ignored]
    assert len(tables) == list(declared.values()).count("AWS::DynamoDB::Table"), failed
    for name in tables:
        del failed[name]
    assert failed.keys() == {"API", "Termination protection", "Alarm recipients"}, failed
    assert (code, checks["API"][0]) == (1, "failed"), checks


def test_doctor_notices_that_a_log_group_is_deleted_and_repaired(present):
    logs, group = boto3.client("logs"), present["LogGroup"]
    logs.delete_log_group(logGroupName=group)
    assert doctor()[1]["Log groups"] == ("failed", f'the log group {group} does not exist: see "Repair the stack" in docs/runbook.md')
    logs.create_log_group(logGroupName=group)
    logs.put_retention_policy(logGroupName=group, retentionInDays=30)
    assert doctor()[1]["Log groups"][0] == "ok"


def test_readers_in_other_accounts_can_assume_the_role(present):
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
