"""Tests that docs/stack.md has the facts of template.yaml. A failure prints the rows that are missing.

usage: TRANSLATED_TEMPLATE=FILE.json pytest ci/tests/test_stack_page.py
FILE.json is the output of ci/translate.py.
"""

import json
import os
import re
from pathlib import Path

RESOURCES = json.loads(Path(os.environ["TRANSLATED_TEMPLATE"]).read_text(encoding="utf-8"))["Resources"]
PAGE = (Path(__file__).parents[2] / "docs/stack.md").read_text(encoding="utf-8")
COMPARISONS = {"GreaterThanThreshold": ">", "GreaterThanOrEqualToThreshold": "≥", "LessThanThreshold": "<"}


def of_type(resource_type):
    return {name: it["Properties"] for name, it in RESOURCES.items() if it["Type"] == resource_type}


def check(facts):
    missing = [fact for fact in facts if fact not in PAGE]
    assert not missing, "add to docs/stack.md:\n" + "\n".join(missing)


def names(value):
    """The logical ids and parameters that a value refers to."""
    return re.findall(r'"(?:Ref": |Fn::GetAtt": \[)"(\w+)"', json.dumps(value))


def keys(properties, types):
    return ", ".join(f"`{key['AttributeName']}` {types[key['AttributeName']]}" for key in properties["KeySchema"])


def test_the_tables():
    variables = RESOURCES["Function"]["Properties"]["Environment"]["Variables"]
    variables = {names(value)[0]: name for name, value in variables.items() if name.endswith("_TABLE")}
    statements = RESOURCES["FunctionRole"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
    rows = []
    for name, table in of_type("AWS::DynamoDB::Table").items():
        types = {it["AttributeName"]: it["AttributeType"] for it in table["AttributeDefinitions"]}
        indexes = [f"`{it['IndexName']}`: {keys(it, types)}; {it['Projection']['ProjectionType']}" for it in table.get("GlobalSecondaryIndexes", [])]
        actions = [it["Action"].removeprefix("dynamodb:") for it in statements if name in names(it["Resource"])]
        assert table["BillingMode"] == "PAY_PER_REQUEST"
        assert table.get("StreamSpecification", {}).get("StreamViewType", "NEW_AND_OLD_IMAGES") == "NEW_AND_OLD_IMAGES"
        stream = "yes" if "StreamSpecification" in table else "no"
        variable = f"`{variables[name]}`" if name in variables else ""
        cells = [f"`{name}`", variable, keys(table, types), ", ".join(indexes), stream, ", ".join(actions)]
        rows.append("| " + " | ".join(cells) + " |")
        if "TimeToLiveSpecification" in table:
            rows.append(f"`{table['TimeToLiveSpecification']['AttributeName']}`")
    assert len(rows) == 10
    check(rows)


def test_the_function():
    function = RESOURCES["Function"]["Properties"]
    facts = [f"`{name}`" for name in function["Environment"]["Variables"]]
    facts += [f"`{name}`" for name in ["Handler", "Runtime", "Timeout", "LoggingConfig"]]
    facts += [f"`{function[name]}`" for name in ["Handler", "Runtime", "Timeout"]]
    facts += [f"`{function['LoggingConfig'][name]}`" for name in ["LogFormat", "ApplicationLogLevel"]]
    for role in ["FunctionRole", "RolloutRole"]:
        for policy in RESOURCES[role]["Properties"]["Policies"]:
            for statement in policy["PolicyDocument"]["Statement"]:
                statement = statement.get("Fn::If", [None, statement])[1]
                actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
                facts += [action.removeprefix("dynamodb:") for action in actions]
    check(facts)


def test_the_routes():
    body = RESOURCES["Api"]["Properties"]["Body"]["paths"]
    settings = RESOURCES["ApiApiGatewayDefaultStage"]["Properties"]
    facts = []
    for path, methods in body.items():
        (method,) = methods
        integration = methods[method]["x-amazon-apigateway-integration"]
        assert (integration["type"], integration["payloadFormatVersion"]) == ("aws_proxy", "2.0")
        own = settings["RouteSettings"].get(f"{method.upper()} {path}")
        limit = "`RequestsPerSecond`, 1000"
        if own:
            limit = f"{own['ThrottlingRateLimit']['Fn::If'][1]}, {own['ThrottlingBurstLimit']['Fn::If'][1]}"
        facts.append(f"| `{method.upper()} {path}` | {limit} |")
    assert settings["DefaultRouteSettings"]["ThrottlingBurstLimit"] == 1000
    assert settings["AutoDeploy"] is True
    assert len(facts) == 6
    cors = json.dumps(RESOURCES["Api"]["Properties"]["Body"]["x-amazon-apigateway-cors"])
    facts += [f"`{name}`" for name in re.findall(r"[a-z]+(?:-[a-z]+)+", cors) + ["$default"]]
    check(facts)


def test_the_alarms():
    rows = []
    for name, alarm in of_type("AWS::CloudWatch::Alarm").items():
        metrics = alarm.get("Metrics", [])
        period = alarm.get("Period") or next(it["MetricStat"]["Period"] for it in metrics if "MetricStat" in it)
        metric = next((f"`{it['Expression']}`" for it in metrics if "Expression" in it), None)
        if metric is None:
            metric = f"`{alarm['MetricName']}`, {alarm.get('Statistic') or alarm['ExtendedStatistic']}"
        periods = alarm["EvaluationPeriods"]
        periods = f"`{periods['Ref']}`" if isinstance(periods, dict) else periods
        breaching = alarm.get("DatapointsToAlarm", periods)
        missing_data = "" if alarm["TreatMissingData"] == "notBreaching" else f", missing data is {alarm['TreatMissingData']}"
        condition = f"{COMPARISONS[alarm['ComparisonOperator']]} {alarm['Threshold']} in {breaching} of {periods} × {period} s{missing_data}"
        rows.append(f"| `{name}` | {metric} | {condition} |")
    filters = of_type("AWS::Logs::MetricFilter").values()
    assert len(rows) > 7 and len(filters) == 2
    check(rows + [f"`{it['FilterPattern']}`" for it in filters])
