"""Checks that a stack on moto contains every resource of its template that moto supports.

usage: rehearsed.py STACK TRANSLATED.json
"""

import json
import sys
from collections import Counter
from pathlib import Path

import boto3

SUPPORTED = {
    "AWS::DynamoDB::Table",
    "AWS::IAM::Role",
    "AWS::Lambda::Function",
    "AWS::Logs::LogGroup",
}

stack, template = sys.argv[1], json.load(open(sys.argv[2], encoding="utf-8"))
declared = {name: resource["Type"] for name, resource in template["Resources"].items() if resource["Type"] in SUPPORTED}
present = boto3.client("cloudformation").describe_stack_resources(StackName=stack)["StackResources"]
present = {found["LogicalResourceId"]: found["PhysicalResourceId"] for found in present if found.get("PhysicalResourceId")}
missing = sorted(declared.keys() - present.keys())

dynamodb, function = boto3.client("dynamodb"), boto3.client("lambda")
for name, kind in declared.items():
    if kind == "AWS::DynamoDB::Table" and name in present:
        dynamodb.describe_table(TableName=present[name])
configured = function.get_function(FunctionName=present["Function"])["Configuration"]
role = boto3.client("iam").get_role(RoleName=present["FunctionRole"])["Role"]["Arn"]
permissions = json.loads(function.get_policy(FunctionName=present["Function"])["Policy"])["Statement"]
operations = [file for file in Path("events").glob("*.json") if file.stem != "env"]
routes = sum(resource["Type"] == "AWS::Lambda::Permission" for resource in template["Resources"].values())
tables = {value for name, value in configured["Environment"]["Variables"].items() if name.endswith("_TABLE")}
failed = [
    sentence
    for is_ok, sentence in [
        (configured["Runtime"] == "provided.al2023", "the function's runtime is not provided.al2023"),
        (configured["Handler"] == "bootstrap", "the function's handler is not bootstrap"),
        (configured["Role"] == role, "the function's role is not FunctionRole"),
        (len(permissions) == routes == len(operations), "the number of routes that may invoke the function is not the number of operations"),
        (tables == {present[name] for name, kind in declared.items() if kind == "AWS::DynamoDB::Table"}, "the function's variables do not match the tables"),
    ]
    if not is_ok
]
for kind, count in sorted(Counter(declared[name] for name in declared.keys() & present.keys()).items()):
    print(f"{count:3} {kind}")
print(f"{len(permissions):3} AWS::Lambda::Permission")
if missing or failed:
    sys.exit(f"missing resources: {missing}; failed checks: {failed}")
