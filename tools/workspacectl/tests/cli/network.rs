//! The network between a command and AWS, which consists of a DynamoDB in this process and of fixed
//! responses. A test sees every request first, and can deny it.

use std::{
    collections::BTreeMap,
    process::{Command, Output, Stdio},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use aws_smithy_types::{DateTime, date_time::Format};
use axum::{
    Router,
    http::{HeaderMap, StatusCode, Uri, header::DATE},
};
use serde_json::{Value, json};
use test_support::{fixtures, simulation::new_request};
use tokio::{net::TcpListener, runtime::Runtime, task::block_in_place};
use workspace_local::{dynamodb::DynamoDb, gateway};
use workspace_management::{
    auth::AnonymousAccess,
    service::Service,
    store::{Store, Table},
};
use workspace_records::{
    local::{sdk_config, table_names},
    schemas,
};

use crate::workspacectl;

/// The status and the body of a response.
type Response = (u16, String);

pub(crate) struct Network {
    pub(crate) dynamodb: DynamoDb,
    runtime: Runtime,
    /// How far AWS's clock is behind that of this machine, in seconds.
    pub(crate) behind: i64,
    pub(crate) stack: Stack,
}

/// What AWS knows about the stack, besides its tables.
#[derive(Clone)]
pub(crate) struct Stack {
    /// The environment variables of its function.
    pub(crate) variables: BTreeMap<&'static str, &'static str>,
    /// Its outputs.
    pub(crate) outputs: BTreeMap<&'static str, String>,
    pub(crate) has_termination_protection: bool,
    /// The ARNs of the subscriptions to its topic.
    pub(crate) subscriptions: Vec<&'static str>,
}

impl Stack {
    /// A stack whose function uses its tables, and whose topic has a confirmed subscription.
    fn new() -> Self {
        let name = |table: &Table| (table.env_variable, table.logical_id);
        let topic = "arn:aws:sns:us-east-1:123456789012:stack-AlarmTopic";
        Self {
            variables: Table::ALL.iter().map(name).collect(),
            outputs: BTreeMap::from([("AlarmTopicArn", topic.to_owned())]),
            has_termination_protection: true,
            subscriptions: vec!["arn:aws:sns:us-east-1:123456789012:stack-AlarmTopic:1"],
        }
    }
}

impl Network {
    /// A network with a DynamoDB that has all tables, without records and protected as on AWS.
    pub(crate) fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let dynamodb = runtime.block_on(DynamoDb::with_tables()).unwrap();
        for table in Table::ALL {
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
        let dynamodb = network.listen(|_, _| true);
        let url = network.serve_api(&dynamodb);
        network.stack.outputs.insert("ApiUrl", url);
        network
    }

    /// Listens at a URL for all services of AWS. `is_allowed` gets the action of each request, such
    /// as `dynamodb:GetItem`, and its body.
    pub(crate) fn listen(
        &self,
        is_allowed: impl Fn(&str, &str) -> bool + Send + Sync + 'static,
    ) -> String {
        let (dynamodb, is_allowed) = (self.dynamodb.clone(), Arc::new(is_allowed));
        let (stack, behind) = (self.stack.clone(), self.behind);
        let respond = move |headers: HeaderMap, uri: Uri, body: String| async move {
            let action = action(&headers, &uri, &body);
            let (status, body) = if is_allowed(&action, &body) {
                block_in_place(|| respond(&dynamodb, &stack, &action, &body))
            } else {
                deny(&action)
            };
            let now = DateTime::from(SystemTime::now()).secs();
            let date = DateTime::from_secs(now - behind).fmt(Format::HttpDate);
            let status = StatusCode::from_u16(status).unwrap();
            (status, [(DATE, date.unwrap())], body)
        };
        self.serve(Router::new().fallback(respond))
    }

    /// Runs a command.
    pub(crate) fn output(&self, line: &str) -> Output {
        self.output_if(line, |_, _| true)
    }

    /// Runs a command with `--json` and returns what it printed.
    pub(crate) fn json(&self, line: &str) -> Value {
        let output = self.output(&format!("{line} --json"));
        assert!(output.status.success(), "{line}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs a command, and handles its requests as [`Self::listen`].
    pub(crate) fn output_if(
        &self,
        line: &str,
        is_allowed: impl Fn(&str, &str) -> bool + Send + Sync + 'static,
    ) -> Output {
        let mut command = workspacectl(line);
        command.env("AWS_ENDPOINT_URL_DYNAMODB", self.listen(is_allowed));
        command.output().unwrap()
    }

    /// Runs a command, and kills it at a request, unless it sends fewer. `is_handled` is whether
    /// DynamoDB handles this request before.
    pub(crate) fn kill_at(&self, request: usize, is_handled: bool, line: &str) -> Output {
        let (dynamodb, stack) = (self.dynamodb.clone(), self.stack.clone());
        let (id, count) = (Arc::new(OnceLock::new()), AtomicUsize::new(0));
        let process_id = id.clone();
        let url = self.listen(move |action, body| {
            let is_last = count.fetch_add(1, Ordering::SeqCst) == request;
            if is_last && is_handled {
                respond(&dynamodb, &stack, action, body);
            }
            if is_last {
                let id: u32 = *process_id.wait();
                let mut kill = Command::new("kill");
                let kill = kill.args(["-KILL", &id.to_string()]).status();
                assert!(kill.unwrap().success());
            }
            !is_last
        });
        let mut command = workspacectl(line);
        command.env("AWS_ENDPOINT_URL_DYNAMODB", url);
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
        for table in schemas::tables() {
            for record in self.dynamodb.records(table) {
                assert_eq!(schemas::errors(table, &record), [""; 0]);
            }
        }
    }
}

/// The action of a request, with the service from the scope of its signature:
/// `AWS4-HMAC-SHA256 Credential=KEY/DATE/REGION/SERVICE/aws4_request, ...`.
fn action(headers: &HeaderMap, uri: &Uri, body: &str) -> String {
    let header = |name| headers.get(name).map(|value| value.to_str().unwrap());
    let service = header("authorization").unwrap().split('/').nth(3).unwrap();
    let action = match header("x-amz-target") {
        Some(target) => target.split('.').nth(1),
        None if uri.path() == "/2015-03-31/functions/Function/configuration" => {
            Some("GetFunctionConfiguration")
        }
        None => body.split(['=', '&']).nth(1), // the first parameter of a form
    };
    format!("{service}:{}", action.unwrap())
}

/// Responds as AWS.
fn respond(dynamodb: &DynamoDb, stack: &Stack, action: &str, body: &str) -> Response {
    let (service, name) = action.split_once(':').unwrap();
    let result = match action {
        "dynamodb:DescribeContinuousBackups" => {
            let recovery = json!({ "PointInTimeRecoveryStatus": "ENABLED" });
            let backups = json!({
                "ContinuousBackupsStatus": "ENABLED", "PointInTimeRecoveryDescription": recovery,
            });
            let response = json!({ "ContinuousBackupsDescription": backups });
            return (200, response.to_string());
        }
        _ if service == "dynamodb" => {
            let response = dynamodb.handle(&new_request(name, body.to_owned()));
            let body = response.body().bytes().unwrap().to_vec();
            return (response.status().as_u16(), String::from_utf8(body).unwrap());
        }
        "lambda:GetFunctionConfiguration" => {
            let environment = json!({ "Variables": stack.variables });
            return (200, json!({ "Environment": environment }).to_string());
        }
        "sts:GetCallerIdentity" => "<Arn>arn:aws:iam::123456789012:user/ada</Arn>".to_owned(),
        "cloudformation:DescribeStacks" => {
            let outputs = stack.outputs.iter().map(|(key, value)| {
                format!("<OutputKey>{key}</OutputKey><OutputValue>{value}</OutputValue>")
            });
            let is_protected = stack.has_termination_protection;
            let stack = format!(
                "<StackName>stack</StackName>\
                <CreationTime>2026-01-01T00:00:00Z</CreationTime>\
                <StackStatus>CREATE_COMPLETE</StackStatus>\
                <EnableTerminationProtection>{is_protected}</EnableTerminationProtection>{}",
                list("Outputs", outputs)
            );
            list("Stacks", [stack])
        }
        "cloudformation:ListStackResources" => {
            let tables = Table::ALL.iter().map(|table| table.logical_id);
            let resources = tables.chain(["Function"]).map(|id| {
                format!(
                    "<LogicalResourceId>{id}</LogicalResourceId>\
                    <PhysicalResourceId>{id}</PhysicalResourceId>"
                )
            });
            list("StackResourceSummaries", resources)
        }
        "sns:ListSubscriptionsByTopic" => {
            let arns = stack.subscriptions.iter();
            let arns = arns.map(|arn| format!("<SubscriptionArn>{arn}</SubscriptionArn>"));
            list("Subscriptions", arns)
        }
        _ => panic!("no command is expected to send {action}"),
    };
    let body = format!("<{name}Result>{result}</{name}Result>");
    (200, format!("<{name}Response>{body}</{name}Response>"))
}

/// A list in XML.
fn list(name: &str, members: impl IntoIterator<Item = String>) -> String {
    let in_tags = |member| format!("<member>{member}</member>");
    let members: String = members.into_iter().map(in_tags).collect();
    format!("<{name}>{members}</{name}>")
}

fn deny(action: &str) -> Response {
    if action.starts_with("dynamodb:") || action.starts_with("lambda:") {
        let error = "com.amazon.coral.service#AccessDeniedException";
        let body = json!({ "__type": error, "Message": "not authorized" });
        return (400, body.to_string());
    }
    let code = if action.starts_with("sns:") {
        "AuthorizationError"
    } else {
        "AccessDenied"
    };
    let error = format!("<Code>{code}</Code><Message>not authorized</Message>");
    let body = format!("<ErrorResponse><Error>{error}</Error></ErrorResponse>");
    (403, body)
}

/// The permissions that a request needs.
pub(crate) fn needed(action: &str, body: &str) -> Vec<String> {
    match action.split(':').next() {
        Some("sts") => return vec![],
        Some("cloudformation") => return vec![format!("{action} STACK")],
        Some("sns") => return vec![format!("{action} AlarmTopic")],
        Some("lambda") => return vec![format!("{action} Function")],
        _ => {}
    }
    let request: Value = serde_json::from_str(body).unwrap();
    let Some(items) = request["TransactItems"].as_array() else {
        return vec![format!("{action} {}", resource(&request))];
    };
    let items = items.iter().flat_map(|item| item.as_object().unwrap());
    // `Put`, `Update`, `Delete` and `ConditionCheck` need `dynamodb:PutItem` and so on.
    let permissions = items.map(|(name, item)| format!("dynamodb:{name}Item {}", resource(item)));
    permissions.collect()
}

/// The table or the index of a request.
fn resource(request: &Value) -> String {
    let name = request["TableName"].as_str();
    let name = name.expect("no command sends requests that read several tables");
    match request["IndexName"].as_str() {
        Some(index) => format!("{name}/index/{index}"),
        None => name.to_owned(),
    }
}
