//! `template.yaml` declares the routes, tables and settings that the code expects.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use workspace_local::tables::TEMPLATE;
use workspace_management::{operation::Operation, service::TIMEOUT, store::Table};
use yaml_serde::Value;

use crate::{
    cloudformation::{Stack, text},
    support::{TestApp, event, operation_event},
};

pub fn template() -> Value {
    yaml_serde::from_str(TEMPLATE).unwrap()
}

/// The method and the path of each route that the template declares, by the name of its operation.
pub fn declared_routes() -> BTreeMap<String, (String, String)> {
    let template = template();
    let events = &template["Resources"]["Function"]["Properties"]["Events"];
    let route = |(name, event): (&Value, &Value)| {
        assert_eq!(event["Type"], "HttpApi");
        let text = |property: &str| event["Properties"][property].as_str().unwrap().to_owned();
        (
            snake_case(name.as_str().unwrap()),
            (text("Method"), text("Path")),
        )
    };
    events.as_mapping().unwrap().iter().map(route).collect()
}

fn snake_case(camel: &str) -> String {
    let mut snake = String::new();
    for character in camel.chars() {
        if character.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(character.to_lowercase());
    }
    snake
}

/// The route of an operation.
pub fn declared_route(operation: Operation) -> (String, String) {
    let name = operation.name();
    let route = declared_routes().remove(name);
    route.unwrap_or_else(|| panic!("template.yaml has no event for the operation {name}"))
}

#[test]
fn the_template_has_an_event_for_each_operation_and_no_other() {
    let names = Operation::ALL.iter().map(|operation| operation.name());
    let names: BTreeSet<_> = names.map(str::to_owned).collect();
    let routes: BTreeSet<_> = declared_routes().into_keys().collect();
    assert_eq!(routes, names);
}

#[test]
fn the_files_in_events_have_the_routes_of_the_template() {
    for operation in Operation::ALL {
        let event = operation_event(*operation);
        let (method, route) = declared_route(*operation);
        let route_key = format!("{method} {route}");
        assert_eq!(event["routeKey"], route_key, "{operation:?}");
        assert_eq!(event["requestContext"]["routeKey"], route_key);
        assert_eq!(event["requestContext"]["http"]["method"], method);
        let mut path = route;
        for (parameter, value) in event["pathParameters"].as_object().unwrap() {
            path = path.replace(&format!("{{{parameter}}}"), value.as_str().unwrap());
        }
        assert_eq!(event["rawPath"], path, "{operation:?}");
        assert_eq!(event["requestContext"]["http"]["path"], path);
        assert_eq!(event["isBase64Encoded"], true);
    }
}

#[tokio::test]
async fn the_router_has_the_routes_of_the_template() {
    let app = TestApp::new().await;

    for operation in Operation::ALL {
        let (_, path) = declared_route(*operation);
        let path = path.replace("{org_id}", "acme").replace(['{', '}'], "");
        let get = event("GET", &path, &Default::default(), None);
        let response = app.send(get).await;
        response.assert_problem(405, "method_not_allowed");

        // A key that is allowed to call only this operation identifies it.
        let name = operation.name().to_owned();
        let key = app
            .issue_key("acme", |key| key.operations = Some(vec![name]))
            .await;
        let response = app.with_key(&key).post(&path, json!({})).await;
        response.assert_problem(422, "invalid_body");
    }
}

/// The rate and the burst of each route for which `RouteSettings` has some, and of the others.
fn throttles(anonymous: &str) -> (BTreeMap<String, (u64, u64)>, (u64, u64)) {
    let resources = Stack::new(&[("AnonymousOperations", anonymous)]).resources();
    let api = &resources["Api"].properties;
    let limits = |settings: &Value| {
        let limit = |name: &str| settings[name].as_u64().unwrap();
        (limit("ThrottlingRateLimit"), limit("ThrottlingBurstLimit"))
    };
    let routes = api["RouteSettings"].as_mapping().unwrap().iter();
    let routes = routes.map(|(route, settings)| (text(route), limits(settings)));
    (routes.collect(), limits(&api["DefaultRouteSettings"]))
}

