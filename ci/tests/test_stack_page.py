"""Tests that docs/stack.md has the facts of template.yaml. A failure prints the rows that are missing.

usage: TRANSLATED_TEMPLATE=FILE.json pytest ci/tests/test_stack_page.py
FILE.json is the output of ci/translate.py.
"""

import json
import os
import re
from pathlib import Path

TEMPLATE = json.loads(Path(os.environ["TRANSLATED_TEMPLATE"]).read_text(encoding="utf-8"))
RESOURCES = TEMPLATE["Resources"]
PAGE = (Path(__file__).parents[2] / "docs/stack.md").read_text(encoding="utf-8").replace("\n", " ")
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
    assert len(rows) > 9
    check(rows)


def test_the_parameters():
    parameters = TEMPLATE["Parameters"]
    default = {name: it.get("Default") for name, it in parameters.items()}
    check(
        [
            f"`MaxWriteUnits` ({default['MaxWriteUnits']}, not less than {parameters['MaxWriteUnits']['MinValue']})",
            f"`LogRetentionDays` ({default['LogRetentionDays']})",
            f"`HISTORY_DAYS` ({default['HistoryDays']})",
            f"| `MemorySize` | `{default['MemorySize']}` MB",
            f"`KEY_CACHE_SECONDS` (0 to {parameters['KeyCacheSeconds']['MaxValue']})",
            f"`Rollout` (`{default['Rollout']}`)",
            f"`RequestsPerSecond` is {default['RequestsPerSecond']}",
        ]
    )


def test_the_function():
    function = RESOURCES["Function"]["Properties"]
    facts = [f"`{name}`" for name in function["Environment"]["Variables"]]
    facts += [f"`{name}`" for name in ["Handler", "Runtime", "Timeout", "LoggingConfig"]]
    facts += [f"`{function[name]}`" for name in ["Handler", "Runtime", "Timeout"]]
    facts += [f"`{function['LoggingConfig'][name]}`" for name in ["LogFormat", "ApplicationLogLevel"]]
    check(facts)


def test_the_versions():
    (group,) = of_type("AWS::CodeDeploy::DeploymentGroup").values()
    condition, alarms, at_once = group["AlarmConfiguration"]["Fn::If"]
    assert (condition, at_once) == ("IsGradual", {})
    (alias,) = [it for it in RESOURCES.values() if it["Type"] == "AWS::Lambda::Alias"]
    hook = RESOURCES["RolloutCheck"]["Properties"]
    facts = [group["DeploymentConfigName"]["Fn::Sub"][0].removesuffix("${ConfigName}"), alias["Properties"]["Name"]]
    facts += [it["Name"]["Fn::Sub"].split("-")[1] for it in alarms["Alarms"]]
    facts += group["AutoRollbackConfiguration"]["Events"]
    facts += group["TriggerConfigurations"]["Fn::If"][1][0]["TriggerEvents"]
    facts += [name for name, it in alias["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"].items() if it == {"Ref": "RolloutCheck"}]
    facts += [hook[name] for name in ["Runtime", "Handler", "MemorySize", "Timeout"]]
    facts += hook["Environment"]["Variables"]
    check([f"`{fact}`" for fact in facts])
    assert names(hook["LoggingConfig"]) == names(RESOURCES["Function"]["Properties"]["LoggingConfig"])


def listed(value):
    return value if isinstance(value, list) else [value]


def place(resource):
    """How the page names a resource of a statement."""
    ((kind, name),) = resource.items() if isinstance(resource, dict) else [("", resource)]
    if kind == "Fn::GetAtt":
        return f"`{name[0]}`" + (" stream" if name[1] == "StreamArn" else "")
    return "`" + re.sub(r"^arn:.*:function:|\.Arn|[${}]", "", name.replace("${AWS::StackName}", "STACK")) + "`"


def actions_and_resources(document):
    # Those with records.
    tables = [f"`{name}`" for name in of_type("AWS::DynamoDB::Table") if name not in ("KeysTable", "HistoryTable")]
    groups = {", ".join(tables): "the tables of records", ", ".join(f"{name} stream" for name in tables): "their streams"}
    for statement in document["Statement"]:
        statement = statement.get("Fn::If", [None, statement])[1]
        places = ", ".join(place(it) for it in listed(statement["Resource"]))
        actions = ", ".join(f"`{action}`" for action in listed(statement["Action"]))
        yield f"{actions} on {groups.get(places, places)}"


