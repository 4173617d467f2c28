//! `set`, with a server that returns the responses of CloudFormation.

use std::{
    collections::{BTreeSet, HashMap},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::Output,
    sync::mpsc::{self, Receiver},
    thread,
};

use serde_json::{Value, json};
use workspace_local::tables::TEMPLATE;
use workspace_management::store::Table;

use crate::{assert_fails, unused_url, workspacectl};

/// The parameters of a request, with `Action`.
pub(crate) type Request = HashMap<String, String>;

/// A stack of `template.yaml` with the values in [`parameters`].
#[derive(Clone, Copy)]
pub(crate) struct Stack {
    /// Its status before the update.
    before: &'static str,
    /// The statuses after the update, of which the last one remains.
    after: &'static [&'static str],
    /// The code and the message with which UpdateStack fails.
    rejection: Option<(&'static str, &'static str)>,
}

pub(crate) const STACK: Stack = Stack {
    before: "CREATE_COMPLETE",
    after: &["UPDATE_COMPLETE"],
    rejection: None,
};

/// The output of a command, and the requests that it sent.
struct Outcome {
    output: Output,
    requests: Vec<Request>,
}

impl Stack {
    /// Runs `set` with the arguments.
    fn set(self, arguments: &[&str]) -> Outcome {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, requests) = mpsc::channel();
        thread::spawn(move || {
            let mut statuses = self.after.iter().copied();
            let mut status = self.before;
            let mut token = String::new();
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let request = read(&connection);
                let action = &*request["Action"];
                if action == "UpdateStack" {
                    token.clone_from(&request["ClientRequestToken"]);
                } else if action == "DescribeStacks" && !token.is_empty() {
                    status = statuses.next().unwrap_or(status);
                }
                let (code, body) = self.respond(action, status, &token);
                let length = body.len();
                let head =
                    format!("HTTP/1.1 {code} -\r\nConnection: close\r\nContent-Length: {length}");
                sender.send(request).unwrap();
                write!(connection, "{head}\r\n\r\n{body}").unwrap();
            }
        });
        run(arguments, &url, &requests)
    }

    /// The status and the body of a response.
    pub(crate) fn respond(self, action: &str, status: &str, token: &str) -> (u16, String) {
        let result = match (action, self.rejection) {
            ("UpdateStack", Some((code, message))) => {
                let error = format!("<Code>{code}</Code><Message>{message}</Message>");
                let body = format!("<ErrorResponse><Error>{error}</Error></ErrorResponse>");
                return (400, body);
            }
            ("UpdateStack", None) => "<StackId>id</StackId>".to_owned(),
            ("DescribeStacks", _) => {
                let parameters = parameters().map(|(name, value)| {
                    format!(
                        "<member><ParameterKey>{name}</ParameterKey>\
                        <ParameterValue>{value}</ParameterValue></member>"
                    )
                });
                let parameters: String = parameters.collect();
                format!(
                    "<Stacks><member><StackName>stack</StackName>\
                    <CreationTime>2026-11-21T06:00:00Z</CreationTime>\
                    <StackStatus>{status}</StackStatus>\
                    <Capabilities><member>CAPABILITY_IAM</member></Capabilities>\
                    <Parameters>{parameters}</Parameters></member></Stacks>"
                )
            }
            ("GetTemplate", _) => {
                let template = TEMPLATE.replace('&', "&amp;").replace('<', "&lt;");
                format!("<TemplateBody>{template}</TemplateBody>")
            }
            ("DescribeStackEvents", _) => events(token),
            ("ListStackResources", _) => resources(),
            _ => panic!("unexpected action {action}"),
        };
        let body = format!("<{action}Response><{action}Result>{result}</{action}Result>");
        (200, format!("{body}</{action}Response>"))
    }
}

