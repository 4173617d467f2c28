//! `ctl/permissions.json` lists exactly the permissions that each command needs.
//!
//! The commands run with `--stack`, as on AWS, but all their requests go to a proxy. It records the
//! permissions that a request needs, and can deny one of them. It forwards the requests for records
//! to the local service, and responds to the others itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, OpenOptions},
    process::Output,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use aws_sdk_dynamodb::Client;
use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, StatusCode},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{net::TcpListener, runtime::Runtime, task::AbortHandle};
use ureq::Agent;
use workspace_local::{
    demo::{DEMO_KEY, key_record},
    fixtures,
    tables::{create_missing, sdk_config},
};
use workspace_management::store::{Table, TableNames};

use self::State::{Disabled, Empty, Full, NoOutput, Nothing, Orphaned, Restored, Rollback};
use crate::{
    server::{Server, agent},
    set, workspacectl,
};

/// An action and a resource.
type Permission = (String, String);

/// Commands that send no requests to AWS. The file has no entry for them.
const LOCAL: [&str; 2] = ["completions", "serve"];

/// A permission of `set` that is not tested. CloudFormation checks it when it expands the template,
/// and not for a request of the command.
const UNTESTED: (&str, &str) = (
    "cloudformation:CreateChangeSet",
    "transform/Serverless-2016-10-31",
);

const HINT: &str = "hint: Your AWS identity lacks a permission.";

/// What a command finds. Each run of a command has its own organization.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// There is no such organization.
    Nothing,
    /// The organization has no other records.
    Empty,
    /// The organization has a record in each table.
    Full,
    /// As `Full`, but the organization is disabled.
    Disabled,
    /// As `Full`, but the record of the organization is missing.
    Orphaned,
    /// As `Empty`, and the tables `ORG-LOGICAL_ID` contain a record each, as after a restore.
    Restored,
    /// As `Empty`, and standard output cannot be written.
    NoOutput,
    /// As `Nothing`, and CloudFormation rolls back the update of the stack.
    Rollback,
}

/// The entries of the file, each with the arguments and states that together need all of its
/// permissions. `ORG` is the organization, `KEY` the id of its key, and `FILE` an export of its
/// records.
#[rustfmt::skip] // keeps a table short
const RUNS: &[(&str, &str, State)] = &[
    ("doctor", "", Nothing),
    ("env", "", Nothing),
    ("keys check", "KEY", Full),
    ("keys create", "--org ORG", Empty),
    // Revokes the key that it cannot print.
    ("keys create", "--org ORG", NoOutput),
    ("keys list", "", Full),
    ("keys list", "--org ORG", Full),
    // Checks that there is such an organization, as `list` does.
    ("keys list", "--org ORG", Empty),
    ("keys revoke", "KEY", Full),
    ("keys revoke --all", "--org ORG --yes", Full),
    ("keys rotate", "KEY", Full),
    ("keys rotate --all", "--org ORG --yes", Full),
    ("list", "models", Full),
    ("list", "teams", Full),
    ("list", "members", Full),
    ("list", "voices", Full),
    ("list", "data-stores", Full),
    ("list", "logging-instances", Full),
    ("list", "models --org ORG", Full),
    ("list", "teams --org ORG --project apollo", Full),
    ("list", "members --org ORG --project apollo --team docs", Full),
    ("list", "voices --org ORG", Full),
    ("list", "data-stores --org ORG", Full),
    ("list", "logging-instances --org ORG", Full),
    ("list", "models --org ORG", Empty),
    ("list", "teams --org ORG", Full),
    ("list", "members --org ORG", Full),
    ("list", "members --org ORG --user ada", Full),
    ("orgs create", "ORG", Nothing),
    ("orgs disable", "ORG --wait 0", Full),
    ("orgs enable", "ORG", Disabled),
    ("orgs erase", "ORG --export FILE.new --wait 0 --yes", Disabled),
    ("orgs erase", "ORG --without-export --wait 0 --yes", Orphaned),
    ("orgs export", "ORG --out FILE", Full),
    ("orgs list", "", Full),
    ("orgs show", "ORG", Full),
    ("remove data-store", "--org ORG papers", Full),
    ("remove logging-instance", "--org ORG --project apollo", Full),
    ("remove member", "--org ORG --project apollo --team docs ada", Full),
    ("remove member --all-teams", "--org ORG ada --yes", Full),
    ("remove model", "--org ORG --type chat gpt-4o", Full),
    ("remove team", "--org ORG --project apollo docs --wait 0 --yes", Full),
    ("remove voice", "--org ORG bot-7", Full),
    ("restore", "--from FILE", Nothing),
    ("restore", "--from ORG-ModelsTable --to models", Restored),
    ("restore --to keys --keys", "--from ORG-KeysTable", Restored),
    ("set", "MemorySize=512", Nothing),
    ("set", "MemorySize=512", Rollback),
];

