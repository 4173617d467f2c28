//! The network between a command and AWS, which consists of a DynamoDB in this process and of fixed
//! responses. A hook of the test sees every request first.

use std::{
    collections::BTreeMap,
    process::{Command, Output, Stdio},
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, SystemTime},
};

use aws_sdk_dynamodb::config::http::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_types::{DateTime, date_time::Format};
use axum::Router;
use serde_json::{Value, json};
use test_support::{
    faults::{Fault, Phase, http_response},
    fixtures,
    hook::{self, Hook, Hooked, Request},
};
use tokio::{net::TcpListener, runtime::Runtime};
use workspace_local::{dynamodb::DynamoDb, gateway};
use workspace_management::{auth::AnonymousAccess, records::Table, service::Service, store::Store};
use workspace_records::{
    kinds::{ALL_TABLES, HISTORY},
    local::{sdk_config, table_names},
    schemas,
};

use crate::workspacectl;

pub(crate) struct Network {
    pub(crate) dynamodb: DynamoDb,
    runtime: Runtime,
    /// How far AWS's clock is behind that of this machine, in seconds.
    pub(crate) behind: i64,
    pub(crate) stack: Stack,
}

/// What AWS knows about the stack, besides its tables.
#[derive(Debug, Clone)]
pub(crate) struct Stack {
    /// The environment variables of its function.
    pub(crate) variables: BTreeMap<&'static str, &'static str>,
    /// Its outputs.
    pub(crate) outputs: BTreeMap<&'static str, String>,
    pub(crate) has_termination_protection: bool,
    pub(crate) has_history: bool,
    pub(crate) status: &'static str,
    /// The timeout of its function in seconds.
    pub(crate) timeout: u32,
    /// Its log groups with their retention in days.
    pub(crate) log_groups: BTreeMap<&'static str, u32>,
    /// The metric filters of its function's log.
    pub(crate) metric_filters: Vec<&'static str>,
    /// The ARNs of the subscriptions to its topic.
    pub(crate) subscriptions: Vec<&'static str>,
    /// Changes the descriptions of its tables.
    pub(crate) change_table: fn(&mut Value),
    pub(crate) logs: Arc<Mutex<Logs>>,
}

/// What CloudWatch Logs has stored about a stack.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    /// The pages of each log group, with events.
    pub(crate) pages: BTreeMap<&'static str, Vec<Vec<Value>>>,
    /// The rows of each query, with fields.
    pub(crate) rows: Vec<Value>,
    /// How often the results of a query were requested.
    polls: usize,
}

impl Logs {
    /// The events of the requested page that are in the requested time and contain a value in the
    /// pattern. CloudWatch evaluates the whole pattern.
    fn filter(&self, request: &Value) -> Value {
        let group = request["logGroupName"].as_str().unwrap();
        let token = request["nextToken"].as_str().unwrap_or("0");
        let number: usize = token.parse().unwrap();
        let pages = self.pages.get(group).map_or(&[][..], Vec::as_slice);
        let mut events = pages.get(number).cloned().unwrap_or_default();
        let pattern = request["filterPattern"].as_str().unwrap();
        let end = request["endTime"].as_i64().unwrap_or(i64::MAX);
        events.retain(|event| {
            let time = event["timestamp"].as_i64().unwrap();
            let message = event["message"].as_str().unwrap();
            let mut values = pattern.split('"').skip(1).step_by(2);
            let is_in_time = request["startTime"].as_i64().unwrap() <= time && time <= end;
            is_in_time && values.any(|value| message.contains(&format!("\"{value}\"")))
        });
        let mut page = json!({ "events": events });
        if number + 1 < pages.len() {
            page["nextToken"] = json!((number + 1).to_string());
        }
        page
    }

