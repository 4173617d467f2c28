"""Checks that `workspacectl set` changes a parameter of a stack on moto, which does not update log groups.

usage: WORKSPACECTL=FILE TRANSLATED_TEMPLATE=FILE.json pytest ci/tests/test_set.py
FILE.json is the output of ci/translate.py. AWS_ENDPOINT_URL is the URL of moto.
"""

import json
import os
import subprocess
from pathlib import Path

import boto3
import pytest

STACK = "parameters"


@pytest.fixture(scope="module", autouse=True)
def stack():
    """Creates a stack with the template's parameters and one of its resources."""
    template = json.loads(Path(os.environ["TRANSLATED_TEMPLATE"]).read_text(encoding="utf-8"))
    body = {
        "Parameters": template["Parameters"],
        "Resources": {"LogGroup": template["Resources"]["LogGroup"]},
    }
    # moto can keep the previous value only if the deployment has set it. A parameter without a
    # default has the first of its allowed values.
    parameters = [
        {"ParameterKey": name, "ParameterValue": str(parameter["Default"] if "Default" in parameter else parameter["AllowedValues"][0])}
        for name, parameter in template["Parameters"].items()
    ]
    tags = [{"Key": "team", "Value": "research"}]
    boto3.client("cloudformation").create_stack(StackName=STACK, TemplateBody=json.dumps(body), Parameters=parameters, Tags=tags)


def describe():
    return boto3.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"][0]


def values(description):
    return {parameter["ParameterKey"]: parameter["ParameterValue"] for parameter in description["Parameters"]}


def run(*arguments):
    return subprocess.run([os.environ["WORKSPACECTL"], "--stack", STACK, "set", *arguments], capture_output=True, text=True, check=False)


def test_set_changes_one_parameter():
    before = describe()
    changed = run("LogRetentionDays=90")
    assert changed.returncode == 0, changed.stderr
    after = describe()
    assert values(after) == values(before) | {"LogRetentionDays": "90"}
    assert (after["StackStatus"], after["Tags"]) == ("UPDATE_COMPLETE", before["Tags"])


def test_set_rejects_a_value_that_the_template_forbids():
    before = values(describe())
    rejected = run("LogRetentionDays=2")
    assert rejected.returncode == 2, rejected.stderr
    assert values(describe()) == before
