//! The template, the contract, the events, the schemas and the documents agree with the code. These are
//! the first integration tests of the package, because a missing piece makes many others fail.
//!
//! A `Value` with a tag, such as `!Ref TeamsTable`, equals its text.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{
    collections::BTreeSet,
    fs,
    time::{Duration, SystemTime},
};

use test_support::invocation;
use workspace_local::{events, gateway::http_event};
use workspace_management::{
    auth::AnonymousOperations,
    operations::Operation,
    service::{Service, TIMEOUT},
    store::{MAX_CACHE_TIME, Store, Table},
};
use workspace_records::{
    columns::kinds,
    local::{sdk_config, table_names},
    schemas,
    tables::{self, Declaration},
};
use yaml_serde::{Value, from_str};

fn template() -> &'static Value {
    tables::template().unwrap()
}

/// The properties of a resource.
fn properties(resource: &str) -> Value {
    let properties = template()["Resources"][resource]["Properties"].clone();
    assert!(properties.is_mapping(), "no resource {resource}");
    properties
}

/// The logical ids of the resources of a type.
fn resources_of_type(kind: &str) -> BTreeSet<String> {
    let template = template();
    let resources = template["Resources"].as_mapping().unwrap().iter();
    let of_type = resources.filter(|(_, resource)| resource["Type"] == kind);
    of_type.map(|(id, _)| text(id)).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_sequence().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn contract() -> Value {
    from_str(include_str!("../openapi.yaml")).unwrap()
}

/// The path of an operation in the contract.
fn path(operation: Operation) -> Option<String> {
    let contract = contract();
    let mut paths = contract["paths"].as_mapping()?.iter();
    let found = paths.find(|(_, item)| item["post"]["operationId"] == operation.name());
    found.map(|(path, _)| text(path))
}

/// The pieces that are missing.
#[derive(Default)]
struct Missing(Vec<String>);

impl Missing {
    fn unless(&mut self, is_there: bool, piece: String) {
        if !is_there {
            self.0.push(piece);
        }
    }
}

/// Lists all of these pieces that are missing, and not only the first.
#[tokio::test]
async fn nothing_is_missing_for_any_operation_or_table() {
    let mut missing = Missing::default();
    let variants = include_str!("../src/operations.rs")
        .matches("=> \"")
        .count();
    let has_all = variants == Operation::ALL.len();
    missing.unless(has_all, "src/operations.rs: a variant in ALL".to_owned());
    let tables = include_str!("../src/store/tables.rs")
        .matches(": Self = Self {")
        .count();
    let has_all = tables == Table::ALL.len();
    missing.unless(has_all, "src/store/tables.rs: a table in ALL".to_owned());
    for operation in Operation::ALL {
        look_for_operation(*operation, &mut missing).await;
    }
    for table in Table::ALL {
        look_for_table(*table, &mut missing);
    }
    for table in schemas::tables() {
        look_for_readers(table, &mut missing);
    }
    for table in kinds() {
        look_for_alarm(table, &mut missing);
    }
    let Missing(missing) = missing;
    assert!(missing.is_empty(), "add this:\n{}", missing.join("\n"));
}

async fn look_for_operation(operation: Operation, missing: &mut Missing) {
    let name = operation.name();
    let path = path(operation);
    missing.unless(path.is_some(), format!("openapi.yaml: operationId {name}"));
    let path = path.unwrap_or_default();
    let function = properties("Function");
    let mut routes = function["Events"].as_mapping().unwrap().values();
    let is_in_template = routes.any(|route| {
        route["Properties"]["Path"] == path && route["Properties"]["Method"] == "POST"
    });
    missing.unless(
        is_in_template,
        format!("template.yaml: the route of {name}"),
    );
    let mut rows = include_str!("../README.md").lines();
    let has_row = rows.any(|row| row.starts_with(&format!("| `{name}` |")) && row.contains(&path));
    missing.unless(has_row, format!("README.md: a row of {name} with its path"));

    let event = events::get(operation).unwrap_or_default();
    let event: Value = from_str(&event).unwrap();
    let parameters = event["pathParameters"].as_mapping().into_iter().flatten();
    let raw_path = parameters.fold(path.clone(), |path, (parameter, value)| {
        path.replace(&format!("{{{}}}", text(parameter)), &text(value))
    });
    let is_right = event["rawPath"] == raw_path && event["routeKey"] == format!("POST {path}");
    missing.unless(
        is_right,
        format!("events/{name}.json: an event with this path"),
    );

    // Without a key, every request gets a 401, which needs no DynamoDB.
    let store = Store::new(sdk_config("http://dynamodb"), table_names(), Duration::ZERO);
    let service = Service::new(store, AnonymousOperations::Denied);
    let path = path.replace(['{', '}'], "");
    let event = http_event("POST", &path, &Default::default(), None);
    let now = SystemTime::now();
    let response = service.handle(invocation(&event, now, TIMEOUT), now).await;
    let is_routed = response.status_code == 401;
    missing.unless(is_routed, format!("src/router.rs: the path of {name}"));
}

fn look_for_table(table: Table, missing: &mut Missing) {
    let (id, variable) = (table.logical_id, table.variable);
    let mut look = |is_there, what| missing.unless(is_there, format!("template.yaml: {what}"));
    let resource = &template()["Resources"][id];
    look(resource["Type"] == "AWS::DynamoDB::Table", id.to_owned());
    let variables = &properties("Function")["Environment"]["Variables"];
    look(
        variables[variable] == id,
        format!("the variable {variable}"),
    );
    let outputs = &template()["Outputs"];
    look(outputs[id]["Value"] == id, format!("the output {id}"));
    let arn = outputs[format!("{id}Arn")]["Value"] == format!("{id}.Arn");
    look(arn, format!("the output {id}Arn"));
    let has_schema = schemas::text(table).is_some();
    let noun = table.noun;
    missing.unless(
        has_schema,
        format!("records/src/schemas.rs: the schema of {noun}"),
    );
}

/// What readers need. API keys have no readers.
fn look_for_readers(table: Table, missing: &mut Missing) {
    let id = table.logical_id;
    let mut look = |is_there, what| missing.unless(is_there, format!("template.yaml: {what}"));
    let (arn, stream) = (format!("{id}.Arn"), format!("{id}.StreamArn"));
    let output = &template()["Outputs"][format!("{id}StreamArn")]["Value"];
    look(*output == stream, format!("the output {id}StreamArn"));
    for (policy, sid, resource) in [
        ("RecordsReader", "ReadTables", &arn),
        ("RecordsFollower", "ScanTables", &arn),
        ("RecordsFollower", "ReadStreams", &stream),
    ] {
        let statements = properties(policy)["PolicyDocument"]["Statement"].clone();
        let mut statements = list(&statements).iter();
        let statement = statements.find(|statement| statement["Sid"] == sid);
        let mut resources = list(&statement.unwrap()["Resource"]).iter();
        let is_there = resources.any(|other| *other == **resource);
        look(
            is_there,
            format!("{resource} in the statement {sid} of {policy}"),
        );
    }
    let mut rows = include_str!("../docs/records.md").lines();
    let has_row = rows.any(|row| {
        let mut key = table.primary_key.iter();
        row.starts_with("| [`")
            && row.contains(&format!("| `{id}` |"))
            && key.all(|attribute| row.contains(&format!("`{attribute}`")))
    });
    missing.unless(
        has_row,
        format!("docs/records.md: a row of {id} with its keys"),
    );
}

/// What the alarm and the dashboard need for each table to which requests write.
fn look_for_alarm(table: Table, missing: &mut Missing) {
    let id = table.logical_id;
    let mut look = |is_there, what| missing.unless(is_there, format!("template.yaml: {what}"));
    let indexes = &template()["Resources"][id]["Properties"]["GlobalSecondaryIndexes"];
    let indexes = list(indexes).iter();
    let indexes = indexes.map(|index| Some(text(&index["IndexName"])));
    let alarm = properties("WrittenUnitsAlarm");
    let metrics = list(&alarm["Metrics"]);
    let expression = text(&metrics[0]["Expression"]);
    // Among other words, the ids of the metrics.
    let words: Vec<_> = expression
        .split(|c: char| !(c.is_ascii_lowercase() || c == '_'))
        .collect();
    for index in indexes.chain([None]) {
        let is_of = |metric: &&Value| {
            let dimensions = list(&metric["MetricStat"]["Metric"]["Dimensions"]);
            let index_name = dimensions.get(1).map(|dimension| text(&dimension["Value"]));
            !dimensions.is_empty() && dimensions[0]["Value"] == id && index_name == index
        };
        let metric = metrics.iter().find(is_of);
        let is_there = metric.is_some_and(|metric| words.contains(&&*text(&metric["Id"])));
        let index = index.unwrap_or_default();
        look(
            is_there,
            format!("{id} {index} in the expression of WrittenUnitsAlarm"),
        );
        let dashboard = text(&properties("OperatorDashboard")["DashboardBody"]);
        let of_index = format!("\"${{{id}}}\", \"GlobalSecondaryIndexName\", \"{index}\"");
        let of_table = format!("\"${{{id}}}\", {{ \"label\"");
        let part = if index.is_empty() { of_table } else { of_index };
        let is_there = dashboard.matches(&part).count() >= 2;
        look(
            is_there,
            format!("{id} {index} in two widgets of OperatorDashboard"),
        );
    }
}

/// Including reasons of which the contract has no example. The reason is the third string of the call.
#[test]
fn the_contract_and_the_documentation_have_every_reason_for_a_409() {
    let code = fs::read_to_string("src/error.rs").unwrap();
    let calls = code.split("Facts::conflict(").skip(1);
    let reasons: Vec<_> = calls.map(|call| call.split('"').nth(5).unwrap()).collect();
    assert!(reasons.len() >= 5, "{reasons:?}");
    let contract = contract();
    let problem = &contract["components"]["schemas"]["ConflictProblem"];
    let description = text(&problem["properties"]["reason"]["description"]);
    for reason in reasons {
        let is_there = description.contains(&format!("`{reason}`"));
        assert!(is_there, "openapi.yaml does not name the reason {reason}");
        let row = format!("\n| `{reason}` | ");
        let is_there = include_str!("../docs/api.md").contains(&row);
        assert!(is_there, "docs/api.md has no row of the reason {reason}");
    }
}

#[test]
fn the_routes_of_anonymous_callers_have_a_low_limit_while_they_are_allowed() {
    let api = properties("Api");
    let anonymous = Operation::ALL
        .iter()
        .filter(|operation| operation.allows_anonymous());
    let routes = anonymous.map(|operation| format!("POST {}", path(*operation).unwrap()));
    let settings = api["RouteSettings"].as_mapping().unwrap();
    let limited: BTreeSet<_> = settings.keys().map(text).collect();
    assert_eq!(limited, routes.collect());

    for limit in ["ThrottlingRateLimit", "ThrottlingBurstLimit"] {
        let default = &api["DefaultRouteSettings"][limit];
        for settings in settings.values() {
            let choice = list(&settings[limit]);
            assert_eq!(choice[0], "AnonymousCallersAllowed");
            assert!(choice[1].as_u64().unwrap() < 500, "{choice:?}");
            assert_eq!(choice[2], *default);
        }
    }
}

#[test]
fn the_template_declares_the_tables_of_the_code_and_protects_them() {
    let declared = resources_of_type("AWS::DynamoDB::Table");
    let expected = Table::ALL.iter().map(|table| table.logical_id.to_owned());
    assert_eq!(declared, expected.collect());

    for table in Table::ALL {
        let id = table.logical_id;
        let declaration = properties(id);
        let key = Declaration::of(*table).unwrap().key_schema.into_iter();
        let key: Vec<_> = key.map(|part| part.attribute_name).collect();
        assert_eq!(key, table.primary_key, "{id}");

        let resource = &template()["Resources"][id];
        assert_eq!(resource["DeletionPolicy"], "Retain", "{id}");
        assert_eq!(resource["UpdateReplacePolicy"], "Retain", "{id}");
        let recovery = &declaration["PointInTimeRecoverySpecification"];
        assert_eq!(recovery["PointInTimeRecoveryEnabled"], true, "{id}");
        let protection = list(&declaration["DeletionProtectionEnabled"]);
        assert_eq!(protection[0], "HasDeletionProtection", "{id}");
        assert_eq!(protection[1], true, "{id}");

        // Without a ceiling on an index, a flood of writes to it has none.
        let indexes = list(&declaration["GlobalSecondaryIndexes"]);
        for limited in indexes.iter().chain([&declaration]) {
            let ceiling = &limited["OnDemandThroughput"]["MaxWriteRequestUnits"];
            assert_eq!(*ceiling, "MaxWriteUnits", "{id}");
        }
        let stream = &declaration["StreamSpecification"]["StreamViewType"];
        assert_eq!(stream.is_null(), *table == Table::KEYS, "{id}");
    }
    // CloudFormation must create tables with indexes one after another.
    for (table, previous) in [
        ("TeamsTable", "KeysTable"),
        ("TeamMembersTable", "TeamsTable"),
    ] {
        assert_eq!(template()["Resources"][table]["DependsOn"], previous);
    }
}

#[test]
fn the_function_gets_the_variables_and_the_time_that_the_code_expects() {
    let function = properties("Function");
    let variables = &function["Environment"]["Variables"];
    let declared = variables.as_mapping().unwrap().keys().map(text);
    let config = include_str!("../src/config.rs");
    for name in declared.filter(|name| !name.ends_with("_TABLE")) {
        let is_read = config.contains(&format!("\"{name}\""));
        assert!(is_read, "the function does not read {name}");
    }
    assert_eq!(variables["ANONYMOUS_OPERATIONS"], "AnonymousOperations");
    assert_eq!(variables["KEY_CACHE_SECONDS"], "KeyCacheSeconds");
    let max = &template()["Parameters"]["KeyCacheSeconds"]["MaxValue"];
    assert_eq!(max.as_u64(), Some(MAX_CACHE_TIME.as_secs()));
    assert_eq!(function["Timeout"].as_u64(), Some(TIMEOUT.as_secs()));
    // Lambda drops lines below this level.
    assert_eq!(function["LoggingConfig"]["ApplicationLogLevel"], "INFO");
}

#[test]
fn the_logs_outlive_the_stack() {
    for name in ["LogGroup", "ApiLogGroup"] {
        let group = &template()["Resources"][name];
        // A failed creation must not leave groups that block the next one.
        assert_eq!(group["DeletionPolicy"], "RetainExceptOnCreate", "{name}");
        assert_eq!(group["UpdateReplacePolicy"], "Retain", "{name}");
    }
    let days = &properties("LogGroup")["RetentionInDays"];
    assert_eq!(*days, "LogRetentionDays");
    // The access log contains IP addresses.
    assert_eq!(properties("ApiLogGroup")["RetentionInDays"], 30);
    assert!(parameters_of("prod").contains(&"LogRetentionDays=400"));
}

#[test]
fn readers_can_neither_write_nor_read_api_keys() {
    let policies = resources_of_type("AWS::IAM::ManagedPolicy");
    assert_eq!(policies.len(), 2);
    for policy in policies {
        let document = yaml_serde::to_string(&properties(&policy)["PolicyDocument"]).unwrap();
        for forbidden in ["KeysTable", "*", "Put", "Update", "Delete", "Write"] {
            assert!(!document.contains(forbidden), "{policy}: {forbidden}");
        }
    }
}

#[test]
fn the_alarm_on_401_responses_uses_the_metric_of_the_log() {
    let filter = properties("UnauthenticatedFilter");
    assert_eq!(filter["LogGroupName"], "LogGroup");
    assert_eq!(filter["FilterPattern"], "{ $.status = 401 }");
    let metric = &filter["MetricTransformations"][0];
    // CloudWatch bills a metric for each hour in which it has a value.
    assert_eq!(metric.get("DefaultValue"), None);
    let alarm = properties("UnauthenticatedAlarm");
    assert_eq!(alarm.get("Dimensions"), None);
    assert_eq!(alarm["Namespace"], metric["MetricNamespace"]);
    assert_eq!(alarm["MetricName"], metric["MetricName"]);
}

/// The parameters that an environment of `samconfig.toml` sets, such as `Architecture=arm64`.
fn parameters_of(environment: &str) -> Vec<&'static str> {
    let section = format!("[{environment}.deploy.parameters]\n");
    let (_, section) = include_str!("../samconfig.toml")
        .split_once(&section)
        .unwrap();
    let mut lines = section.lines();
    let line = lines
        .find_map(|line| line.strip_prefix("parameter_overrides = \""))
        .unwrap();
    line.trim_end_matches('"').split(' ').collect()
}

#[test]
fn every_environment_sets_the_required_parameters() {
    let template = template();
    let parameters = template["Parameters"].as_mapping().unwrap();
    let required = parameters
        .iter()
        .filter(|(_, declaration)| declaration.get("Default").is_none());
    assert!(
        required
            .map(|(name, _)| text(name))
            .eq(["AnonymousOperations"])
    );
    assert!(parameters_of("default").contains(&"AnonymousOperations=allowed"));
    assert!(parameters_of("prod").contains(&"AnonymousOperations=denied"));
    for parameter in ["default", "prod"].into_iter().flat_map(parameters_of) {
        let (name, _) = parameter.split_once('=').unwrap();
        assert!(parameters.contains_key(name), "the template has no {name}");
    }
}