#[test]
fn the_routes_of_anonymous_callers_have_a_low_limit_while_they_are_allowed() {
    let (open, default) = throttles("allowed");
    let anonymous = Operation::ALL.iter();
    let anonymous = anonymous.filter(|operation| operation.allows_anonymous());
    let anonymous = anonymous.map(|operation| {
        let (method, path) = declared_route(*operation);
        (format!("{method} {path}"), (5, 50))
    });
    assert_eq!(open, anonymous.collect());
    assert_eq!(default, (500, 1000));

    let (closed, default) = throttles("denied");
    assert!(
        closed.values().all(|limits| *limits == default),
        "{closed:?}"
    );
}

#[test]
fn every_table_and_index_has_the_ceiling() {
    let resources = Stack::new(&[("MaxWriteUnits", "7")]).resources();
    for table in Table::ALL {
        let table = &resources[table.logical_id];
        for limited in table.indexes().chain([&table.properties]) {
            let throughput = limited["OnDemandThroughput"].as_mapping().unwrap();
            let limits: Vec<_> = throughput
                .iter()
                .map(|(name, limit)| (text(name), text(limit)))
                .collect();
            assert_eq!(
                limits,
                [("MaxWriteRequestUnits".to_owned(), "7".to_owned())]
            );
        }
    }
}

/// CloudFormation's documentation requires it.
#[test]
fn tables_with_indexes_are_created_one_after_another() {
    let tables = Stack::new(&[]).of_type("AWS::DynamoDB::Table");
    let indexed = tables
        .iter()
        .filter(|(_, table)| table.indexes().count() > 0);
    let indexed: BTreeSet<_> = indexed.map(|(name, _)| name.as_str()).collect();
    // Each but the first waits for a different one.
    let resources = &template()["Resources"];
    let awaited = indexed.iter().map(|name| &resources[name]["DependsOn"]);
    let awaited: BTreeSet<_> = awaited.filter_map(Value::as_str).collect();
    assert!(awaited.is_subset(&indexed), "{awaited:?}");
    assert_eq!(awaited.len(), indexed.len() - 1, "{awaited:?}");
}

#[test]
fn the_timeout_is_that_of_the_template() {
    let timeout = &template()["Globals"]["Function"]["Timeout"];
    assert_eq!(timeout.as_u64().unwrap(), TIMEOUT.as_secs());
}

#[test]
fn what_costs_extra_and_no_alarm_needs_is_off_by_default() {
    let names = ["XRay", "DetailedApiMetrics", "ContributorInsights"];
    for name in names {
        assert_eq!(template()["Parameters"][name]["Default"], "false", "{name}");
    }
    for value in ["false", "true"] {
        let parameters = names.map(|name| (name, value));
        let stack = Stack::new(&parameters);
        let tracing = if value == "true" {
            "Active"
        } else {
            "PassThrough"
        };
        assert_eq!(stack.section("Globals")["Function"]["Tracing"], tracing);
        let resources = stack.resources();
        let api = &resources["Api"].properties;
        let routes = api["RouteSettings"].as_mapping().unwrap().values();
        for settings in routes.chain([&api["DefaultRouteSettings"]]) {
            assert_eq!(text(&settings["DetailedMetricsEnabled"]), value);
        }
        for table in Table::ALL {
            let table = &resources[table.logical_id];
            for table_or_index in table.indexes().chain([&table.properties]) {
                let insights = &table_or_index["ContributorInsightsSpecification"];
                assert_eq!(text(&insights["Enabled"]), value);
            }
        }
    }
}

#[test]
fn the_logs_outlive_the_stack() {
    let resources = Stack::new(&[("LogRetentionDays", "7")]).resources();
    for name in ["LogGroup", "ApiLogGroup"] {
        let group = &template()["Resources"][name];
        // A failed creation must not leave groups that block the next one.
        assert_eq!(group["DeletionPolicy"], "RetainExceptOnCreate", "{name}");
        assert_eq!(group["UpdateReplacePolicy"], "Retain", "{name}");
        assert_eq!(text(&resources[name].properties["RetentionInDays"]), "7");
    }
    assert_eq!(parameters_of("prod")["LogRetentionDays"], "400");
    let name = &resources["ApiLogGroup"].properties["LogGroupName"];
    assert_eq!(*name, "/aws/vendedlogs/AWS::StackName-api-uuid");
}

