"""Checks a stack from outside, measures it, and prints a report in Markdown for docs/benchmarks.md.

usage: contact.py STACK KEY-FILE [--email] [--url URL]   or   contact.py --delete STACK...
KEY-FILE has an API key of the organization `doctor`. With --url, the API is `cargo serve`, and AWS is an emulator: each
step that these do not have is named. --delete deletes stacks with their tables and logs.
"""

import argparse
import collections
import concurrent.futures
import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import boto3

ROOT = Path(__file__).parents[1]
CLOUDFORMATION = boto3.client("cloudformation")
LAMBDA = boto3.client("lambda")
LOGS = boto3.client("logs")
# The paths that a client sends, and what is right for the path that an HTTP API delivers for each. It decodes once.
PATHS = [
    ("add_models", "/api/v1/org/doctor/addModelsToOrg/chat%3Fbeta", (204, None)),  # cut at the `?`
    ("add_models", "/api/v1/org/doctor/addModelsToOrg/chat%2Fbeta", (404, "no_such_path")),
    ("set_bot_voice", "/api/v1/bot/playground/b%2537/voice", (204, None)),
    ("set_bot_voice", "/api/v1/bot/playground/b%252537/voice", (400, "malformed_path")),
    ("set_bot_voice", "/api/v1/bot/playground/b%207/voice", (400, "malformed_path")),
]
# First `create_team`, because `add_team_users` needs the team.
OPERATIONS = sorted({file.stem for file in (ROOT / "events").glob("*.json")} - {"env"}, key=lambda name: (name != "create_team", name))


class Skipped(Exception):
    """The step is not possible here."""


class Api:
    def __init__(self, url, key, organization):
        self.url, self.key, self.organization = urlsplit(url), key, organization
        self.connection = None

    def event(self, operation):
        """The event of an operation in events/, for the organization of the key."""
        text = (ROOT / f"events/{operation}.json").read_text(encoding="utf-8")
        event = json.loads(text.replace("/org/acme/", f"/org/{self.organization}/").replace("/project/acme/", f"/project/{self.organization}/"))
        event["headers"]["authorization"] = f"Bearer {self.key}"
        return event

    def send(self, operation, path=None, key=True):
        """The response to a request: its status, headers and `code`."""
        event = self.event(operation)
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self.key}"} if key else {})
        if self.connection is None:
            kind = http.client.HTTPSConnection if self.url.scheme == "https" else http.client.HTTPConnection
            self.connection = kind(self.url.netloc, timeout=30)
        try:
            self.connection.request("POST", path or event["rawPath"], event["body"], headers)
            response = self.connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException):
            self.connection = None  # It cannot be used again, but the other steps must be possible.
            raise
        code = json.loads(body).get("code") if response.status >= 400 and body.startswith(b"{") else None
        return response.status, response.headers, code


def outputs(stack):
    (found,) = CLOUDFORMATION.describe_stacks(StackName=stack)["Stacks"]
    return {it["OutputKey"]: it["OutputValue"] for it in found.get("Outputs", [])}


def messages(stack, pattern="", start=0):
    """What is in the log of a stack's function since a time."""
    group = outputs(stack)["LogGroup"]
    pages = LOGS.get_paginator("filter_log_events").paginate(logGroupName=group, filterPattern=pattern, startTime=start)
    return [it["message"] for page in pages for it in page["events"]]


