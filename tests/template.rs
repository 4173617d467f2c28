//! `template.yaml` declares what the code uses, and protects the records and the logs. A `Value` with
//! a tag, such as `!Ref TeamsTable`, equals its text.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::collections::BTreeSet;

use workspace_local::events;
use workspace_management::{operation::Operation, service::TIMEOUT, store::Table};
use workspace_records::tables::{self, Declaration};
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

/// The path of an operation in the contract.
fn path(operation: Operation) -> String {
    let contract: Value = from_str(include_str!("../openapi.yaml")).unwrap();
    let mut paths = contract["paths"].as_mapping().unwrap().iter();
    let found = paths.find(|(_, item)| item["post"]["operationId"] == operation.name());
    text(found.expect("a path").0)
}

#[test]
fn each_operation_has_one_route_and_an_event_and_a_row_in_the_readme() {
    let function = properties("Function");
    let routes = function["Events"].as_mapping().unwrap().values();
    let routes = routes.map(|event| {
        assert_eq!(event["Properties"]["Method"], "POST");
        text(&event["Properties"]["Path"])
    });
    let paths = Operation::ALL.iter().map(|operation| path(*operation));
    assert_eq!(routes.collect::<BTreeSet<_>>(), paths.collect());

    for operation in Operation::ALL {
        let (name, path) = (operation.name(), path(*operation));
        let event: Value = from_str(events::get(*operation)).unwrap();
        assert_eq!(event["routeKey"], format!("POST {path}"), "{name}");
        let parameters = event["pathParameters"].as_mapping().unwrap().iter();
        let raw_path = parameters.fold(path.clone(), |path, (parameter, value)| {
            path.replace(&format!("{{{}}}", text(parameter)), &text(value))
        });
        assert_eq!(event["rawPath"], raw_path, "{name}");
        let mut rows = include_str!("../README.md").lines();
        let row = rows.find(|row| row.starts_with(&format!("| `{name}` |")));
        assert!(row.unwrap().contains(&path), "{name}");
    }
}

#[test]
fn the_routes_of_anonymous_callers_have_a_low_limit_while_they_are_allowed() {
    let api = properties("Api");
    let anonymous = Operation::ALL
        .iter()
        .filter(|operation| operation.allows_anonymous());
    let routes = anonymous.map(|operation| format!("POST {}", path(*operation)));
    let settings = api["RouteSettings"].as_mapping().unwrap();
    let limited: BTreeSet<_> = settings.keys().map(text).collect();
    assert_eq!(limited, routes.collect());

    for limit in ["ThrottlingRateLimit", "ThrottlingBurstLimit"] {
        let default = &api["DefaultRouteSettings"][limit];
        for settings in settings.values() {
            let choice = list(&settings[limit]);
            assert_eq!(choice[0], "AnonymousCallersAllowed");
            assert!(choice[1].as_u64() < default.as_u64(), "{choice:?}");
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
        let outputs = &template()["Outputs"];
        assert_eq!(outputs[id]["Value"], id);
        assert_eq!(outputs[format!("{id}Arn")]["Value"], format!("{id}.Arn"));
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
    for table in Table::ALL {
        assert_eq!(variables[table.variable], table.logical_id);
    }
    let declared = variables.as_mapping().unwrap().keys().map(text);
    let config = include_str!("../src/config.rs");
    for name in declared.filter(|name| !name.ends_with("_TABLE")) {
        let is_read = config.contains(&format!("\"{name}\""));
        assert!(is_read, "the function does not read {name}");
    }
    assert_eq!(variables["ANONYMOUS_OPERATIONS"], "AnonymousOperations");
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
