//! Router, template and events speak of the same six routes; tables and permissions are those that the code uses.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    time::Duration,
};

use serde_json::json;
use workspace_local::{events, tables::TEMPLATE};
use workspace_management::{operations::NAMES, service::TIMEOUT, store::Table};
use yaml_serde::Value;

use crate::{
    injector::{Fault, Injector, When, action, tables},
    support::{Answer, Setting, World, event, send, service},
};

fn template() -> Value {
    yaml_serde::from_str(TEMPLATE).unwrap()
}

/// The logical id that a `!Ref`, or a `!GetAtt` of its ARN, names.
fn referred(value: &Value) -> String {
    let Value::Tagged(tagged) = value else {
        panic!("{value:?} is no reference")
    };
    tagged
        .value
        .as_str()
        .unwrap()
        .trim_end_matches(".Arn")
        .to_owned()
}

/// The routes that the template declares, by the operation's name: the method and the path.
pub fn declared_routes() -> BTreeMap<String, (String, String)> {
    let template = template();
    let events = template["Resources"]["Function"]["Properties"]["Events"]
        .as_mapping()
        .unwrap();
    let route = |(name, event): (&Value, &Value)| {
        assert_eq!(event["Type"], "HttpApi");
        let text = |property: &str| event["Properties"][property].as_str().unwrap().to_owned();
        (
            snake_case(name.as_str().unwrap()),
            (text("Method"), text("Path")),
        )
    };
    events.iter().map(route).collect()
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for character in name.chars() {
        if character.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(character.to_lowercase());
    }
    snake
}

#[test]
fn operations_template_and_events_have_the_same_names() {
    let names: BTreeSet<_> = NAMES.into_iter().collect();

    assert_eq!(
        declared_routes()
            .keys()
            .map(String::as_str)
            .collect::<BTreeSet<_>>(),
        names
    );
    let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("events")).unwrap();
    let files: BTreeSet<_> = files
        .filter_map(|file| {
            let name = file.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(".json").map(str::to_owned)
        })
        .filter(|name| name != "env")
        .collect();
    assert_eq!(
        files.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        names
    );
}

#[test]
fn events_have_the_routes_of_the_template() {
    let routes = declared_routes();

    for (name, text) in events::all() {
        let event: serde_json::Value = serde_json::from_str(text).unwrap();
        let (method, template) = &routes[name];
        assert_eq!(event["routeKey"], format!("{method} {template}"));
        assert_eq!(event["requestContext"]["routeKey"], event["routeKey"]);
        assert_eq!(event["requestContext"]["http"]["method"], *method);
        let mut path = template.clone();
        for (parameter, value) in event["pathParameters"].as_object().unwrap() {
            path = path.replace(&format!("{{{parameter}}}"), value.as_str().unwrap());
        }
        assert_eq!(event["rawPath"], path);
        assert_eq!(event["requestContext"]["http"]["path"], path);
        assert_eq!(event["headers"]["content-type"], "*/*");
        assert_eq!(event["isBase64Encoded"], true);
    }
}

#[tokio::test]
async fn the_router_knows_the_routes_of_the_template() {
    let world = World::new().await;

    for (_, path) in declared_routes().values() {
        let path = path.replace(['{', '}'], "");
        world
            .send(event("GET", &path, &Default::default(), None))
            .await
            .is(405, "method_not_allowed");
    }
}

#[tokio::test]
async fn the_router_knows_the_operations_by_the_names_of_the_template() {
    let world = World::new().await;

    for (name, (_, path)) in declared_routes() {
        let path = path.replace("{org_id}", "acme").replace(['{', '}'], "");
        let allowed = world
            .issue("acme", |key| key.operations = Some(vec![name.clone()]))
            .await;
        let others = NAMES
            .map(str::to_owned)
            .into_iter()
            .filter(|other| *other != name);
        let refused = world
            .issue("acme", |key| key.operations = Some(others.collect()))
            .await;

        let answer = world.holder(&allowed).post(&path, json!({})).await;
        answer.is(422, "invalid_body");
        let answer = world.holder(&refused).post(&path, json!({})).await;
        answer.is(403, "operation_not_allowed");
    }
}