/// The events of a failed update and of the one before it.
fn events(token: &str) -> String {
    let rows = [
        ("stack", "UPDATE_ROLLBACK_COMPLETE", token, ""),
        ("Api", "UPDATE_FAILED", token, "Resource update cancelled"),
        ("Function", "UPDATE_FAILED", token, "The quota is exceeded"),
        ("stack", "UPDATE_IN_PROGRESS", token, "User Initiated"),
        ("Function", "UPDATE_FAILED", "earlier", "An earlier failure"),
    ];
    let events = rows.map(|(resource, status, token, reason)| {
        format!(
            "<member><LogicalResourceId>{resource}</LogicalResourceId>\
            <ResourceStatus>{status}</ResourceStatus>\
            <ClientRequestToken>{token}</ClientRequestToken>\
            <ResourceStatusReason>{reason}</ResourceStatusReason></member>"
        )
    });
    format!("<StackEvents>{}</StackEvents>", events.concat())
}

/// The tables, with the names that they have on the local service.
fn resources() -> String {
    let resources = Table::ALL.iter().map(|table| {
        let id = table.logical_id;
        format!(
            "<member><LogicalResourceId>{id}</LogicalResourceId>\
            <PhysicalResourceId>{id}</PhysicalResourceId></member>"
        )
    });
    let resources: String = resources.collect();
    format!("<StackResourceSummaries>{resources}</StackResourceSummaries>")
}

/// The names and the default values of the parameters of `template.yaml`. A parameter without a
/// default has the first of its allowed values.
fn parameters() -> impl Iterator<Item = (String, String)> {
    let template: yaml_serde::Value = yaml_serde::from_str(TEMPLATE).unwrap();
    let parameters = template["Parameters"].as_mapping().unwrap().clone();
    parameters.into_iter().map(|(name, parameter)| {
        let default = parameter
            .get("Default")
            .unwrap_or(&parameter["AllowedValues"][0]);
        let default = yaml_serde::to_string(default).unwrap();
        let default = default.trim().trim_matches(['\'', '"']);
        (name.as_str().unwrap().to_owned(), default.to_owned())
    })
}

/// Reads a request.
fn read(connection: &TcpStream) -> Request {
    let mut reader = BufReader::new(connection);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    parse(std::str::from_utf8(&body).unwrap())
}

/// Parses a body. Its values need no decoding, because the tests send none that are encoded.
pub(crate) fn parse(body: &str) -> Request {
    let pairs = body.split('&').map(|pair| pair.split_once('=').unwrap());
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn run(arguments: &[&str], url: &str, requests: &Receiver<Request>) -> Outcome {
    let output = workspacectl(&["set"])
        .args(arguments)
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "local")
        .env("AWS_SECRET_ACCESS_KEY", "local")
        .env("AWS_ENDPOINT_URL_CLOUDFORMATION", url)
        .output()
        .unwrap();
    Outcome {
        output,
        requests: requests.try_iter().collect(),
    }
}

impl Outcome {
    fn actions(&self) -> Vec<&str> {
        let actions = self.requests.iter().map(|request| &*request["Action"]);
        actions.collect()
    }

