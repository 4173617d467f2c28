"""The resources of a stack, and the policies in deploy/, with the names that AWS sees.

TRANSLATED_TEMPLATE is the output of ci/translate.py.
"""

import json
import os
import re
from fnmatch import fnmatchcase
from pathlib import Path

from samcli.yamlhelper import yaml_parse

ROOT = Path(__file__).parents[2]
RESOURCES = json.loads(Path(os.environ["TRANSLATED_TEMPLATE"]).read_text(encoding="utf-8"))["Resources"]
TEMPLATES = {path.name: yaml_parse(path.read_text(encoding="utf-8")) for path in (ROOT / "deploy").glob("*.yaml")}
PLACE = {"AWS::Partition": "aws", "AWS::Region": "us-east-1", "AWS::AccountId": "123456789012"}

# The ARNs of resources whose names begin with the stack's name, and those of their parts. API Gateway's have random ids.
FORMATS = {
    "AWS::CloudWatch::Alarm": "cloudwatch:us-east-1:123456789012:alarm:{}",
    "AWS::CloudWatch::Dashboard": "cloudwatch::123456789012:dashboard/{}",
    "AWS::CodeDeploy::Application": "codedeploy:us-east-1:123456789012:application:{}",
    "AWS::CodeDeploy::DeploymentGroup": "codedeploy:us-east-1:123456789012:deploymentgroup:{application}/{}",
    "AWS::DynamoDB::Table": "dynamodb:us-east-1:123456789012:table/{}",
    "AWS::IAM::ManagedPolicy": "iam::123456789012:policy/{}",
    "AWS::IAM::Role": "iam::123456789012:role/{}",
    "AWS::Lambda::Function": "lambda:us-east-1:123456789012:function:{}",
    "AWS::Logs::LogGroup": "logs:us-east-1:123456789012:log-group:{}",
    "AWS::SNS::Topic": "sns:us-east-1:123456789012:{}",
}
PARTS = {
    "AWS::DynamoDB::Table": ["/index/by_user", "/stream/2026-01-01T00:00:00.000"],
    "AWS::Lambda::Function": [":7", ":live"],
    "AWS::Logs::LogGroup": [":*", ":log-stream:2026"],
}


def entries(value):
    return value if isinstance(value, list) else [value]


def evaluated(value, names):
    """A value of a template, as CloudFormation evaluates it. All conditions are true, and unknown names remain."""
    if isinstance(value, list):
        return [evaluated(it, names) for it in value if it != {"Ref": "AWS::NoValue"}]
    if not isinstance(value, dict):
        return value
    if "Fn::If" in value:
        return evaluated(value["Fn::If"][1], names)
    if "Fn::Sub" in value:
        text, variables = value["Fn::Sub"], names
        if isinstance(text, list):
            text, variables = text[0], {**names, **text[1]}
        return re.sub(r"\$\{([^}]+)\}", lambda match: str(variables.get(match[1], match[0])), text)
    if "Fn::GetAtt" in value:
        return names.get(".".join(entries(value["Fn::GetAtt"])), value)
    if "Ref" in value:
        return names.get(value["Ref"], value)
    return {name: evaluated(it, names) for name, it in value.items()}


def physical_name(logical_id, stack):
    """The name of a resource: its own, or the one that CloudFormation generates."""
    properties = RESOURCES[logical_id].get("Properties", {})
    for name in ["AlarmName", "DashboardName", "LogGroupName"]:
        if name in properties and RESOURCES[logical_id]["Type"] != "AWS::Logs::MetricFilter":
            names = {**PLACE, "AWS::StackName": stack, "Uuid": "01234567-89ab-cdef-0123-456789abcdef"}
            value = properties[name]["Fn::Sub"]
            return evaluated({"Fn::Sub": value[0] if isinstance(value, list) else value}, names)
    return f"{stack}-{logical_id}-1A2B3C4D5E6F"


def arns(stack):
    """The ARN of each resource of a stack whose name begins with the stack's, by logical id."""
    application = physical_name("ServerlessDeploymentApplication", stack)
    return {
        name: f"arn:aws:{FORMATS[resource['Type']].format(physical_name(name, stack), application=application)}"
        for name, resource in RESOURCES.items()
        if resource["Type"] in FORMATS
    }


def all_arns(stack):
    """The ARNs of a stack, its resources and their parts, its boundary and the stack itself."""
    found = [
        f"arn:aws:cloudformation:us-east-1:123456789012:stack/{stack}/01234567-89ab-cdef-0123-456789abcdef",
        f"arn:aws:iam::123456789012:policy/boundary.{stack}.us-east-1",
    ]
    for name, arn in arns(stack).items():
        found += [arn + part for part in ["", *PARTS.get(RESOURCES[name]["Type"], [])]]
    return found


def template(file, stack, place=PLACE):
    """The resources of a template in deploy/, for a stack."""
    parameters = {name: stack for name in TEMPLATES[file]["Parameters"] if name.endswith("Stack")}
    names = {**place, **parameters, "HostedZoneId": "Z0123456789", "ArtifactBucket.Arn": "arn:aws:s3:::artifacts"}
    return evaluated(TEMPLATES[file]["Resources"], names)


def documents(resources, name):
    """The policy documents of a role, with those of its managed policies in the same template, or of a managed policy."""
    properties = resources[name]["Properties"]
    found = [policy["PolicyDocument"] for policy in properties.get("Policies", [properties]) if "PolicyDocument" in policy]
    managed = [policy["Ref"] for policy in properties.get("ManagedPolicyArns", []) if "Ref" in policy]
    return found + [document for it in managed for document in documents(resources, it)]


def statements(resources, name):
    return [statement for document in documents(resources, name) for statement in document["Statement"]]


def matches(statement, arn):
    return any(fnmatchcase(arn, pattern) for pattern in entries(statement["Resource"]))


def is_allowed(statements, action, arn):
    """Whether statements, which allow, cover an action on a resource."""
    return any(
        any(fnmatchcase(action, pattern) for pattern in entries(statement["Action"])) and matches(statement, arn)
        for statement in statements
    )