#[test]
fn the_local_environment_names_every_table() {
    let local = include_str!("../../events/local.env");

    for table in Table::ALL {
        let line = format!("{}={}", table.variable, table.logical_id);
        assert!(local.lines().any(|present| present == line), "{line}");
    }
}

#[test]
fn the_template_throttles_the_open_routes_below_the_others() {
    let template = template();
    let api = &template["Resources"]["Api"]["Properties"];
    let rate = |settings: &Value| settings["ThrottlingRateLimit"].as_u64().unwrap();
    let routes = declared_routes();

    let throttled = api["RouteSettings"].as_mapping().unwrap();

    assert!(
        throttled
            .values()
            .all(|settings| rate(settings) < rate(&api["DefaultRouteSettings"]))
    );
    let throttled: BTreeSet<_> = throttled
        .keys()
        .map(|route| route.as_str().unwrap().to_owned())
        .collect();
    let open = ["add_models", "create_data_store"]
        .map(|name| format!("{} {}", routes[name].0, routes[name].1));
    assert_eq!(throttled, BTreeSet::from(open));
}

#[test]
fn the_time_out_is_the_templates() {
    let timeout = &template()["Globals"]["Function"]["Timeout"];
    assert_eq!(timeout.as_u64().unwrap(), TIMEOUT.as_secs());
}

#[test]
fn the_template_declares_the_tables_that_the_code_knows() {
    let template = template();
    let variables = &template["Resources"]["Function"]["Properties"]["Environment"]["Variables"];
    let is_table = |(_, resource): &(&Value, &Value)| resource["Type"] == "AWS::DynamoDB::Table";
    let declared = template["Resources"]
        .as_mapping()
        .unwrap()
        .iter()
        .filter(is_table);

    assert_eq!(declared.count(), Table::ALL.len());
    for table in Table::ALL {
        let resource = &template["Resources"][table.logical_id];
        let properties = &resource["Properties"];
        let keys = properties["KeySchema"].as_sequence().unwrap().iter();
        let keys: Vec<_> = keys
            .map(|key| key["AttributeName"].as_str().unwrap())
            .collect();
        assert_eq!(keys, table.key, "{}", table.logical_id);
        assert_eq!(referred(&variables[table.variable]), table.logical_id);
        assert_eq!(resource["DeletionPolicy"], "Retain");
        assert_eq!(resource["UpdateReplacePolicy"], "Retain");
        assert_eq!(properties["BillingMode"], "PAY_PER_REQUEST");
        assert_eq!(
            properties["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"],
            true
        );
        assert_eq!(properties["SSESpecification"]["SSEEnabled"], true);
        assert_eq!(
            referred(&properties["DeletionProtectionEnabled"]),
            "DeletionProtection"
        );
        assert_eq!(
            referred(&template["Outputs"][table.logical_id]["Value"]),
            table.logical_id
        );
    }
}

/// Each action that the policy allows, with the table it allows it on.
fn allowed() -> BTreeSet<(String, String)> {
    let template = template();
    let policies = template["Resources"]["Function"]["Properties"]["Policies"]
        .as_sequence()
        .unwrap();
    let mut allowed = BTreeSet::new();
    for statement in policies
        .iter()
        .flat_map(|policy| policy["Statement"].as_sequence().unwrap())
    {
        assert_eq!(statement["Effect"], "Allow");
        let action = statement["Action"]
            .as_str()
            .unwrap()
            .strip_prefix("dynamodb:")
            .unwrap();
        for resource in statement["Resource"].as_sequence().unwrap() {
            allowed.insert((action.to_owned(), referred(resource)));
        }
    }
    allowed
}