class Steps:
    """Each method that begins with `step_` is a step. It returns what the report says, or raises."""

    def __init__(self, arguments):
        self.stack, self.email, self.emulated = arguments.stack, arguments.email, arguments.url is not None
        self.key_file = arguments.key_file
        key = Path(arguments.key_file).read_text(encoding="utf-8").strip()
        url = arguments.url or outputs(self.stack)["ApiUrl"]
        # `cargo serve` has the organization `acme`, and its public key.
        self.api = Api(url, key, "acme" if self.emulated else "doctor")
        self.programs = {"workspace-management": self.api}
        self.stacks = {"workspace-management": self.stack}
        if not self.emulated:
            self.stacks["baseline-careful"] = f"{self.stack}-baseline"
            self.programs["baseline-careful"] = Api(outputs(self.stacks["baseline-careful"])["ApiUrl"], key, "doctor")

    def only_on_aws(self, reason):
        if self.emulated:
            raise Skipped(reason)

    @staticmethod
    def measure(api):
        """The milliseconds until a response."""
        time.sleep(0.05)
        before = time.monotonic()
        status, _, _ = api.send("create_logging_instance")
        assert status == 204, status
        return (time.monotonic() - before) * 1000

    def step_first_request(self):
        return "; ".join(f"{name} {self.measure(api):.0f} ms" for name, api in self.programs.items()) + ", with DNS, TLS and a cold start"

    def step_requests(self):
        statuses = [self.api.send(operation)[0] for operation in OPERATIONS * 2]
        assert statuses == [204] * (2 * len(OPERATIONS)), statuses
        return f"{len(OPERATIONS)} operations, each twice: 204"

    def step_invocations(self):
        self.only_on_aws("moto invokes functions only in Docker")
        for operation in OPERATIONS:
            result = LAMBDA.invoke(
                FunctionName=outputs(self.stack)["FunctionName"], Qualifier="live", Payload=json.dumps(self.api.event(operation))
            )
            response = json.load(result["Payload"])
            assert response.get("statusCode") == 204, response
        return f"{len(OPERATIONS)} events to the alias: 204"

    def step_doctor(self):
        self.only_on_aws("ci/tests/test_stack.py runs `doctor` on moto, which has no API")
        command = ["target/debug/workspacectl", "--stack", self.stack, "doctor", "--key-file", self.key_file]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr.strip().splitlines()[-1]
        return f"{len(result.stdout.splitlines()) - 1} checks, none failed"

    def step_paths(self):
        for operation, path, expected in PATHS:
            status, _, code = self.api.send(operation, path.replace("/doctor/", f"/{self.api.organization}/"))
            assert (status, code) == expected, f"{path}: {status} {code}, expected {expected}"
        return f"{len(PATHS)} encoded paths are delivered as expected"

    def step_challenge(self):
        status, headers, _ = self.api.send("create_team", key=False)
        found = [name for name in headers if "authenticate" in name.lower()]
        assert status == 401 and len(found) == 1, (status, found)
        return f"`{found[0].lower()}: {headers[found[0]]}`"

    def step_warm_requests(self):
        results = []
        for name, api in self.programs.items():
            times = sorted(self.measure(api) for _ in range(200))
            results.append(f"{name} p50 {times[100]:.1f} ms, p99 {times[197]:.1f} ms")
        return "; ".join(results) + " (200 requests of one client, one connection)"

    def step_limit_of_anonymous_requests(self):
        self.only_on_aws("`cargo serve` has no limits")
        path = "/api/v1/org/no-such-organization/dataStores/create"
        with concurrent.futures.ThreadPoolExecutor(100) as pool:
            apis = [Api(self.api.url.geturl(), self.api.key, "doctor") for _ in range(500)]
            statuses = collections.Counter(pool.map(lambda api: api.send("create_data_store", path, key=False)[0], apis))
        assert 55 <= statuses[404] <= 110 and statuses[404] + statuses[429] == 500, statuses
        return f"500 at once: {statuses[404]} × 404, {statuses[429]} × 429"

    def step_alarms(self):
        self.only_on_aws("moto creates no alarms")
        # What the steps before have caused must not raise an alarm.
        alarms = boto3.client("cloudwatch").describe_alarms(AlarmNamePrefix=f"{self.stack}-")["MetricAlarms"]
        states = {it["AlarmName"]: it["StateValue"] for it in alarms}
        assert states and set(states.values()) <= {"OK", "INSUFFICIENT_DATA"}, states
        return f"{len(states)} alarms, none is on"

    def step_lambda(self):
        self.only_on_aws("moto invokes functions only in Docker")
        time.sleep(60)  # until the logs have arrived
        return "; ".join(f"{name} {self.reports(stack)}" for name, stack in self.stacks.items())

    @staticmethod
    def reports(stack):
        """What Lambda reported after each invocation."""
        metrics = [json.loads(it)["record"]["metrics"] for it in messages(stack, '{ $.type = "platform.report" }')]
        assert metrics, f"the log of {stack} has no platform.report"
        starts = [it["initDurationMs"] for it in metrics if "initDurationMs" in it]
        billed = statistics.median(it["billedDurationMs"] for it in metrics)
        memory = max(it["maxMemoryUsedMB"] for it in metrics)
        return f"Init Duration {min(starts, default=0):.0f} to {max(starts, default=0):.0f} ms ({len(starts)} starts), billed p50 {billed:.0f} ms, {memory} MB"

    def step_baseline(self):
        if self.emulated:
            raise Skipped("`cargo serve` runs only the function: compare with `cargo bench --bench lambda`")
        return "is in the rows above"

    def change(self, **changes):
        """Changes parameters as docs/operations.md does at once. Returns the version of the alias, and whether alarms
        could have moved it back."""
        (stack,) = CLOUDFORMATION.describe_stacks(StackName=self.stack)["Stacks"]
        parameters = {it["ParameterKey"]: it["ParameterValue"] for it in stack["Parameters"]} | changes
        CLOUDFORMATION.update_stack(
            StackName=self.stack,
            UsePreviousTemplate=True,
            Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
            Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()],
        )
        CLOUDFORMATION.get_waiter("stack_update_complete").wait(StackName=self.stack, WaiterConfig={"Delay": 10, "MaxAttempts": 120})
        resources = CLOUDFORMATION.describe_stack_resources(StackName=self.stack)["StackResources"]
        ids = {it["LogicalResourceId"]: it["PhysicalResourceId"] for it in resources}
        group = boto3.client("codedeploy").get_deployment_group(
            applicationName=ids["ServerlessDeploymentApplication"], deploymentGroupName=ids["FunctionDeploymentGroup"]
        )
        return self.live(), group["deploymentGroupInfo"].get("alarmConfiguration", {}).get("enabled", False)

    def live(self):
        return int(LAMBDA.get_alias(FunctionName=outputs(self.stack)["FunctionName"], Name="live")["FunctionVersion"])

    # After `lambda`, because the memory changes.
    def step_rollout(self):
        self.only_on_aws("moto creates no alias, and has no rollouts of CodeDeploy")
        first, start = self.live(), int(time.time() * 1000)
        second, has_alarms = self.change(MemorySize="512", Rollout="Canary10Percent5Minutes")
        assert second > first and has_alarms, (first, second, has_alarms)
        # `RolloutCheck` prints the response of the new version.
        assert any('"statusCode": 401' in it.replace("\\", "") for it in messages(self.stack, start=start)), "RolloutCheck did not run"
        # As docs/operations.md says, "Roll back".
        LAMBDA.update_alias(
            FunctionName=outputs(self.stack)["FunctionName"],
            Name="live",
            FunctionVersion=str(first),
            RoutingConfig={"AdditionalVersionWeights": {}},
        )
        status, _, _ = self.api.send("create_team")
        assert (status, self.live()) == (204, first), status
        third, has_alarms = self.change(MemorySize="384", Rollout="AllAtOnce")
        assert third > second and not has_alarms, (second, third, has_alarms)
        return f"version {second} as a canary, after `RolloutCheck`; back to {first}; {third} at once, without alarms"

    # After `rollout`, which an alarm would end.
    def step_notification(self):
        self.only_on_aws("moto creates no alarms")
        if not self.email:
            raise Skipped("no --email")
        name = f"{self.stack}-LatencyAlarm"
        boto3.client("cloudwatch").set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="a test of the notifications")
        return "look for the email about LatencyAlarm"

    def step_tests_of_the_api(self):
        endpoint = os.environ.get("TEST_DYNAMODB_ENDPOINT", boto3.client("dynamodb").meta.endpoint_url)
        credentials = boto3.Session().get_credentials().get_frozen_credentials()
        environment = os.environ | {
            "TEST_DYNAMODB_ENDPOINT": endpoint,
            "TEST_TABLE_PREFIX": self.stack,  # --delete finds the tables by it
            "AWS_ACCESS_KEY_ID": credentials.access_key,
            "AWS_SECRET_ACCESS_KEY": credentials.secret_key,
        }
        if credentials.token:
            environment["AWS_SESSION_TOKEN"] = credentials.token
        command = ["cargo", "test", "--quiet", "--locked", "--test", "api", "operations::", "--", "--test-threads", "4"]
        result = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
        if result.returncode != 0:
            print(result.stdout, file=sys.stderr)
        assert result.returncode == 0, "see the output"
        return f"tests/api/operations/ on {endpoint}: {re.search('[0-9]+ passed', result.stdout)[0]}"


