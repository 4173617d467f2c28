//! A running `workspacectl serve`.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use ureq::Agent;
use workspace_local::events;
use workspace_management::store::Table;
use workspace_records::schemas;

use crate::{kill, text, workspacectl};

/// How long the process may take to respond and to stop.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The user who runs the commands.
const OPERATOR: &str = "grace";

/// `workspacectl serve` on free ports.
pub(crate) struct Server {
    pub(crate) process: Child,
    pub(crate) url: String,
    pub(crate) dynamodb: String,
    pub(crate) key: String,
    /// The `curl` commands that it printed.
    pub(crate) curls: Vec<String>,
    agent: Agent,
}

/// The status and the body of an HTTP response.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: ureq::http::HeaderMap,
    pub(crate) body: String,
}

impl Server {
    /// Starts the service and waits until it has printed its addresses and requests.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut command = serve(&[&["--json"], arguments].concat());
        let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let printed: Value = serde_json::from_str(&line).unwrap();
        let owned = |value: &Value| value.as_str().unwrap().to_owned();
        let curls: Vec<String> = serde_json::from_value(printed["requests"].clone()).unwrap();
        assert_eq!(curls.len(), events::all().count());
        Self {
            process,
            url: owned(&printed["url"]),
            dynamodb: owned(&printed["dynamodb"]),
            key: owned(&printed["key"]),
            curls,
            agent: agent(),
        }
    }

    /// A service without caches, so that commands need not wait, with a record of every kind.
    pub(crate) fn with_records() -> Self {
        let server = Self::start(&["--key-cache", "0"]);
        server.send_events();
        server
    }

    /// A command on the service.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = workspacectl(arguments);
        command.env("AWS_ENDPOINT_URL_DYNAMODB", &self.dynamodb);
        command.env("USER", OPERATOR);
        command
    }

    /// Runs a command on the service and returns its output. Then checks all records.
    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().unwrap();
        self.valid_records();
        output
    }

    /// Starts a command that marks a record and then waits. Returns it when it waits.
    pub(crate) fn start_until_marked(&self, arguments: &[&str], mark: &str) -> Child {
        let mut command = self.command(arguments);
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let started = Instant::now();
        let is_marked = |(_, record): &(Table, Value)| record[mark].is_string();
        while !self.valid_records().iter().any(is_marked) {
            assert!(process.try_wait().unwrap().is_none(), "{arguments:?} ended");
            assert!(started.elapsed() < TIMEOUT, "{arguments:?} marks nothing");
        }
        process
    }

    /// Runs a command, which must succeed, and returns its standard output.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command with `--json` and returns what it printed.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.run(&[arguments, &["--json"]].concat())).unwrap()
    }

    /// Runs a command that prints a list of records.
    pub(crate) fn records(&self, arguments: &[&str]) -> Vec<Value> {
        serde_json::from_value(self.json(arguments)).unwrap()
    }

    /// Sends a GET request.
    pub(crate) fn get(&self, path: &str) -> Response {
        let response = self.agent.get(format!("{}{path}", self.url)).call();
        read(response.unwrap())
    }

    /// Sends a GET request for a response other than the one with this version.
    pub(crate) fn get_if_none_match(&self, path: &str, etag: &str) -> Response {
        let request = self.agent.get(format!("{}{path}", self.url));
        read(request.header("if-none-match", etag).call().unwrap())
    }

    /// Sends a POST request, with this `authorization` header if there is one.
    pub(crate) fn post(&self, path: &str, authorization: Option<&str>, body: &str) -> Response {
        let mut request = self.agent.post(format!("{}{path}", self.url));
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        read(request.content_type("*/*").send(body).unwrap())
    }

    /// Creates a data store and returns the status.
    pub(crate) fn create_data_store(&self, org: &str, key: &str, name: &str) -> u16 {
        create_data_store(&self.agent, &self.url, org, key, name).unwrap()
    }

    /// Sends the requests of `events/`, one for each operation.
    pub(crate) fn respond_to_events(&self) -> impl Iterator<Item = Response> {
        events::all().map(|(_, event)| {
            let event: Value = serde_json::from_str(event).unwrap();
            let member = |value: &'static str| event.pointer(value).and_then(Value::as_str);
            let body = STANDARD.decode(member("/body").unwrap()).unwrap();
            let authorization = member("/headers/authorization");
            self.post(member("/rawPath").unwrap(), authorization, text(&body))
        })
    }

    /// Sends the requests of `events/`, which must succeed.
    #[track_caller]
    pub(crate) fn send_events(&self) {
        for response in self.respond_to_events() {
            assert_eq!(response.status, 204, "{}", response.body);
        }
    }

    /// What records call the operator of the commands that a test runs.
    pub(crate) fn operator(&self) -> String {
        let host = gethostname::gethostname();
        format!("{OPERATOR}@{}", host.to_string_lossy())
    }

    /// Sends a request to DynamoDB. It must succeed.
    #[track_caller]
    pub(crate) fn dynamodb(&self, action: &str, request: &Value) -> Value {
        let response = self
            .agent
            .post(&self.dynamodb)
            .header("x-amz-target", format!("DynamoDB_20120810.{action}"))
            .content_type("application/x-amz-json-1.0")
            .send(request.to_string());
        let response = read(response.unwrap());
        assert_eq!(response.status, 200, "{action}: {}", response.body);
        serde_json::from_str(&response.body).unwrap()
    }

    /// Replaces a table by one that has no index.
    pub(crate) fn recreate_without_index(&self, table: &str) {
        self.copy_table(table, "copy");
        self.dynamodb("DeleteTable", &json!({ "TableName": table }));
        self.copy_table("copy", table);
    }

    /// Creates a table with the records of another one, as a restore of a backup does.
    pub(crate) fn copy_table(&self, from: &str, to: &str) {
        let table = &self.dynamodb("DescribeTable", &json!({ "TableName": from }))["Table"];
        let key = table["KeySchema"].as_array().unwrap();
        let is_key = |attribute: &&Value| {
            let mut key = key.iter();
            key.any(|key| key["AttributeName"] == attribute["AttributeName"])
        };
        let attributes = table["AttributeDefinitions"].as_array().unwrap().iter();
        let attributes: Vec<_> = attributes.filter(is_key).collect();
        self.dynamodb(
            "CreateTable",
            &json!({
                "TableName": to, "KeySchema": key, "AttributeDefinitions": attributes,
                "BillingMode": "PAY_PER_REQUEST",
            }),
        );
        let items = self.dynamodb("Scan", &json!({ "TableName": from }));
        for item in items["Items"].as_array().unwrap() {
            self.dynamodb("PutItem", &json!({ "TableName": to, "Item": item }));
        }
    }

    /// The records of every table that has a schema: the first megabyte of each. They must validate.
    pub(crate) fn valid_records(&self) -> Vec<(Table, Value)> {
        let mut records = Vec::new();
        for table in schemas::tables() {
            let found = self.dynamodb("Scan", &json!({ "TableName": table.logical_id }));
            let items: Vec<serde_dynamo::Item> =
                serde_json::from_value(found["Items"].clone()).unwrap();
            for item in items {
                let record: Value = serde_dynamo::from_item(item).unwrap();
                assert_eq!(schemas::errors(table, &record), [""; 0]);
                records.push((table, record));
            }
        }
        records
    }

    /// The number of records in a table.
    pub(crate) fn count(&self, table: &str) -> u64 {
        let items = self.dynamodb("Scan", &json!({ "TableName": table }));
        items["Count"].as_u64().unwrap()
    }

    pub(crate) fn delete_item(&self, table: &str, key: Value) {
        self.dynamodb("DeleteItem", &json!({ "TableName": table, "Key": key }));
    }

    /// Changes an item as another program does. The expression can use `:value`, unless it is null.
    pub(crate) fn update_item(&self, table: &str, key: Value, expression: &str, value: Value) {
        let mut update = json!({ "TableName": table, "Key": key, "UpdateExpression": expression });
        if !value.is_null() {
            update["ExpressionAttributeValues"] = json!({ ":value": value });
        }
        self.dynamodb("UpdateItem", &update);
    }

    /// Erases an organization without an export.
    pub(crate) fn erase(&self, org: &str) {
        self.run(&["orgs", "disable", org, "--wait", "0"]);
        let erase = ["orgs", "erase", org, "--without-export"];
        self.run(&[&erase[..], &["--yes", "--wait", "0"]].concat());
    }

    /// Sends a signal to the service and waits until it exits with 0.
    pub(crate) fn stop(mut self, signal: &str) {
        kill(signal, self.process.id());
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                break status;
            }
            assert!(started.elapsed() < TIMEOUT, "serve does not stop");
            thread::sleep(Duration::from_millis(10));
        };
        assert!(status.success(), "{status}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `workspacectl serve` on free ports.
pub(crate) fn serve(arguments: &[&str]) -> Command {
    let mut command = workspacectl(&["serve", "--port", "0", "--dynamodb-port", "0"]);
    command.args(arguments);
    command
}

/// An HTTP client that returns responses of every status.
pub(crate) fn agent() -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(TIMEOUT));
    config.build().into()
}

/// Creates a data store and returns the status, or an error if the connection fails.
pub(crate) fn create_data_store(
    agent: &Agent,
    url: &str,
    org: &str,
    key: &str,
    name: &str,
) -> Result<u16, ureq::Error> {
    let response = agent
        .post(format!("{url}/api/v1/org/{org}/dataStores/create"))
        .header("authorization", format!("Bearer {key}"))
        .send(json!({ "dataStoreName": name }).to_string())?;
    Ok(response.status().as_u16())
}

fn read(mut response: ureq::http::Response<ureq::Body>) -> Response {
    Response {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
        body: response.body_mut().read_to_string().unwrap(),
    }
}