#[tokio::test]
async fn the_policy_allows_the_actions_that_the_code_uses_and_no_other() {
    let world = World::new().await;
    let acme = world.acme().await;
    let users = |users: &[&str]| {
        let users: Vec<_> = users.iter().map(|user| json!({ "userid": user })).collect();
        json!({ "usersAddingToTeam": users })
    };
    let model = |id: u64| json!({ "id": id, "modelid": id.to_string() });
    let models = |models: &[serde_json::Value]| json!({ "aIModelsSelectedToAddToOrg": models });
    let teams = "/api/v1/project/acme/apollo/createNewTeamOnProject";
    let members = "/api/v1/project/acme/apollo/research/addUsersToTheTeam";
    let models_path = "/api/v1/org/acme/addModelsToOrg/chat";

    acme.post(teams, json!({ "teamName": "Research" }))
        .await
        .is_success();
    acme.post(teams, json!({ "teamName": "Research" }))
        .await
        .is_success();
    acme.post(members, users(&["ada"])).await.is_success();
    let another_team = members.replace("research", "nobody");
    world
        .acme()
        .await
        .post(&another_team, users(&["ada"]))
        .await
        .is(404, "no_such_team");
    acme.post(members, users(&["ada", "grace"]))
        .await
        .is_success();
    acme.post(models_path, models(&[model(1)]))
        .await
        .is_success();
    acme.post(models_path, models(&[model(1), model(2)]))
        .await
        .is_success();
    let voice = json!({ "type": "alloy", "enabled": true });
    acme.post("/api/v1/bot/playground/bot-7/voice", voice)
        .await
        .is_success();
    let logging = "/api/v1/project/acme/apollo/createLoggingInstance";
    acme.post(logging, json!({ "projectName": "Apollo" }))
        .await
        .is_success();
    let data_store = json!({ "dataStoreName": "Papers" });
    world
        .anonymous()
        .post("/api/v1/org/acme/dataStores/create", data_store)
        .await
        .is_success();

    let logical_id = |name: &str| {
        let named = Table::ALL
            .into_iter()
            .find(|table| world.tables.name(*table) == name);
        named.unwrap().logical_id.to_owned()
    };
    let mut used = BTreeSet::new();
    for (action, tables) in world.sent.take() {
        // A transaction takes the permission of each of its actions, and all of ours are updates.
        let action = if action == "TransactWriteItems" {
            "UpdateItem".to_owned()
        } else {
            action
        };
        used.extend(tables.iter().map(|name| (action.clone(), logical_id(name))));
    }
    assert_eq!(used, allowed());
}

/// The engine enforces no policy; a layer before it does.
#[tokio::test]
async fn every_permission_of_the_policy_is_needed() {
    let world = World::new().await;
    world.know_the_demo_key().await;
    let team = json!({ "project": "acme#apollo", "team_id": "research-team" });
    world.put(Table::TEAMS, team).await;
    let names = world.tables.clone();
    let name_of = move |logical_id: &str| {
        let table = Table::ALL
            .into_iter()
            .find(|table| table.logical_id == logical_id);
        names.name(table.unwrap()).to_owned()
    };
    let all: Vec<_> = events::all().collect();
    let mut from_members = all.clone();
    from_members.sort_by_key(|(operation, _)| *operation != "add_team_users");

    for (removed, table) in allowed() {
        let (action_of, table_of) = (removed.clone(), name_of(&table));
        let policy = Injector::new(move |request| {
            let needed = match action(request) {
                // A transaction takes the permission of each of its actions, and all of ours are updates.
                "TransactWriteItems" => "UpdateItem",
                action => action,
            };
            let is_denied = needed == action_of && tables(request).contains(&table_of);
            is_denied.then_some((Fault::Says(400, "AccessDeniedException"), When::Before))
        })
        .await;
        let mut failed = Vec::new();
        for order in [&all, &from_members] {
            let config = crate::support::config(&world.endpoint);
            let fresh = service(
                config.http_client(policy.clone()),
                world.tables.clone(),
                &Setting::default(),
            );
            for (operation, event) in order {
                let event = serde_json::from_str(event).unwrap();
                let answer = Answer::read(send(&fresh, event, Duration::from_secs(10)).await);
                if answer.status == 500 {
                    failed.push(*operation);
                }
            }
        }
        println!("without {removed} on {table}: {failed:?} fail");
        assert!(!failed.is_empty(), "{removed} on {table} is not needed");
    }
}