/// The permissions of each entry of the file.
fn permissions() -> BTreeMap<String, BTreeSet<Permission>> {
    let file = include_str!("../../permissions.json");
    let file: BTreeMap<String, BTreeMap<String, Vec<String>>> = serde_json::from_str(file).unwrap();
    let pairs = |actions: BTreeMap<String, Vec<String>>| {
        let pairs = actions.into_iter().flat_map(|(action, resources)| {
            let resources = resources.into_iter();
            resources.map(move |resource| (action.clone(), resource))
        });
        pairs.collect()
    };
    let entries = file.into_iter();
    entries
        .map(|(entry, actions)| (entry, pairs(actions)))
        .collect()
}

/// The commands below a command, from its help.
fn commands(parent: &[&str]) -> BTreeSet<String> {
    let output = workspacectl(parent).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.split_whitespace().next());
    let names: Vec<_> = names.filter(|name| *name != "help").collect();
    if names.is_empty() {
        return [parent.join(" ")].into();
    }
    let commands = names
        .iter()
        .map(|name| commands(&[parent, &[name]].concat()));
    commands.flatten().collect()
}

#[test]
fn every_command_has_permissions() {
    let commands = commands(&[]);
    assert!(commands.contains("orgs erase"), "{commands:?}");
    let entries = permissions().into_keys().map(|entry| {
        let words = entry.split(' ');
        let command = words.take_while(|word| !word.starts_with("--"));
        command.collect::<Vec<_>>().join(" ")
    });
    let local = LOCAL.map(str::to_owned);
    assert_eq!(entries.chain(local).collect::<BTreeSet<_>>(), commands);
}

#[test]
fn every_command_needs_exactly_its_permissions() {
    let entries: Vec<_> = permissions().into_iter().collect();
    let runs: BTreeSet<_> = RUNS.iter().map(|(entry, ..)| *entry).collect();
    let names = entries.iter().map(|(entry, _)| entry.as_str());
    assert_eq!(names.collect::<BTreeSet<_>>(), runs);
    let service = Service::start();
    let next = AtomicUsize::new(0);
    let check_next = || {
        let next = || entries.get(next.fetch_add(1, Ordering::Relaxed));
        while let Some((entry, listed)) = next() {
            check(&service, entry, listed);
        }
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(check_next);
        }
    });
    assert!(!service.server.valid_records().is_empty());
}