#[test]
fn a_custom_domain_disables_the_default_endpoint() {
    for (domain, is_disabled) in [("", false), ("api.example.com", true)] {
        let resources = Stack::new(&[("DomainName", domain)]).resources();
        let api = &resources["Api"].properties;
        assert_eq!(api["DisableExecuteApiEndpoint"], is_disabled, "{domain:?}");
    }
}

/// CloudFormation passes parameters of every type as text.
#[test]
fn conditions_compare_parameters_with_text() {
    fn assert_compares_text(condition: &Value) {
        let Value::Tagged(function) = condition else {
            return;
        };
        let Value::Sequence(arguments) = &function.value else {
            return;
        };
        if function.tag == "Equals" {
            assert!(arguments[1].is_string(), "{condition:?}");
        }
        arguments.iter().for_each(assert_compares_text);
    }
    for condition in template()["Conditions"].as_mapping().unwrap().values() {
        assert!(matches!(condition, Value::Tagged(_)), "{condition:?}");
        assert_compares_text(condition);
    }
}

#[test]
fn readers_can_neither_write_nor_read_api_keys() {
    let resources = Stack::new(&[]).resources();
    for name in ["RecordsReader", "RecordsFollower"] {
        let statements = &resources[name].properties["PolicyDocument"]["Statement"];
        for statement in statements.as_sequence().unwrap() {
            let texts = |member: &str| match &statement[member] {
                Value::Sequence(values) => values.iter().map(text).collect(),
                value => vec![text(value)],
            };
            for action in texts("Action") {
                let action = action.strip_prefix("dynamodb:").unwrap();
                let verbs = ["BatchGet", "Describe", "Get", "List", "Query", "Scan"];
                let is_read = verbs.iter().any(|verb| action.starts_with(verb));
                assert!(is_read && !action.contains('*'), "{name}: {action}");
            }
            for resource in texts("Resource") {
                let (table, _) = resource.split_once('.').expect("an attribute of a table");
                let mut tables = Table::ALL.iter().filter(|other| **other != Table::KEYS);
                let is_record_table = tables.any(|other| other.logical_id == table);
                assert!(is_record_table, "{name}: {resource}");
            }
        }
    }
}

/// The line of a request has the level INFO or ERROR.
#[test]
fn lambda_drops_no_line_of_a_request() {
    let function = &template()["Resources"]["Function"]["Properties"];
    assert_eq!(function["LoggingConfig"]["ApplicationLogLevel"], "INFO");
}

#[test]
fn the_alarm_on_401_responses_uses_the_metric_of_the_log() {
    let resources = Stack::new(&[]).resources();
    let filter = &resources["UnauthenticatedFilter"].properties;
    assert_eq!(filter["LogGroupName"], "LogGroup");
    assert_eq!(filter["FilterPattern"], "{ $.status = 401 }");
    let [metric] = &filter["MetricTransformations"].as_sequence().unwrap()[..] else {
        panic!("{filter:?}")
    };
    // CloudWatch bills a metric for each hour in which it has a value.
    assert_eq!(metric.get("DefaultValue"), None);
    assert_eq!(metric["MetricValue"], "1");
    let alarm = &resources["UnauthenticatedAlarm"].properties;
    assert_eq!(alarm.get("Dimensions"), None);
    assert_eq!(alarm["Namespace"], metric["MetricNamespace"]);
    assert_eq!(alarm["MetricName"], metric["MetricName"]);
}