/// What the function counts, as its metrics are named.
const METRICS: [&str; 8] = [
    "Latency",
    "Requests",
    "ClientErrors",
    "ServerErrors",
    "Unauthenticated",
    "ColdStarts",
    "Retries",
    "Throttles",
];

#[test]
fn the_alarms_and_the_dashboard_show_metrics_that_there_are() {
    let template = template();
    let resources = template["Resources"].as_mapping().unwrap();
    let mut watched = BTreeSet::new();
    for alarm in resources
        .values()
        .filter(|resource| resource["Type"] == "AWS::CloudWatch::Alarm")
    {
        let properties = &alarm["Properties"];
        let description = properties["AlarmDescription"].as_str().unwrap();
        assert!(
            description.ends_with("See docs/operations.md, \"Alarms\"."),
            "{description}"
        );
        assert_eq!(properties["TreatMissingData"], "notBreaching");
        if properties["Namespace"]
            .as_str()
            .is_none_or(|name| !name.starts_with("AWS/"))
        {
            watched.extend(properties["MetricName"].as_str().map(str::to_owned));
        }
    }
    assert_eq!(
        watched,
        BTreeSet::from(["Throttles", "Unauthenticated"].map(str::to_owned))
    );
    assert!(watched.iter().all(|name| METRICS.contains(&name.as_str())));

    let body = sub(&resources["OperatorDashboard"]["Properties"]["DashboardBody"]);
    let dashboard: serde_json::Value = serde_json::from_str(&body).unwrap();
    let mut shown = BTreeSet::new();
    let mut operations = BTreeSet::new();
    for widget in dashboard["widgets"].as_array().unwrap() {
        let mut before: Vec<String> = Vec::new();
        for row in widget["properties"]["metrics"]
            .as_array()
            .into_iter()
            .flatten()
        {
            // "." stands for the same as in the row before, "..." for all that comes before the rest.
            let words: Vec<_> = row
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|word| word.as_str())
                .collect();
            let row: Vec<String> = match words.split_first() {
                Some((&"...", rest)) => {
                    let kept = before.len() - rest.len();
                    before[..kept]
                        .iter()
                        .cloned()
                        .chain(rest.iter().map(|word| (*word).to_owned()))
                        .collect()
                }
                _ => words
                    .iter()
                    .enumerate()
                    .map(|(place, word)| {
                        if *word == "." {
                            before[place].clone()
                        } else {
                            (*word).to_owned()
                        }
                    })
                    .collect(),
            };
            if row[0] == "AWS::StackName" {
                shown.insert(row[1].clone());
                operations.extend(row.get(3).cloned());
            }
            before = row;
        }
    }
    assert_eq!(shown, METRICS.map(str::to_owned).into());
    assert_eq!(operations, NAMES.map(str::to_owned).into());
}

/// The text of `!Sub`, with the names of what it substitutes in its place; each of them must be there.
fn sub(value: &Value) -> String {
    let Value::Tagged(tagged) = value else {
        panic!("{value:?} is no !Sub");
    };
    let mut text = tagged.value.as_str().unwrap().to_owned();
    let template = template();
    while let Some((before, rest)) = text.split_once("${") {
        let (name, after) = rest.split_once('}').unwrap();
        assert!(
            name.starts_with("AWS::") || !template["Resources"][name].is_null(),
            "{name}"
        );
        text = format!("{before}{name}{after}");
    }
    text
}