/// Runs a command with all permissions, and then without each of them.
fn check(service: &Service, entry: &str, listed: &BTreeSet<Permission>) {
    let mut used = BTreeMap::new();
    for run in RUNS.iter().filter(|run| run.0 == entry) {
        let (output, permissions) = service.run(run, None);
        let error = match run.2 {
            NoOutput => Some("cannot print the key, so it was revoked"),
            Rollback => Some("CloudFormation restored the previous values"),
            _ => None,
        };
        let text = text(&output);
        let is_as_expected = output.status.success() == error.is_none()
            && text.contains(error.unwrap_or_default())
            && !text.contains("AccessDenied");
        assert!(is_as_expected, "{run:?}: {text}");
        for permission in permissions {
            used.entry(permission).or_insert(run);
        }
    }
    let mut needed: BTreeSet<_> = used.keys().cloned().collect();
    if entry == "set" {
        needed.insert((UNTESTED.0.to_owned(), UNTESTED.1.to_owned()));
    }
    let surplus: Vec<_> = listed.difference(&needed).collect();
    let missing: Vec<_> = needed.difference(listed).collect();
    assert!(
        surplus.is_empty() && missing.is_empty(),
        "{entry} does not need {surplus:?} of the file, which lacks {missing:?}"
    );

    for (denied, run) in used {
        let (output, _) = service.run(run, Some(&denied));
        let text = text(&output);
        let is_as_expected = match (entry, &*denied.0) {
            ("doctor", "dynamodb:Scan") => output.status.success() && text.contains("skipped"),
            _ => output.status.code() == Some(1) && text.contains(HINT),
        };
        assert!(is_as_expected, "{run:?} without {denied:?}: {text}");
    }
}

/// What a command printed.
fn text(output: &Output) -> String {
    let text = [&*output.stdout, &*output.stderr].concat();
    String::from_utf8(text).unwrap()
}

/// The local service, which all commands share.
struct Service {
    server: Server,
    client: Client,
    runtime: Runtime,
    folder: TempDir,
    agent: Agent,
    /// The number of organizations.
    count: AtomicUsize,
}

impl Service {
    fn start() -> Self {
        let server = Server::start(&[]);
        Self {
            client: Client::from_conf(sdk_config(&server.dynamodb).build()),
            server,
            runtime: Runtime::new().unwrap(),
            folder: tempfile::tempdir().unwrap(),
            agent: agent(),
            count: AtomicUsize::new(0),
        }
    }

    /// Runs a command, without one of the permissions if one is denied. Returns its output and the
    /// permissions of its requests.
    fn run(
        &self,
        (command, arguments, state): &(&str, &str, State),
        denied: Option<&Permission>,
    ) -> (Output, BTreeSet<Permission>) {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let (org, key) = (format!("org{number:09}"), format!("key{number:09}"));
        let file = self.folder.path().join(&org);
        let file = file.to_str().unwrap();
        self.prepare(*state, &records(&org, &key), &org, file);
        let proxy = Arc::new(Proxy {
            dynamodb: self.server.dynamodb.clone(),
            agent: self.agent.clone(),
            denied: denied.cloned(),
            is_rolled_back: *state == Rollback,
            used: Mutex::default(),
            token: Mutex::default(),
        });
        let (url, task) = self.runtime.block_on(proxy.clone().listen());

        let line = format!("{command} {arguments}");
        let line = line.replace("ORG", &org).replace("KEY", &key);
        let words: Vec<_> = line.split_whitespace().collect();
        let words = words.into_iter().map(|word| word.replace("FILE", file));
        let mut process = workspacectl(&["--stack", "stack"]);
        process
            .args(words)
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "local")
            .env("AWS_SECRET_ACCESS_KEY", "local")
            .env("AWS_ENDPOINT_URL", url);
        if *state == NoOutput {
            let full = OpenOptions::new().write(true).open("/dev/full");
            process.stdout(full.unwrap());
        }
        let output = process.output().unwrap();
        task.abort();
        let used = proxy.used.lock().unwrap().clone();
        (output, used)
    }

    /// Brings the records of an organization into a state, and writes an export of them.
    fn prepare(&self, state: State, records: &[(Table, Value)], org: &str, file: &str) {
        let export = records.iter().map(|(table, record)| {
            let line = json!({ "table": table.noun, "record": record });
            format!("{line}\n")
        });
        fs::write(file, export.collect::<String>()).unwrap();
        for (table, record) in records {
            let mut record = record.clone();
            let is_organization = *table == Table::ORGANIZATIONS;
            let is_stored = match state {
                Nothing | Rollback => false,
                Empty | NoOutput | Restored => is_organization,
                Orphaned => !is_organization,
                Full | Disabled => true,
            };
            if state == Disabled && is_organization {
                record = fixtures::disabled_organization(org);
            }
            if is_stored {
                self.put(table.logical_id, &record);
            }
        }
        if state == Restored {
            let name = |table: Table| Ok::<_, ()>(format!("{org}-{}", table.logical_id));
            let tables = TableNames::new(name).unwrap();
            let created = self.runtime.block_on(create_missing(&self.client, &tables));
            created.unwrap();
            for (table, record) in records {
                self.put(tables.name(*table), record);
            }
        }
    }

    fn put(&self, table: &str, record: &Value) {
        let item = serde_dynamo::to_item(record).unwrap();
        let put = self.client.put_item().table_name(table);
        let put = self.runtime.block_on(put.set_item(Some(item)).send());
        put.unwrap();
    }
}

