//! `cargo serve`, in the process of the test or in its own process.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use clap::Parser as _;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use ureq::Agent;
use workspace_local::{
    events,
    serve::{LocalService, Options},
};
use workspace_management::{operations::Operation, records::Table};
use workspace_records::schemas;

/// How long a response may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// `cargo serve` on free ports.
pub struct Server {
    pub url: String,
    pub dynamodb_url: String,
    /// The `curl` commands that `cargo serve` prints.
    pub curls: Vec<String>,
    agent: Agent,
    home: Home,
}

/// What runs the service, which ends when this value is dropped.
enum Home {
    Runtime(#[expect(dead_code, reason = "it is only dropped")] Runtime),
    Process(Child),
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Self::Process(process) = self {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

pub struct Response {
    pub status: u16,
    pub headers: ureq::http::HeaderMap,
    pub body: String,
}

impl Server {
    /// Starts the service in this process, with these options of `cargo serve`.
    pub fn start(arguments: &[&str]) -> Self {
        let ports = ["serve", "--port", "0", "--dynamodb-port", "0"];
        let options = Options::parse_from(ports.iter().chain(arguments));
        let runtime = Runtime::new().unwrap();
        let service = runtime.block_on(LocalService::start(&options)).unwrap();
        Self {
            curls: service.requests(&options),
            url: service.url,
            dynamodb_url: service.dynamodb_url,
            agent: agent(),
            home: Home::Runtime(runtime),
        }
    }

    /// Starts `cargo serve` with this command, and waits until it has printed its addresses.
    pub fn run(command: &mut Command) -> Self {
        let command = command.arg("--json").stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let printed: Value = serde_json::from_str(&line).unwrap();
        let field = |name: &str| printed[name].as_str().unwrap().to_owned();
        Self {
            url: field("url"),
            dynamodb_url: field("dynamodb"),
            curls: serde_json::from_value(printed["requests"].clone()).unwrap(),
            agent: agent(),
            home: Home::Process(process),
        }
    }

    /// Sends a signal to the process, and waits until it ends.
    pub fn stop(mut self, signal: &str) -> ExitStatus {
        let Home::Process(process) = &mut self.home else {
            panic!("the service runs in this process");
        };
        let id = process.id().to_string();
        let kill = Command::new("kill").args([signal, &id]).status();
        assert!(kill.unwrap().success());
        process.wait().unwrap()
    }

    pub fn get(&self, path: &str) -> Response {
        let response = self.agent.get(format!("{}{path}", self.url)).call();
        read(response.unwrap())
    }

    /// Sends a POST request. `authorization` is the value of that header.
    pub fn post(&self, path: &str, authorization: Option<&str>, body: &str) -> Response {
        let mut request = self.agent.post(format!("{}{path}", self.url));
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        read(request.content_type("*/*").send(body).unwrap())
    }

    pub fn create_data_store(&self, org: &str, key: &str, name: &str) -> u16 {
        create_data_store(&self.agent, &self.url, org, key, name).unwrap()
    }

    /// Sends the request in the example of each operation. They must succeed.
    #[track_caller]
    pub fn send_events(&self) {
        for operation in Operation::ALL {
            let event = events::event(*operation);
            let [path, body] = ["rawPath", "body"].map(|name| event[name].as_str().unwrap());
            let authorization = event["headers"]["authorization"].as_str();
            let response = self.post(path, authorization, body);
            assert_eq!(response.status, 204, "{}", response.body);
        }
    }

    /// Sends a request to DynamoDB. The request must succeed.
    #[track_caller]
    pub fn dynamodb(&self, action: &str, request: &Value) -> Value {
        let response = self
            .agent
            .post(&self.dynamodb_url)
            .header("x-amz-target", format!("DynamoDB_20120810.{action}"))
            .content_type("application/x-amz-json-1.0")
            .send(request.to_string());
        let response = read(response.unwrap());
        assert_eq!(response.status, 200, "{action}: {}", response.body);
        serde_json::from_str(&response.body).unwrap()
    }

    /// The records of every table that has a schema: the first megabyte of each table. The records
    /// must match their schema.
    pub fn valid_records(&self) -> Vec<(Table, Value)> {
        let mut records = Vec::new();
        for table in schemas::tables() {
            for record in self.records_of(table) {
                assert_eq!(schemas::errors(table, &record), [""; 0]);
                records.push((table, record));
            }
        }
        records
    }

    /// The records of a table: the first megabyte.
    pub fn records_of(&self, table: Table) -> Vec<Value> {
        let mut scan = self.dynamodb("Scan", &json!({ "TableName": table.logical_id }));
        let items: Vec<serde_dynamo::Item> = serde_json::from_value(scan["Items"].take()).unwrap();
        let records = items.into_iter().map(serde_dynamo::from_item);
        records.collect::<Result<_, _>>().unwrap()
    }

    /// The number of records in the first megabyte of a table.
    pub fn count(&self, table: &str) -> u64 {
        let scan = self.dynamodb("Scan", &json!({ "TableName": table }));
        scan["Count"].as_u64().unwrap()
    }

    /// Changes an item as a different program could. `expression` can contain `:value` if the value
    /// is not null.
    pub fn update_item(&self, table: &str, key: Value, expression: &str, value: Value) {
        let mut update = json!({ "TableName": table, "Key": key, "UpdateExpression": expression });
        if !value.is_null() {
            update["ExpressionAttributeValues"] = json!({ ":value": value });
        }
        self.dynamodb("UpdateItem", &update);
    }
}

/// An HTTP client that returns responses of every status.
pub fn agent() -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(TIMEOUT));
    config.build().into()
}

/// Creates a data store and returns the status, or an error if the connection fails.
pub fn create_data_store(
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