def test_the_roles_and_policies():
    rows = []
    for name, role in of_type("AWS::IAM::Role").items():
        (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
        ((kind, trusted),) = statement["Principal"].items()
        trusted = ", ".join(f"`{it}`" for it in (listed(trusted) if kind == "Service" else names(trusted)))
        rights = [it for policy in role.get("Policies", []) for it in actions_and_resources(policy["PolicyDocument"])]
        if name == "FunctionRole":
            # test_the_tables tests the actions on the tables.
            rights = ["the actions on the tables"] + [it for it in rights if "dynamodb:" not in it]
        rights += [f"`{policy}`" for policy in names(role.get("ManagedPolicyArns"))]
        rows.append(f"| `{name}` | {trusted} | {'; '.join(rights)} |")
    for name, policy in of_type("AWS::IAM::ManagedPolicy").items():
        rows.append(f"| `{name}` |  | {'; '.join(actions_and_resources(policy['PolicyDocument']))} |")
    assert len(rows) == 5
    check(rows)


def test_the_routes(operations):
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
    assert len(facts) == len(operations)
    cors = json.dumps(RESOURCES["Api"]["Properties"]["Body"]["x-amazon-apigateway-cors"])
    facts += [f"`{name}`" for name in re.findall(r"[a-z]+(?:-[a-z]+)+", cors) + ["$default"]]
    log_format = json.loads(settings["AccessLogSettings"]["Format"])
    facts += [", ".join(f"`{key}`: `{value.removeprefix('$context.')}`" for key, value in log_format.items())]
    group = RESOURCES["ApiLogGroup"]["Properties"]
    name = group["LogGroupName"]["Fn::Sub"][0].replace("${AWS::StackName}", "STACK").replace("${Uuid}", "UUID")
    facts.append(f"`{name}`, {group['RetentionInDays']} days")
    (domain,) = RESOURCES["Domain"]["Properties"]["DomainNameConfigurations"]
    facts.append(f"`{domain['EndpointType']}`, `{domain['SecurityPolicy']}`")
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
        sources = [it["MetricStat"]["Metric"] for it in metrics if "MetricStat" in it] or [alarm]
        names_of_metrics = [it["Namespace"] for it in sources] + [dimension["Name"] for it in sources for dimension in it.get("Dimensions", [])]
        source = dict.fromkeys(f"`{'STACK' if isinstance(it, dict) else it}`" for it in names_of_metrics)
        rows.append(f"| `{name}` | {metric} | {', '.join(source)} | {condition} |")
        assert names(alarm["AlarmActions"]) == names(alarm["OKActions"]) == ["AlarmTopic"]
    assert len(rows) > 7
    check(rows)
    conditions = {name: it["Condition"] for name, it in RESOURCES.items() if name.endswith("Alarm") and "Condition" in it}
    assert conditions == {"SilenceAlarm": "HasSilenceAlarm", "CertificateAlarm": "HasDomain"}


def test_the_metrics_of_the_log():
    facts = []
    for it in of_type("AWS::Logs::MetricFilter").values():
        (metric,) = it["MetricTransformations"]
        assert (metric["MetricNamespace"], metric["MetricValue"]) == ({"Ref": "AWS::StackName"}, "1")
        facts.append(f"`{it['FilterPattern']}` is `{metric['MetricName']}`")
    assert len(facts) == 2
    check(facts)


def test_the_alarm_about_written_units_counts_what_the_function_writes():
    metrics = [it["MetricStat"]["Metric"] for it in RESOURCES["WrittenUnitsAlarm"]["Properties"]["Metrics"] if "MetricStat" in it]
    assert {it["MetricName"] for it in metrics} == {"ConsumedWriteCapacityUnits"}
    counted = [[*names(it["Dimensions"]), *(dimension["Value"] for dimension in it["Dimensions"][1:])] for it in metrics]
    statements = RESOURCES["FunctionRole"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
    written = {name for it in statements if it["Sid"] != "Read" for name in names(it["Resource"])}
    tables = of_type("AWS::DynamoDB::Table")
    indexes = [[name, it["IndexName"]] for name in written for it in tables[name].get("GlobalSecondaryIndexes", [])]
    assert sorted(counted) == sorted([[name] for name in written] + indexes)
    assert (len(written), len(indexes)) == (6, 2)