/// A record in each table.
fn records(org: &str, key: &str) -> Vec<(Table, Value)> {
    let mut api_key = serde_json::to_value(key_record(DEMO_KEY, org, "ci")).unwrap();
    api_key["key_id"] = json!(key);
    let records = vec![
        (Table::ORGANIZATIONS, fixtures::organization(org)),
        (Table::KEYS, api_key),
        (Table::MODELS, fixtures::model(org, "chat", "gpt-4o")),
        (Table::TEAMS, fixtures::team(org, "apollo", "docs", "Docs")),
        (
            Table::TEAM_MEMBERS,
            fixtures::member(org, "apollo", "docs", "ada"),
        ),
        (Table::BOT_VOICES, fixtures::bot_voice(org, "bot-7")),
        (
            Table::DATA_STORES,
            fixtures::data_store(org, "papers", "Papers"),
        ),
        (
            Table::LOGGING_INSTANCES,
            fixtures::logging_instance(org, "apollo"),
        ),
    ];
    assert_eq!(records.len(), Table::ALL.len());
    records
}

/// What a command reaches in place of AWS.
struct Proxy {
    /// The URL of the local service's DynamoDB.
    dynamodb: String,
    agent: Agent,
    denied: Option<Permission>,
    is_rolled_back: bool,
    used: Mutex<BTreeSet<Permission>>,
    /// The token of the stack's update, once there is one.
    token: Mutex<String>,
}

