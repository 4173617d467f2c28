"""Tests that every change of the function reaches the alias, and the check before it gets requests.

usage: TRANSLATED_TEMPLATE=FILE.json pytest ci/tests/test_rollout.py
FILE.json is the output of ci/translate.py. The check runs with boto3. A server answers instead of Lambda and CodeDeploy.
"""

import json
import os
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

TEMPLATE = json.loads(Path(os.environ["TRANSLATED_TEMPLATE"]).read_text(encoding="utf-8"))
RESOURCES = TEMPLATE["Resources"]


def only(resource_type):
    """The logical id and the properties of the only resource of a type."""
    (found,) = [(name, it["Properties"]) for name, it in RESOURCES.items() if it["Type"] == resource_type]
    return found


def parameters(value):
    """The names of the template's parameters that a value depends on."""
    text = json.dumps(value)
    names = set(re.findall(r'"Ref": "(\w+)"', text)) | set(re.findall(r"\$\{(\w+)\}", text))
    for condition in re.findall(r'"(?:Fn::If": \[|Condition": )"(\w+)"', text):
        names |= parameters(TEMPLATE["Conditions"][condition])
    return names & set(TEMPLATE["Parameters"])


def replacing(resource_type):
    """The properties whose change replaces a resource."""
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", resource_type).schema
    return {it.removeprefix("/properties/") for it in schema["createOnlyProperties"]}


def test_every_parameter_of_the_function_publishes_a_version():
    _, version = only("AWS::Lambda::Version")
    function = dict(RESOURCES["Function"]["Properties"])
    # Applies to all versions at once.
    assert parameters(function.pop("ReservedConcurrentExecutions")) == {"ReservedConcurrency"}
    assert parameters(function) == parameters(version["Description"])
    assert len(parameters(function)) == 4
    # CloudFormation replaces a version whose description changes.
    assert "Description" in replacing("AWS::Lambda::Version")


def test_versions_stay_so_that_the_alias_can_go_back():
    retained = {it["Type"] for it in RESOURCES.values() if it.get("DeletionPolicy") == it.get("UpdateReplacePolicy") == "Retain"}
    assert retained == {"AWS::DynamoDB::Table", "AWS::Lambda::Version"}
    # SAM also copies the policy of the function to the function, which is never replaced.
    assert RESOURCES["Function"]["UpdateReplacePolicy"] == "Retain"
    assert replacing("AWS::Lambda::Function").isdisjoint(RESOURCES["Function"]["Properties"])


def test_the_api_invokes_the_alias_that_follows_the_newest_version(operations):
    version, _ = only("AWS::Lambda::Version")
    alias, properties = only("AWS::Lambda::Alias")
    assert properties["FunctionVersion"] == {"Fn::GetAtt": [version, "Version"]}
    paths = RESOURCES["Api"]["Properties"]["Body"]["paths"].values()
    assert len(paths) == len(operations)
    for path in paths:
        uri = path["post"]["x-amazon-apigateway-integration"]["uri"]["Fn::Sub"]
        assert uri.endswith("/functions/${%s}/invocations" % alias)
    permissions = [it["Properties"] for it in RESOURCES.values() if it["Type"] == "AWS::Lambda::Permission"]
    assert [it["FunctionName"] for it in permissions] == [{"Ref": alias}] * len(paths)


def test_only_a_gradual_rollout_goes_back_because_of_alarms_and_these_exist():
    _, group = only("AWS::CodeDeploy::DeploymentGroup")
    condition, gradual, at_once = group["AlarmConfiguration"]["Fn::If"]
    assert (condition, at_once) == ("IsGradual", {})
    alarms = {it["Properties"]["AlarmName"]["Fn::Sub"] for it in RESOURCES.values() if "AlarmName" in it.get("Properties", {})}
    assert {it["Name"]["Fn::Sub"] for it in gradual["Alarms"]} == alarms
    assert len(alarms) == 3


def check(answer):
    """Runs the check while Lambda gives an answer. Returns what CodeDeploy gets."""
    requests = []

    class Aws(BaseHTTPRequestHandler):
        def do_POST(self):
            request = self.rfile.read(int(self.headers["Content-Length"]))
            requests.append((self.path, json.loads(request)))
            status, body = answer if "/invocations" in self.path else (200, {})
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *arguments):
            pass

    server = HTTPServer(("127.0.0.1", 0), Aws)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    properties = RESOURCES["RolloutCheck"]["Properties"]
    environment = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
        "EVENT": properties["Environment"]["Variables"]["EVENT"],
        "VERSION": "arn:aws:lambda:us-east-1:123456789012:function:name:7",
    }
    module = {}
    exec(properties["Code"]["ZipFile"], module)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        try:
            module["handler"]({"DeploymentId": "d-1", "LifecycleEventHookExecutionId": "execution"}, None)
        except Exception as error:
            print(error)
    server.shutdown()
    (path, event), (_, report) = requests
    assert path.endswith("function%3Aname%3A7/invocations")
    assert event == json.loads(environment["EVENT"])
    assert report["lifecycleEventHookExecutionId"] == "execution"
    return report["status"]


def test_the_check_accepts_a_version_that_looks_up_the_key():
    assert check((200, {"statusCode": 401})) == "Succeeded"


@pytest.mark.parametrize(
    "answer",
    [(200, {"statusCode": 500}), (200, {"errorMessage": "exit status 1", "errorType": "Runtime.ExitError"}), (403, {"Message": "denied"})],
    ids=["fails", "does not start", "cannot be invoked"],
)
def test_the_check_rejects_a_version_that(answer):
    assert check(answer) == "Failed"
