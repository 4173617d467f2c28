//! The template, the contract, the events, the schemas and the documents agree with the code. Cargo
//! runs these tests before other integration tests, of which many fail if a piece is missing.
//!
//! A `Value` with a tag, such as `!Ref TeamsTable`, equals the string after the tag.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{collections::BTreeSet, env, fs};

use workspace_local::events;
use workspace_management::{
    operations::Operation, records::Table, service::FUNCTION_TIMEOUT, store::MAX_CACHE_TTL,
};
use workspace_records::{
    contract::{Description, contract},
    kinds::{ALL_TABLES, Kind, PrimaryKey, api_tables},
    schemas,
    tables::{self, TableDeclaration},
};
use yaml_serde::Value;

fn template() -> &'static Value {
    tables::template().unwrap()
}

fn properties(resource: &str) -> Value {
    let properties = template()["Resources"][resource]["Properties"].clone();
    assert!(properties.is_mapping(), "no resource {resource}");
    properties
}

/// The logical ids of the resources of a type.
fn resources_of_type(kind: &str) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for (id, resource) in template()["Resources"].as_mapping().unwrap() {
        if resource["Type"] == kind {
            ids.insert(text(id));
        }
    }
    ids
}

fn list(value: &Value) -> &[Value] {
    value.as_sequence().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[derive(Default)]
struct Missing(Vec<String>);

impl Missing {
    fn unless(&mut self, exists: bool, piece: String) {
        if !exists && !self.0.contains(&piece) {
            self.0.push(piece);
        }
    }

    fn unless_output(&mut self, name: &str, value: &str) {
        let exists = template()["Outputs"][name]["Value"] == value;
        self.unless(exists, format!("template.yaml: the output {name}"));
    }
}

/// Lists every missing piece, not only the first.
#[test]
fn nothing_is_missing_for_any_operation_or_table() {
    let mut missing = Missing::default();
    let operations = include_str!("../src/operations.rs").matches("=> \"");
    let has_all = operations.count() == Operation::ALL.len();
    missing.unless(has_all, "src/operations.rs: a variant in ALL".to_owned());
    let tables = include_str!("../src/records.rs").matches(": Self = Self {");
    let has_all = tables.count() == Table::ALL.len();
    missing.unless(has_all, "src/records.rs: a table in ALL".to_owned());
    for operation in Operation::ALL {
        look_for_operation(*operation, &mut missing);
    }
    for table in Table::ALL {
        look_for_table(*table, &mut missing);
    }
    for table in &ALL_TABLES {
        look_for_operators_and_backup(*table, &mut missing);
    }
    for table in schemas::tables() {
        look_for_readers(table, &mut missing);
    }
    for table in api_tables() {
        look_for_alarm(table, &mut missing);
    }
    let Missing(missing) = missing;
    assert!(missing.is_empty(), "add this:\n{}", missing.join("\n"));
}

fn look_for_operation(operation: Operation, missing: &mut Missing) {
    let name = operation.name();
    let description = Description::find(operation);
    let piece = format!("openapi.yaml: operationId {name}");
    missing.unless(description.is_some(), piece);
    let path = description.map_or("", |description| description.path);
    let function = properties("Function");
    let mut routes = function["Events"].as_mapping().unwrap().values();
    let has_route = routes.any(|route| {
        route["Properties"]["Path"] == path && route["Properties"]["Method"] == "POST"
    });
    missing.unless(has_route, format!("template.yaml: the route of {name}"));
    let mut lines = include_str!("../README.md").lines();
    let has_row = lines.any(|it| it.starts_with(&format!("| `{name}` |")) && it.contains(path));
    missing.unless(has_row, format!("README.md: a row of {name} with its path"));
    let has_row = include_str!("../docs/stack.md").contains(&format!("\n| `POST {path}` |"));
    missing.unless(has_row, format!("docs/stack.md: a row of {name}"));
}

/// Looks for what the files in `deploy/` and the documents for operators say about a table.
fn look_for_operators_and_backup(table: Table, missing: &mut Missing) {
    let id = table.logical_id;
    for (file, content, min_lines) in [
        ("backup", include_str!("../deploy/backup.yaml"), 1),
        ("operators", include_str!("../deploy/operators.yaml"), 2),
        ("role", include_str!("../deploy/role.yaml"), 3),
    ] {
        let lines = content.matches(&format!("}}-{id}-*\n")).count();
        let piece = format!("deploy/{file}.yaml: {id}, {min_lines} times");
        missing.unless(lines >= min_lines, piece);
    }
    let has_row = include_str!("../docs/stack.md").contains(&format!("\n| `{id}` |"));
    missing.unless(has_row, format!("docs/stack.md: a row of {id}"));
    let kind = Kind::of(table).plural;
    let pair = format!(" {kind}:{}", id.strip_suffix("Table").unwrap());
    let is_restored = include_str!("../docs/runbook.md").contains(&pair);
    missing.unless(is_restored, format!("docs/runbook.md: a restore of{pair}"));
}

fn look_for_table(table: Table, missing: &mut Missing) {
    let id = table.logical_id;
    let variable = table.env_variable;
    let variables = &properties("Function")["Environment"]["Variables"];
    let has_variable = variables[variable] == id;
    missing.unless(
        has_variable,
        format!("template.yaml: the variable {variable}"),
    );
    missing.unless_output(id, id);
    missing.unless_output(&format!("{id}Arn"), &format!("{id}.Arn"));
    if let Err(error) = schemas::parse(table) {
        let piece = format!("tools/records/records.schema.json: {error}");
        missing.unless(false, piece);
    }
}

/// Looks for what readers need. API keys have no readers.
fn look_for_readers(table: Table, missing: &mut Missing) {
    let id = table.logical_id;
    let arn = format!("{id}.Arn");
    let stream = format!("{id}.StreamArn");
    missing.unless_output(&format!("{id}StreamArn"), &stream);
    for (policy, sid, resource) in [
        ("RecordsReader", "ReadTables", &arn),
        ("RecordsFollower", "ScanTables", &arn),
        ("RecordsFollower", "ReadStreams", &stream),
    ] {
        let statements = properties(policy)["PolicyDocument"]["Statement"].clone();
        let mut statements = list(&statements).iter();
        let statement = statements.find(|it| it["Sid"] == sid).unwrap();
        let may_read = list(&statement["Resource"])
            .iter()
            .any(|it| *it == **resource);
        missing.unless(
            may_read,
            format!("template.yaml: {resource} in the statement {sid} of {policy}"),
        );
    }
    let mut lines = include_str!("../docs/records.md").lines();
    let has_row = lines.any(|line| {
        let mut key = table.primary_key_attributes.iter();
        line.starts_with(&format!("| `{}` | `{id}` |", Kind::of(table).definition))
            && line.ends_with(&format!("| `{}` |", Kind::of(table).plural))
            && key.all(|attribute| line.contains(&format!("`{attribute}`")))
    });
    let piece = format!("docs/records.md: a row of {id} with its primary key and kind");
    missing.unless(has_row, piece);
}

/// Looks for what the alarm and the dashboard need for each table to which requests write.
fn look_for_alarm(table: Table, missing: &mut Missing) {
    let id = table.logical_id;
    if template()["Resources"][id].is_null() {
        return missing.unless(false, format!("template.yaml: the table {id}"));
    }
    let alarm = properties("WrittenUnitsAlarm");
    let metrics = list(&alarm["Metrics"]);
    let expression = text(&metrics[0]["Expression"]);
    // These words include the ids of the metrics.
    let words: Vec<_> = expression
        .split(|c: char| !(c.is_ascii_lowercase() || c == '_'))
        .collect();
    let dashboard = text(&properties("OperatorDashboard")["DashboardBody"]);
    // The table itself, then its indexes.
    let mut indexes = vec![None];
    for index in list(&properties(id)["GlobalSecondaryIndexes"]) {
        indexes.push(Some(text(&index["IndexName"])));
    }
    for index in indexes {
        let metric = metrics.iter().find(|metric| {
            let dimensions = list(&metric["MetricStat"]["Metric"]["Dimensions"]);
            let index_name = dimensions.get(1).map(|dimension| text(&dimension["Value"]));
            !dimensions.is_empty() && dimensions[0]["Value"] == id && index_name == index
        });
        let has_metric = metric.is_some_and(|metric| words.contains(&&*text(&metric["Id"])));
        let widget = match &index {
            Some(name) => format!("\"${{{id}}}\", \"GlobalSecondaryIndexName\", \"{name}\""),
            None => format!("\"${{{id}}}\", {{ \"label\""),
        };
        let has_widgets = dashboard.matches(&widget).count() >= 2;
        let name = format!("{id} {}", index.unwrap_or_default());
        missing.unless(
            has_metric,
            format!("template.yaml: {name} in the expression of WrittenUnitsAlarm"),
        );
        missing.unless(
            has_widgets,
            format!("template.yaml: {name} in two widgets of OperatorDashboard"),
        );
    }
}

#[test]
fn the_events_are_the_examples_of_the_contract() {
    let is_update = env::var_os("UPDATE_EVENTS").is_some();
    for operation in Operation::ALL {
        let file = format!("events/{}.json", operation.name());
        let event = format!("{:#}\n", events::event(*operation));
        if is_update {
            fs::write(&file, &event).unwrap();
        }
        assert!(
            fs::read_to_string(&file).is_ok_and(|content| content == event),
            "{file} is not the example in openapi.yaml: run `UPDATE_EVENTS=1 cargo test --test agreement events`"
        );
    }
    let files = fs::read_dir("events").unwrap().count();
    let expected = Operation::ALL.len() + 1;
    assert_eq!(
        files, expected,
        "only env.json is not the event of an operation"
    );
}

/// Also checks codes and reasons without an example in the contract.
#[test]
fn the_contract_and_the_documentation_have_every_code_and_every_reason() {
    let code = include_str!("../src/error/report.rs");
    let documentation = include_str!("../docs/api.md");
    let mut expected = Vec::new();
    let classifications = code.split("=> (").skip(1);
    for (status, rest) in classifications.filter_map(|it| it.split_once(", \"")) {
        let (code, _) = rest.split_once('"').unwrap();
        expected.push(format!("\n| `{code}` | {status} | "));
    }
    let problem = &contract()["components"]["schemas"]["ConflictProblem"];
    let description = text(&problem["properties"]["reason"]["description"]);
    for call in code.split("conflict_reason = Some(\"").skip(1) {
        let (reason, _) = call.split_once('"').unwrap();
        let is_named = description.contains(&format!("`{reason}`"));
        assert!(is_named, "openapi.yaml does not name the reason {reason}");
        expected.push(format!("\n| `{reason}` | "));
    }
    assert!(expected.len() > 20, "{expected:?}");
    for row in expected {
        assert!(documentation.contains(&row), "docs/api.md has no row {row}");
    }
}

#[test]
fn routes_for_anonymous_callers_have_a_low_limit_if_anonymous_callers_are_allowed() {
    let api = properties("Api");
    let mut routes = BTreeSet::new();
    for operation in Operation::ALL {
        if operation.is_key_optional() {
            routes.insert(format!("POST {}", Description::of(*operation).path));
        }
    }
    let settings = api["RouteSettings"].as_mapping().unwrap();
    let limited: BTreeSet<_> = settings.keys().map(text).collect();
    assert_eq!(limited, routes);

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
fn the_documented_limits_are_the_defaults_of_the_template() {
    let default = |parameter: &str| {
        let default = &template()["Parameters"][parameter]["Default"];
        default.as_u64().unwrap()
    };
    let max_write_units = default("MaxWriteUnits");
    let thousands = max_write_units / 1000;
    for limit in [
        format!("| {} per second, bursts", default("RequestsPerSecond")),
        format!("| {thousands},{:03} per second |", max_write_units % 1000),
    ] {
        let is_documented = include_str!("../docs/api.md").contains(&limit);
        assert!(is_documented, "docs/api.md: {limit}");
    }

    // A transaction takes two units for each row. DynamoDB accepts 1,000 for each partition.
    let script = include_str!("../docs/import.py");
    let (_, rows_per_second) = script.split_once("\nROWS_PER_SECOND = ").unwrap();
    let (rows_per_second, _) = rows_per_second.split_once(' ').unwrap();
    let write_units = 2 * rows_per_second.parse::<u64>().unwrap();
    assert!(write_units <= 1000.min(max_write_units / 2));
}

#[test]
fn the_times_in_the_readme_are_those_of_the_last_benchmark() {
    let cells = |row: &'static str| -> Vec<&str> { row.split('|').map(str::trim).collect() };
    let document = include_str!("../docs/benchmarks.md");
    let (_, table) = document.split_once("\n| 256 MB |").unwrap();
    let titles = cells(table.lines().next().unwrap());
    for program in [
        "baseline-careful",
        "baseline-typical",
        "workspace-management",
    ] {
        let (_, row) = table.split_once(&format!("\n| {program} |")).unwrap();
        let row = cells(row.lines().next().unwrap());
        let time = |title: &str| {
            let column = titles.iter().position(|it| *it == title).unwrap();
            row[column].parse::<f64>().unwrap()
        };
        let start = time("start to first response, ms");
        let warm = time("warm response, ms");
        let p99 = time("warm response, ms, p99");
        let times = format!("| {start:.1} ms | {warm:.1} ms (p99: {p99:.1} ms) |");
        assert!(
            include_str!("../README.md").contains(&times),
            "README.md: {program} {times}"
        );
    }
}

#[test]
fn the_template_declares_the_tables_of_the_code_and_protects_them() {
    let declared = resources_of_type("AWS::DynamoDB::Table");
    let expected = ALL_TABLES.iter().map(|table| table.logical_id.to_owned());
    assert_eq!(declared, expected.collect());

    for table in &ALL_TABLES {
        let id = table.logical_id;
        let declaration = properties(id);
        let key_schema = TableDeclaration::of(*table).unwrap().key_schema;
        let key: Vec<_> = key_schema.iter().map(|it| &it.attribute_name).collect();
        assert_eq!(key, table.primary_key_attributes, "{id}");

        let resource = &template()["Resources"][id];
        assert_eq!(resource["DeletionPolicy"], "Retain", "{id}");
        assert_eq!(resource["UpdateReplacePolicy"], "Retain", "{id}");
        let recovery = &declaration["PointInTimeRecoverySpecification"];
        assert_eq!(recovery["PointInTimeRecoveryEnabled"], true, "{id}");
        let encryption = &properties("OrganizationsTable")["SSESpecification"];
        assert_eq!(declaration["SSESpecification"], *encryption, "{id}");
        let protection = list(&declaration["DeletionProtectionEnabled"]);
        assert_eq!(protection[0], "HasDeletionProtection", "{id}");
        assert_eq!(protection[1], true, "{id}");

        // An index needs a maximum too, because each write to the table also writes to the index.
        let indexes = list(&declaration["GlobalSecondaryIndexes"]);
        for limited in indexes.iter().chain([&declaration]) {
            let max = &limited["OnDemandThroughput"]["MaxWriteRequestUnits"];
            assert_eq!(*max, "MaxWriteUnits", "{id}");
        }
        let stream = &declaration["StreamSpecification"]["StreamViewType"];
        assert_eq!(stream.is_null(), *table == Table::API_KEYS, "{id}");
    }
    // CloudFormation must create tables with indexes one after the other.
    for (table, previous) in [
        ("TeamsTable", "KeysTable"),
        ("TeamMembersTable", "TeamsTable"),
    ] {
        assert_eq!(template()["Resources"][table]["DependsOn"], previous);
    }
}

#[test]
fn the_function_gets_the_variables_and_the_time_limit_that_the_code_expects() {
    let function = properties("Function");
    let variables = &function["Environment"]["Variables"];
    for name in variables.as_mapping().unwrap().keys().map(text) {
        let is_read = include_str!("../src/config.rs").contains(&format!("\"{name}\""));
        let is_table = name.ends_with("_TABLE");
        assert!(is_read || is_table, "the function does not read {name}");
    }
    assert_eq!(variables["ANONYMOUS_OPERATIONS"], "AnonymousOperations");
    assert_eq!(variables["KEY_CACHE_SECONDS"], "KeyCacheSeconds");
    let max = &template()["Parameters"]["KeyCacheSeconds"]["MaxValue"];
    assert_eq!(max.as_u64(), Some(MAX_CACHE_TTL.as_secs()));
    let timeout = FUNCTION_TIMEOUT.as_secs();
    assert_eq!(function["Timeout"].as_u64(), Some(timeout));
    // Lambda drops log lines below this level.
    assert_eq!(function["LoggingConfig"]["ApplicationLogLevel"], "INFO");
}

#[test]
fn the_logs_outlive_the_stack() {
    for name in ["LogGroup", "ApiLogGroup"] {
        let group = &template()["Resources"][name];
        // A failed creation must not leave log groups, because they would block the next creation.
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
    let samconfig = include_str!("../samconfig.toml");
    let (_, section) = samconfig.split_once(&section).unwrap();
    let (_, overrides) = section.split_once("parameter_overrides = \"").unwrap();
    let (overrides, _) = overrides.split_once('"').unwrap();
    overrides.split(' ').collect()
}

#[test]
fn every_environment_sets_the_required_parameters() {
    let template = template();
    let parameters = template["Parameters"].as_mapping().unwrap();
    let required: Vec<_> = parameters
        .iter()
        .filter(|(_, declaration)| declaration.get("Default").is_none())
        .map(|(name, _)| text(name))
        .collect();
    assert_eq!(required, ["AnonymousOperations"]);
    assert!(parameters_of("default").contains(&"AnonymousOperations=allowed"));
    assert!(parameters_of("prod").contains(&"AnonymousOperations=denied"));
    for environment in ["default", "prod"] {
        for parameter in parameters_of(environment) {
            let (name, _) = parameter.split_once('=').unwrap();
            assert!(parameters.contains_key(name), "the template has no {name}");
        }
    }
}

#[test]
fn every_kind_has_a_primary_key() {
    for table in &ALL_TABLES {
        let partition = vec!["id"; Kind::of(*table).partition_key_parts.len()].join("#");
        // The id of a model can contain `#`.
        let values = [partition.as_str(), "type#a#b"];
        let item = table.primary_key(&values[..table.primary_key_attributes.len()]);
        let key = PrimaryKey::of(*table, &item);
        let key = key.filter(|key| !matches!(key, PrimaryKey::Malformed { .. }));
        let is_same = key.is_some_and(|key| key.table() == *table && key.to_item() == item);
        assert!(is_same, "{}: see PrimaryKey", table.logical_id);
        let malformed = table.primary_key(&["a#b#c#d", "type#id"]);
        let key = PrimaryKey::of(*table, &malformed);
        let is_malformed = matches!(key, Some(PrimaryKey::Malformed { .. }));
        assert_eq!(is_malformed, partition.contains('#'));
    }
}