    /// The results of a query, which is still running at the first request.
    fn results(&mut self) -> Value {
        self.polls += 1;
        if self.polls == 1 {
            return json!({ "status": "Running", "results": [] });
        }
        let fields = |row: &Value| {
            let fields = row.as_object().unwrap().iter();
            Value::from_iter(fields.map(|(name, value)| json!({ "field": name, "value": value })))
        };
        json!({ "status": "Complete", "results": Value::from_iter(self.rows.iter().map(fields)) })
    }
}

impl Stack {
    /// A stack whose function uses its tables, and whose topic has a confirmed subscription.
    fn new() -> Self {
        let name = |table: &Table| (table.env_variable, table.logical_id);
        let topic = "arn:aws:sns:us-east-1:123456789012:stack-AlarmTopic";
        Self {
            variables: Table::ALL.iter().map(name).collect(),
            outputs: BTreeMap::from([
                ("AlarmTopicArn", topic.to_owned()),
                ("HistoryDays", "400".to_owned()),
            ]),
            has_termination_protection: true,
            has_history: true,
            status: "UPDATE_COMPLETE",
            timeout: 10,
            log_groups: BTreeMap::from([("LogGroup", 90), ("ApiLogGroup", 30)]),
            metric_filters: vec!["UnauthenticatedFilter", "CheckFilter"],
            subscriptions: vec!["arn:aws:sns:us-east-1:123456789012:stack-AlarmTopic:1"],
            change_table: |_| {},
            logs: Arc::default(),
        }
    }
}

impl Network {
    /// A network with a DynamoDB that has all tables, without records and protected as on AWS.
    pub(crate) fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let dynamodb = runtime.block_on(DynamoDb::with_tables()).unwrap();
        for table in ALL_TABLES {
            let update = dynamodb.client().update_table();
            let update = update.table_name(table.logical_id);
            let update = update.deletion_protection_enabled(true);
            runtime.block_on(update.send()).unwrap();
        }
        Self {
            dynamodb,
            runtime,
            behind: 0,
            stack: Stack::new(),
        }
    }

    /// A network with the same DynamoDB, for commands that run while a hook has stopped another.
    pub(crate) fn twin(&self) -> Self {
        Self {
            dynamodb: self.dynamodb.clone(),
            runtime: Runtime::new().unwrap(),
            behind: 0,
            stack: Stack::new(),
        }
    }

    /// A network with an organization and a team that has these members.
    pub(crate) fn with_team(users: &[impl AsRef<str>]) -> Self {
        let network = Self::new();
        let put = |table, record| network.dynamodb.put(table, record);
        put(Table::ORGANIZATIONS, fixtures::organization("acme"));
        let team = fixtures::team("acme", "apollo", "docs", "Docs");
        put(Table::TEAMS, team);
        for user in users {
            let member = fixtures::member("acme", "apollo", "docs", user.as_ref());
            put(Table::TEAM_MEMBERS, member);
        }
        network
    }

    /// Disables `acme`, so that it can be erased.
    pub(crate) fn disable_acme(&self) {
        let acme = fixtures::disabled_organization("acme");
        self.dynamodb.put(Table::ORGANIZATIONS, acme);
    }

    /// A network with a stack whose API works.
    pub(crate) fn with_api() -> Self {
        let mut network = Self::new();
        let dynamodb = network.listen(|_| None);
        let url = network.serve_api(&dynamodb);
        network.stack.outputs.insert("ApiUrl", url);
        network
    }

    /// Listens at a URL for all services of AWS.
    pub(crate) fn listen(&self, hook: impl Hook) -> String {
        let aws = Aws {
            dynamodb: self.dynamodb.clone(),
            stack: self.stack.clone(),
            behind: self.behind,
        };
        self.serve(hook::routes(Hooked::new(aws, hook)))
    }

    /// A command that uses the DynamoDB of this network.
    fn command(&self, line: &str, hook: impl Hook) -> Command {
        let mut command = workspacectl(line);
        command.env("AWS_ENDPOINT_URL_DYNAMODB", self.listen(hook));
        command
    }

    /// Runs a command.
    pub(crate) fn output(&self, line: &str) -> Output {
        self.hooked_output(line, |_| None)
    }

    /// Runs a command with `--json` and returns what it printed.
    pub(crate) fn json(&self, line: &str) -> Value {
        let output = self.output(&format!("{line} --json"));
        assert!(output.status.success(), "{line}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs a command. `hook` sees its requests.
    pub(crate) fn hooked_output(&self, line: &str, hook: impl Hook) -> Output {
        self.command(line, hook).output().unwrap()
    }

    /// Runs a command, and kills it at the request with this number, unless it sends fewer.
    pub(crate) fn kill_at(&self, number: usize, phase: Phase, line: &str) -> Output {
        let id = Arc::new(OnceLock::new());
        let process_id = id.clone();
        let mut command = self.command(line, move |request| {
            let is_last = request.number == number;
            is_last.then(|| (Fault::Killed(*process_id.wait()), phase))
        });
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let process = command.spawn().unwrap();
        id.set(process.id()).unwrap();
        process.wait_with_output().unwrap()
    }

    /// Serves the API on a DynamoDB, and returns its URL.
    pub(crate) fn serve_api(&self, dynamodb: &str) -> String {
        let store = Store::new(sdk_config(dynamodb), table_names(), Duration::ZERO);
        let service = Service::new(store, AnonymousAccess::Denied);
        self.serve(gateway::routes(Arc::new(service), None, None).unwrap())
    }

    pub(crate) fn serve(&self, routes: Router) -> String {
        let listener = self.runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        self.runtime
            .spawn(axum::serve(listener, routes).into_future());
        url
    }

    /// Checks all records against their schemas.
    pub(crate) fn assert_valid_records(&self) {
        for table in schemas::tables().chain([HISTORY]) {
            for record in self.dynamodb.records(table) {
                assert_eq!(schemas::errors(table, &record), [""; 0]);
            }
        }
    }
}

/// All services of AWS.
#[derive(Debug)]
struct Aws {
    dynamodb: DynamoDb,
    stack: Stack,
    behind: i64,
}

impl HttpConnector for Aws {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let mut response = self.respond(&Request::read(&request));
        let now = DateTime::from(SystemTime::now()).secs();
        let date = DateTime::from_secs(now - self.behind).fmt(Format::HttpDate);
        response.headers_mut().insert("date", date.unwrap());
        HttpConnectorFuture::ready(Ok(response))
    }
}