impl Proxy {
    /// Listens on a free port. Returns the URL, and the task that serves it.
    async fn listen(self: Arc<Self>) -> (String, AbortHandle) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let respond = move |headers: HeaderMap, body: Bytes| async move {
            tokio::task::block_in_place(|| self.respond(headers, &body))
        };
        let routes = Router::new().fallback(respond);
        let serve = axum::serve(listener, routes).into_future();
        (url, tokio::spawn(serve).abort_handle())
    }

    fn respond(&self, headers: HeaderMap, body: &[u8]) -> (StatusCode, String) {
        let Some(action) = headers.get("x-amz-target") else {
            return self.respond_to_form(std::str::from_utf8(body).unwrap());
        };
        let (_, action) = action.to_str().unwrap().split_once('.').unwrap();
        let action = action.to_owned();
        if self.is_denied(dynamodb_permissions(&action, body)) {
            let error = "com.amazon.coral.service#AccessDeniedException";
            let body = json!({ "__type": error, "Message": "not authorized" });
            return (StatusCode::BAD_REQUEST, body.to_string());
        }
        if action == "DescribeContinuousBackups" {
            // The local service has no backups.
            let recovery = json!({ "PointInTimeRecoveryStatus": "ENABLED" });
            let backups = json!({
                "ContinuousBackupsStatus": "ENABLED", "PointInTimeRecoveryDescription": recovery,
            });
            let body = json!({ "ContinuousBackupsDescription": backups });
            return (StatusCode::OK, body.to_string());
        }
        let (status, body) = self.forward(headers, body);
        if action != "DescribeTable" {
            return (status, body);
        }
        let mut table: Value = serde_json::from_str(&body).unwrap();
        table["Table"]["DeletionProtectionEnabled"] = json!(true);
        (status, table.to_string())
    }

    /// Records permissions. Returns whether one of them is denied.
    fn is_denied(&self, permissions: BTreeSet<Permission>) -> bool {
        let denied = self.denied.as_ref();
        let is_denied = denied.is_some_and(|denied| permissions.contains(denied));
        self.used.lock().unwrap().extend(permissions);
        is_denied
    }

    /// Responds as CloudFormation or STS, whose requests are forms.
    fn respond_to_form(&self, body: &str) -> (StatusCode, String) {
        let request = set::parse(body);
        let action = &*request["Action"];
        if action == "GetCallerIdentity" {
            // Needs no permission.
            let arn = "<Arn>arn:aws:iam::123456789012:user/ada</Arn>";
            let result = format!("<{action}Result>{arn}</{action}Result>");
            return (
                StatusCode::OK,
                format!("<{action}Response>{result}</{action}Response>"),
            );
        }
        assert_eq!(request["StackName"], "stack");
        let permission = (format!("cloudformation:{action}"), "STACK".to_owned());
        if self.is_denied([permission].into()) {
            let error = "<Code>AccessDenied</Code><Message>not authorized</Message>";
            let body = format!("<ErrorResponse><Error>{error}</Error></ErrorResponse>");
            return (StatusCode::FORBIDDEN, body);
        }
        let mut token = self.token.lock().unwrap();
        if action == "UpdateStack" {
            token.clone_from(&request["ClientRequestToken"]);
        }
        let status = match (token.is_empty(), self.is_rolled_back) {
            (true, _) => "CREATE_COMPLETE",
            (false, true) => "UPDATE_ROLLBACK_COMPLETE",
            (false, false) => "UPDATE_COMPLETE",
        };
        let (code, body) = set::STACK.respond(action, status, &token);
        (StatusCode::from_u16(code).unwrap(), body)
    }

    /// Sends a request to the local service.
    fn forward(&self, headers: HeaderMap, body: &[u8]) -> (StatusCode, String) {
        let mut request = ureq::http::Request::post(&self.dynamodb);
        *request.headers_mut().unwrap() = headers;
        let response = self.agent.run(request.body(body).unwrap());
        let mut response = response.unwrap();
        let body = response.body_mut().read_to_string().unwrap();
        (response.status(), body)
    }
}

/// The permissions that a request to DynamoDB needs.
fn dynamodb_permissions(action: &str, body: &[u8]) -> BTreeSet<Permission> {
    let request: Value = serde_json::from_slice(body).unwrap();
    if action != "TransactWriteItems" {
        return [(format!("dynamodb:{action}"), resource(&request))].into();
    }
    let items = request["TransactItems"].as_array().unwrap().iter();
    let items = items.flat_map(|item| item.as_object().unwrap());
    // `Put`, `Update`, `Delete` and `ConditionCheck` need `dynamodb:PutItem` and so on.
    let permissions = items.map(|(name, item)| (format!("dynamodb:{name}Item"), resource(item)));
    permissions.collect()
}

/// The table or the index of a request.
fn resource(request: &Value) -> String {
    let name = request["TableName"].as_str();
    let name = name.expect("no command sends requests that read several tables");
    let mut tables = Table::ALL.iter();
    let Some(table) = tables.find(|table| table.logical_id == name) else {
        return "SOURCE_TABLE".to_owned();
    };
    match request["IndexName"].as_str() {
        Some(index) => format!("{}/index/{index}", table.logical_id),
        None => table.logical_id.to_owned(),
    }
}