#[test]
fn the_template_declares_the_tables_of_the_code_and_their_variables() {
    let stack = Stack::new(&[]);
    let (resources, outputs) = (stack.resources(), stack.section("Outputs"));
    let variables = &resources["Function"].properties["Environment"]["Variables"];
    let declared = stack.of_type("AWS::DynamoDB::Table");
    let declared: BTreeSet<_> = declared.keys().map(String::as_str).collect();
    let expected = Table::ALL.iter().map(|table| table.logical_id);
    assert_eq!(declared, expected.collect());

    for table in Table::ALL {
        let id = table.logical_id;
        let key = resources[id].properties["KeySchema"].as_sequence();
        let key: Vec<_> = key
            .unwrap()
            .iter()
            .map(|attribute| attribute["AttributeName"].as_str().unwrap())
            .collect();
        assert_eq!(key, table.primary_key, "{id}");
        assert_eq!(variables[table.variable], id);
        assert_eq!(outputs[id]["Value"], id);
        assert_eq!(outputs[format!("{id}Arn")]["Value"], format!("{id}.Arn"));
        let stream = outputs.get(format!("{id}StreamArn"));
        let stream = stream.map(|output| text(&output["Value"]));
        let expected = (*table != Table::KEYS).then(|| format!("{id}.StreamArn"));
        assert_eq!(stream, expected);
    }
}

#[test]
fn the_table_in_the_readme_has_the_routes_of_the_template() {
    let readme = include_str!("../../README.md");

    for operation in Operation::ALL {
        let (name, (_, path)) = (operation.name(), declared_route(*operation));
        let has_row = readme
            .lines()
            .any(|line| line.starts_with(&format!("| `{name}` |")) && line.contains(&path));
        assert!(has_row, "the API table in README.md has no row for {name}");
    }
}

/// The parameters that an environment of `samconfig.toml` sets in its deployments.
fn parameters_of(environment: &str) -> BTreeMap<String, String> {
    let samconfig = include_str!("../../samconfig.toml");
    let section = format!("[{environment}.deploy.parameters]\n");
    let (_, section) = samconfig.split_once(&section).expect("the section");
    let mut lines = section.lines().take_while(|line| !line.starts_with('['));
    let overrides = lines.find_map(|line| line.strip_prefix("parameter_overrides = "));
    let overrides = overrides.expect("the parameters").trim_matches('"');
    let pairs = overrides
        .split(' ')
        .map(|pair| pair.split_once('=').unwrap());
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn anonymous_callers_are_allowed_only_where_an_environment_says_so() {
    let template = template();
    let parameter = &template["Parameters"]["AnonymousOperations"];
    assert!(parameter.get("Default").is_none(), "{parameter:?}");
    assert_eq!(parameters_of("default")["AnonymousOperations"], "allowed");
    assert_eq!(parameters_of("prod")["AnonymousOperations"], "denied");
}

#[test]
fn every_environment_sets_the_required_parameters() {
    for environment in ["default", "prod"] {
        let set = parameters_of(environment);
        for (name, parameter) in template()["Parameters"].as_mapping().unwrap() {
            let name = name.as_str().unwrap();
            let has_value = parameter.get("Default").is_some() || set.contains_key(name);
            assert!(has_value, "{environment} does not set {name}");
        }
        for (name, value) in set {
            let parameter = &template()["Parameters"][&*name];
            assert!(!parameter.is_null(), "{environment} sets {name}");
            if let Some(allowed) = parameter["AllowedValues"].as_sequence() {
                let is_allowed = allowed.iter().any(|allowed| match allowed {
                    Value::String(text) => *text == value,
                    number => number.as_i64().map(|n| n.to_string()) == Some(value.clone()),
                });
                assert!(is_allowed, "{environment}: {name}={value}");
            }
        }
    }
}

/// The descriptions in the template are for `sam deploy --guided` and CloudFormation's console.
#[test]
fn the_table_of_parameters_has_the_defaults_and_descriptions_of_the_template() {
    let documentation = include_str!("../../docs/deploying.md");

    for (name, parameter) in template()["Parameters"].as_mapping().unwrap() {
        let name = name.as_str().unwrap();
        let default = match &parameter["Default"] {
            Value::Null => "required".to_owned(),
            Value::String(default) if default.is_empty() => "empty".to_owned(),
            Value::String(default) => format!("`{default}`"),
            default => format!("`{}`", default.as_i64().unwrap()),
        };
        let description = parameter["Description"].as_str().unwrap();
        let row = format!("| `{name}` | {default} | {description} |");
        assert!(
            documentation.lines().any(|line| line == row),
            "docs/deploying.md has no row:\n{row}"
        );
    }
}