def run(arguments):
    steps = Steps(arguments)
    failed = False
    print("| step | result |\n|---|---|")
    for name in [name for name in vars(Steps) if name.startswith("step_")]:
        try:
            result = getattr(steps, name)()
        except Skipped as reason:
            result = f"skipped: {reason}"
        except Exception as error:  # The report names every failure, and what was created is deleted afterwards.
            failed, result = True, f"FAILED: {error!r}"
        print(f"| {name.removeprefix('step_').replace('_', ' ')} | {result} |", flush=True)
    sys.exit(failed)


def delete(stacks):
    """Deletes stacks of ci/aws or ci/dry-run, and what they retain: tables and log groups, whose names begin with the name
    of their stack. A failure is printed, and the others are still deleted."""
    assert all(stack.startswith("wm-check-") for stack in stacks), f"{stacks} are not all stacks for checks"
    dynamodb = boto3.client("dynamodb")
    failed = False

    def attempt(action, **arguments):
        nonlocal failed
        try:
            action(**arguments)
        except Exception as error:
            failed = True
            print(f"not deleted: {arguments}: {error}", file=sys.stderr)

    def delete_table(name):
        if dynamodb.describe_table(TableName=name)["Table"].get("DeletionProtectionEnabled"):
            dynamodb.update_table(TableName=name, DeletionProtectionEnabled=False)
            dynamodb.get_waiter("table_exists").wait(TableName=name)
        dynamodb.delete_table(TableName=name)

    for stack in stacks:
        attempt(CLOUDFORMATION.delete_stack, StackName=stack)
        waiter = CLOUDFORMATION.get_waiter("stack_delete_complete")
        attempt(waiter.wait, StackName=stack, WaiterConfig={"Delay": 5, "MaxAttempts": 240})
    for stack in stacks:
        pages = dynamodb.get_paginator("list_tables").paginate()
        tables = [name for page in pages for name in page["TableNames"] if name.startswith(f"{stack}-")]
        for name in tables:
            attempt(delete_table, name=name)
        prefixes = [f"{stack}-", f"/aws/vendedlogs/{stack}-"]
        pages = [page for prefix in prefixes for page in LOGS.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=prefix)]
        groups = [it["logGroupName"] for page in pages for it in page["logGroups"]]
        for name in groups:
            attempt(LOGS.delete_log_group, logGroupName=name)
        if not failed:
            print(f"deleted the stack {stack}, {len(tables)} tables and {len(groups)} log groups")
    if failed:
        sys.exit(f"something remains, and costs money. Try again: python3 ci/contact.py --delete {' '.join(stacks)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("stack", nargs="?")
    parser.add_argument("key_file", nargs="?")
    parser.add_argument("--email", action="store_true")
    parser.add_argument("--url")
    parser.add_argument("--delete", nargs="+", metavar="STACK")
    arguments = parser.parse_args()
    if arguments.delete:
        delete(arguments.delete)
    else:
        run(arguments)