    fn error(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// The request UpdateStack.
    fn update(&self) -> &Request {
        let mut requests = self.requests.iter();
        let update = requests.find(|request| request["Action"] == "UpdateStack");
        update.expect("a request UpdateStack")
    }

    #[track_caller]
    fn assert_succeeds(&self, message: &str) {
        assert!(self.output.status.success(), "{}", self.error());
        assert!(self.error().contains(message), "{}", self.error());
    }

    /// Asserts that the command failed with exit code 1 after it printed the table.
    #[track_caller]
    fn assert_update_fails(&self, message: &str) {
        assert_eq!(self.output.status.code(), Some(1), "{}", self.error());
        assert!(self.error().contains(message), "{}", self.error());
        assert!(
            self.output.stdout.starts_with(b" NAME"),
            "{:?}",
            self.output
        );
    }
}

#[test]
fn only_the_given_parameter_changes() {
    let outcome = STACK.set(&["KeyCacheSeconds=0", "--stack", "stack"]);

    outcome.assert_succeeds("the stack stack was updated");
    let update = outcome.update();
    assert_eq!(update["StackName"], "stack");
    assert_eq!(update["UsePreviousTemplate"], "true");
    assert!(!update.keys().any(|name| name.starts_with("Template")
        || name.starts_with("Tags")
        || name.starts_with("RoleARN")));
    let mut sent = BTreeSet::new();
    for number in 1..=parameters().count() {
        let value = |field: &str| update.get(&format!("Parameters.member.{number}.{field}"));
        let name = value("ParameterKey").unwrap();
        let (new, previous) = (value("ParameterValue"), value("UsePreviousValue"));
        let expected = match &**name {
            "KeyCacheSeconds" => (Some("0"), None),
            _ => (None, Some("true")),
        };
        let actual = (new.map(String::as_str), previous.map(String::as_str));
        assert_eq!(actual, expected, "{name}");
        sent.insert(name.clone());
    }
    assert_eq!(sent, parameters().map(|(name, _)| name).collect());
}

#[test]
fn the_capabilities_of_the_stack_and_of_its_transform_are_sent() {
    let outcome = STACK.set(&["KeyCacheSeconds=0", "--stack", "stack"]);

    let capabilities = outcome.update().iter();
    let capabilities: BTreeSet<_> = capabilities
        .filter(|(name, _)| name.starts_with("Capabilities."))
        .map(|(_, value)| &**value)
        .collect();
    let expected = BTreeSet::from(["CAPABILITY_AUTO_EXPAND", "CAPABILITY_IAM"]);
    assert_eq!(capabilities, expected);
}

#[test]
fn the_values_before_and_after_are_printed() {
    let arguments = ["KeyCacheSeconds=0", "MemorySize=256", "--stack", "stack"];
    let outcome = STACK.set(&arguments);
    let table = String::from_utf8(outcome.output.stdout).unwrap();
    let lines: Vec<Vec<_>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let expected = [
        ["NAME", "BEFORE", "AFTER"],
        ["KeyCacheSeconds", "60", "0"],
        ["MemorySize", "256", "256"],
    ];
    assert_eq!(lines, expected);

    let outcome = STACK.set(&[&arguments[..], &["--json"]].concat());
    let rows: Value = serde_json::from_slice(&outcome.output.stdout).unwrap();
    let expected = json!([
        { "name": "KeyCacheSeconds", "before": "60", "after": "0", "changed": true },
        { "name": "MemorySize", "before": "256", "after": "256", "changed": false },
    ]);
    assert_eq!(rows, expected);
}

#[test]
fn values_that_the_stack_has_already_do_not_update_it() {
    let outcome = STACK.set(&["KeyCacheSeconds=60", "AlarmTopic=", "--stack", "stack"]);

    outcome.assert_succeeds("the stack was not updated");
    assert_eq!(outcome.actions(), ["DescribeStacks", "GetTemplate"]);
}

#[test]
fn a_change_without_an_effect_succeeds() {
    let stack = Stack {
        rejection: Some(("ValidationError", "No updates are to be performed.")),
        ..STACK
    };
    let outcome = stack.set(&["HostedZoneId=Z1", "--stack", "stack"]);

    outcome.assert_succeeds("CloudFormation did not update the stack");
    assert_eq!(outcome.actions().last(), Some(&"UpdateStack"));
}

#[test]
fn invalid_arguments_send_no_request() {
    let rows: [(&[&str], &str); 6] = [
        (&["--stack", "stack"], "NAME=VALUE"),
        (
            &["KeyCacheSeconds", "--stack", "stack"],
            "such as MemorySize=512",
        ),
        (&["=512", "--stack", "stack"], "such as MemorySize=512"),
        (
            &["KeyCacheSeconds=0"],
            "name the stack to change with --stack",
        ),
        (
            &[
                "KeyCacheSeconds=0",
                "KeyCacheSeconds=60",
                "--stack",
                "stack",
            ],
            "KeyCacheSeconds is given more than once",
        ),
        (
            &["Architecture=arm64", "--stack", "stack"],
            "change it with `sam build && sam deploy`",
        ),
    ];
    for (arguments, message) in rows {
        let outcome = STACK.set(arguments);
        let error = outcome.error();
        assert_eq!(
            outcome.output.status.code(),
            Some(2),
            "{arguments:?}: {error}"
        );
        assert!(error.contains(message), "{arguments:?}: {error}");
        assert!(outcome.requests.is_empty(), "{:?}", outcome.actions());
    }
}

#[test]
fn values_that_the_template_forbids_update_nothing() {
    for (argument, message) in [
        (
            "Keycacheseconds=0",
            "the stack has no parameter Keycacheseconds: use one of ",
        ),
        (
            "Dashboard=yes",
            "invalid value \"yes\" for Dashboard: must be one of true, ",
        ),
        (
            "AlarmTopic=x",
            "for AlarmTopic: must be the ARN of an SNS topic, or empty",
        ),
    ] {
        let outcome = STACK.set(&["MemorySize=512", argument, "--stack", "stack"]);
        let error = outcome.error();
        assert_eq!(outcome.output.status.code(), Some(2), "{error}");
        assert!(error.contains(message), "{error}");
        assert!(outcome.output.stdout.is_empty(), "{:?}", outcome.output);
        assert_eq!(outcome.actions(), ["DescribeStacks", "GetTemplate"]);
    }
}

#[test]
fn a_rule_that_only_cloudformation_checks_is_shown() {
    let stack = Stack {
        rejection: Some(("ValidationError", "DomainName requires CertificateArn.")),
        ..STACK
    };
    let outcome = stack.set(&["DomainName=api.example.com", "--stack", "stack"]);

    outcome.assert_update_fails(
        "error: stack stack: CloudFormation rejected the update: \
        ValidationError: DomainName requires CertificateArn.\n",
    );
}

#[test]
fn the_reason_of_a_rollback_is_shown() {
    let stack = Stack {
        after: &["UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE"],
        ..STACK
    };
    let outcome = stack.set(&["ReservedConcurrency=900", "--stack", "stack"]);

    outcome.assert_update_fails(
        "error: stack stack: the update failed, and CloudFormation restored the previous values: \
        Function: The quota is exceeded\n",
    );
}

#[test]
fn a_failed_rollback_is_shown() {
    let stack = Stack {
        after: &["UPDATE_ROLLBACK_FAILED"],
        ..STACK
    };
    let outcome = stack.set(&["MemorySize=512", "--stack", "stack"]);

    outcome.assert_update_fails(
        "the status of the stack is UPDATE_ROLLBACK_FAILED: Function: The quota is exceeded\n",
    );
}

#[test]
fn no_wait_exits_when_the_update_has_started() {
    let stack = Stack {
        after: &["UPDATE_ROLLBACK_COMPLETE"],
        ..STACK
    };
    let outcome = stack.set(&["KeyCacheSeconds=0", "--stack", "stack", "--no-wait"]);

    outcome.assert_succeeds("the update of the stack stack has started");
    assert_eq!(outcome.actions().last(), Some(&"UpdateStack"));
}

#[test]
fn a_stack_that_is_being_updated_is_not_changed() {
    let stack = Stack {
        before: "UPDATE_IN_PROGRESS",
        ..STACK
    };
    let outcome = stack.set(&["KeyCacheSeconds=0", "--stack", "stack"]);

    assert_fails(&outcome.output, "its status is UPDATE_IN_PROGRESS");
    assert_eq!(outcome.actions(), ["DescribeStacks"]);
}

#[test]
fn an_unreachable_cloudformation_fails() {
    let (_, requests) = mpsc::channel();
    let arguments = ["KeyCacheSeconds=0", "--stack", "stack"];
    let outcome = run(&arguments, &unused_url(), &requests);

    assert_fails(&outcome.output, "stack stack: cannot read the stack: ");
}
