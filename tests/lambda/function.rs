//! The compiled function as a process, and the events that the tests send to it.

use std::{env, process::Stdio};

use serde_json::{Value, json};
use test_support::{TestApp, TestClient, TestResponse, aws_variables, event, secrets};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::{Child, Command},
    task::JoinHandle,
};
use workspace_local::runtime_api::{RuntimeApi, environment};
use workspace_management::records::Table;

/// The path of `create_data_store`.
pub const PATH: &str = "/api/v1/org/acme/dataStores/create";

/// The folder in which the function runs.
pub const FOLDER: &str = env!("CARGO_TARGET_TMPDIR");

/// The event of a request that creates the data store `Papers`.
pub fn create_papers(client: &TestClient<'_>) -> Value {
    create_data_store("Papers", client)
}

/// The event of a request that creates a data store.
pub fn create_data_store(name: &str, client: &TestClient<'_>) -> Value {
    let body = json!({ "dataStoreName": name }).to_string();
    event("POST", PATH, &client.headers, Some(&body))
}

/// A command that runs the function with the tables of `app`. `variables` overrides environment
/// variables of the function.
pub fn command(app: &TestApp, runtime_api: &str, variables: &[(&str, &str)]) -> Command {
    let binary = env::var("WORKSPACE_MANAGEMENT_BINARY")
        .unwrap_or_else(|_| env!("CARGO_BIN_EXE_workspace-management").to_owned());
    let runner = env::var("WORKSPACE_MANAGEMENT_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace().chain([&*binary]);
    let mut command = Command::new(words.next().unwrap());
    command
        .args(words)
        .current_dir(FOLDER)
        .env_clear()
        .envs(environment(runtime_api))
        .envs(aws_variables())
        .env("AWS_ENDPOINT_URL_DYNAMODB", &app.endpoint)
        .env("ANONYMOUS_OPERATIONS", "allowed")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    for table in Table::ALL {
        command.env(table.env_variable, app.table_names.get(*table));
    }
    command.envs(variables.iter().copied());
    command
}

pub struct Function {
    pub process: Child,
    pub runtime_api: RuntimeApi,
    // Separate tasks read the streams. Otherwise, a full pipe would block the function.
    stdout: JoinHandle<String>,
    stderr: JoinHandle<String>,
    /// The parts of the events that the log must not contain.
    secrets: Vec<String>,
}

impl Function {
    pub async fn start(app: &TestApp, variables: &[(&str, &str)]) -> Self {
        let runtime_api = RuntimeApi::start().await.unwrap();
        let mut process = command(app, runtime_api.address(), variables)
            .spawn()
            .unwrap();
        Self {
            stdout: tokio::spawn(read(process.stdout.take().unwrap())),
            stderr: tokio::spawn(read(process.stderr.take().unwrap())),
            process,
            runtime_api,
            secrets: vec![],
        }
    }

    pub async fn invoke(&mut self, event: &Value) -> TestResponse {
        self.secrets.extend(secrets(event));
        self.runtime_api.send("invocation", event.to_string());
        let result = self.runtime_api.next_result().await.unwrap();
        assert!(!result.is_error, "{result:?}");
        assert_eq!(result.request_id, "invocation");
        TestResponse::read(serde_json::from_slice(&result.body).unwrap())
    }

    /// Stops the function and returns the lines of its log, which must not contain a secret.
    pub async fn log(mut self) -> Vec<Value> {
        self.process.kill().await.unwrap();
        assert_eq!(self.stderr.await.unwrap(), "");
        let log = self.stdout.await.unwrap();
        for secret in self.secrets {
            assert!(!log.contains(&secret), "the log contains {secret}: {log}");
        }
        log.lines()
            .map(|line| serde_json::from_str(line).expect(line))
            .collect()
    }
}

async fn read(mut stream: impl AsyncRead + Unpin) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}