impl Aws {
    fn respond(&self, request: &Request) -> HttpResponse {
        let stack = &self.stack;
        let name = &*request.action;
        let result = match name {
            "DescribeContinuousBackups" => {
                let recovery = json!({ "PointInTimeRecoveryStatus": "ENABLED" });
                let backups = json!({
                    "ContinuousBackupsStatus": "ENABLED", "PointInTimeRecoveryDescription": recovery,
                });
                let response = json!({ "ContinuousBackupsDescription": backups });
                return http_response(200, response.to_string());
            }
            "DescribeTimeToLive" => {
                let time_to_live = json!({
                    "AttributeName": "expires_at", "TimeToLiveStatus": "ENABLED",
                });
                let response = json!({ "TimeToLiveDescription": time_to_live });
                return http_response(200, response.to_string());
            }
            "DescribeTable" => {
                let response = request.send_to(&self.dynamodb);
                let mut body: Value =
                    serde_json::from_slice(response.body().bytes().unwrap()).unwrap();
                if let Some(table) = body.get_mut("Table") {
                    limit_and_encrypt(table);
                    (stack.change_table)(table);
                }
                return http_response(response.status().as_u16(), body.to_string());
            }
            _ if request.service == "dynamodb" => return request.send_to(&self.dynamodb),
            "GetFunctionConfiguration" => {
                let environment = json!({ "Variables": stack.variables });
                let response = json!({ "Environment": environment, "Timeout": stack.timeout });
                return http_response(200, response.to_string());
            }
            "DescribeLogGroups" => {
                let groups = stack
                    .log_groups
                    .iter()
                    .map(|(name, days)| json!({ "logGroupName": name, "retentionInDays": days }));
                let response = json!({ "logGroups": Value::from_iter(groups) });
                return http_response(200, response.to_string());
            }
            "DescribeMetricFilters" => {
                let filters = stack.metric_filters.iter();
                let filters = filters.map(|name| json!({ "filterName": name }));
                let response = json!({ "metricFilters": Value::from_iter(filters) });
                return http_response(200, response.to_string());
            }
            _ if request.service == "logs" => {
                let mut logs = stack.logs.lock().unwrap();
                let response = match name {
                    "FilterLogEvents" => logs.filter(&request.body),
                    "StartQuery" => json!({ "queryId": "1" }),
                    _ => logs.results(),
                };
                return http_response(200, response.to_string());
            }
            "GetCallerIdentity" => "<Arn>arn:aws:iam::123456789012:user/ada</Arn>".to_owned(),
            "DescribeStacks" => {
                let outputs = stack.outputs.iter().map(|(key, value)| {
                    format!("<OutputKey>{key}</OutputKey><OutputValue>{value}</OutputValue>")
                });
                let is_protected = stack.has_termination_protection;
                let (status, days) = (stack.status, "LogRetentionDays");
                let days = format!(
                    "<ParameterKey>{days}</ParameterKey><ParameterValue>90</ParameterValue>"
                );
                let days = list("Parameters", [days]);
                let stack = format!(
                    "<StackName>stack</StackName>\
                <CreationTime>2026-01-01T00:00:00Z</CreationTime>\
                <StackStatus>{status}</StackStatus>{days}\
                <EnableTerminationProtection>{is_protected}</EnableTerminationProtection>{}",
                    list("Outputs", outputs)
                );
                list("Stacks", [stack])
            }
            "ListStackResources" => {
                let mut tables = ALL_TABLES.to_vec();
                tables.retain(|table| stack.has_history || *table != HISTORY);
                let tables = tables.iter().map(|table| table.logical_id);
                let resources = tables
                    .chain(["Function", "FunctionAliaslive", "LogGroup", "ApiLogGroup"])
                    .chain(["UnauthenticatedFilter", "CheckFilter"])
                    .map(|id| {
                        format!(
                            "<LogicalResourceId>{id}</LogicalResourceId>\
                    <PhysicalResourceId>{id}</PhysicalResourceId>"
                        )
                    });
                list("StackResourceSummaries", resources)
            }
            "ListSubscriptionsByTopic" => {
                let arns = stack.subscriptions.iter();
                let arns = arns.map(|arn| format!("<SubscriptionArn>{arn}</SubscriptionArn>"));
                list("Subscriptions", arns)
            }
            _ => panic!("no command is expected to send {request:?}"),
        };
        let body = format!("<{name}Result>{result}</{name}Result>");
        http_response(200, format!("<{name}Response>{body}</{name}Response>"))
    }
}

/// Adds what the emulator lacks to the description of a table.
fn limit_and_encrypt(table: &mut Value) {
    let limit = json!({ "MaxReadRequestUnits": -1, "MaxWriteRequestUnits": 4000 });
    table["SSEDescription"] = json!({ "Status": "ENABLED", "SSEType": "KMS" });
    table["OnDemandThroughput"] = limit.clone();
    let indexes = table["GlobalSecondaryIndexes"].as_array_mut();
    for index in indexes.into_iter().flatten() {
        index["OnDemandThroughput"] = limit.clone();
    }
}

/// A list in XML.
fn list(name: &str, members: impl IntoIterator<Item = String>) -> String {
    let in_tags = |member| format!("<member>{member}</member>");
    let members: String = members.into_iter().map(in_tags).collect();
    format!("<{name}>{members}</{name}>")
}
