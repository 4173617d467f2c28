//! The policies for readers allow the requests of `docs/records.md`, and no write or API key.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::config::http::HttpRequest;
use aws_smithy_http_client::{
    Connector,
    tls::{Provider, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::client::http::HttpConnector as _;
use aws_smithy_types::{body::SdkBody, byte_stream::ByteStream};
use serde_json::{Value, json};
use workspace_management::{operation::Operation, store::Table};

use crate::{
    cloudformation::{Stack, text},
    support::{TestApp, operation_event},
};

const POLICIES: [&str; 2] = ["RecordsReader", "RecordsFollower"];

/// A statement that allows actions on resources. A resource is the logical id of a table, with
/// `/index/NAME` for an index or `/stream` for a stream.
#[derive(Debug, Clone)]
struct Statement {
    id: String,
    actions: BTreeSet<String>,
    resources: BTreeSet<String>,
}

impl Statement {
    fn allows(&self, action: &str, resource: &str) -> bool {
        self.actions.contains(action) && self.resources.contains(resource)
    }
}

/// The statements of a policy of the template.
fn policy(name: &str) -> Vec<Statement> {
    let policy = &Stack::new(&[]).resources()[name].properties;
    let statements = &policy["PolicyDocument"]["Statement"];
    let statement = |statement: &yaml_serde::Value| {
        assert_eq!(statement["Effect"], "Allow");
        let members = statement.as_mapping().unwrap().keys();
        let members: BTreeSet<_> = members.map(|name| name.as_str().unwrap()).collect();
        assert_eq!(members, ["Sid", "Effect", "Action", "Resource"].into());
        let actions = match &statement["Action"] {
            yaml_serde::Value::Sequence(actions) => actions.clone(),
            action => vec![action.clone()],
        };
        let actions = actions.iter().map(|action| {
            let action = action.as_str().unwrap().strip_prefix("dynamodb:");
            action.expect("an action of DynamoDB").to_owned()
        });
        let resources = statement["Resource"].as_sequence().unwrap().iter();
        Statement {
            id: statement["Sid"].as_str().unwrap().to_owned(),
            actions: actions.collect(),
            resources: resources.map(resource).collect(),
        }
    };
    let statements = statements.as_sequence().unwrap().iter();
    statements.map(statement).collect()
}

/// The resource to which an attribute of a table refers.
fn resource(reference: &yaml_serde::Value) -> String {
    let text = text(reference).replace(".StreamArn", "/stream");
    text.replace(".Arn", "")
}

/// A reader of the records, for whom statements are evaluated before each request.
struct Reader<'a> {
    app: &'a TestApp,
    statements: Vec<Statement>,
    network: Connector,
    /// The stream of each iterator. In AWS, an iterator contains it.
    iterators: BTreeMap<String, String>,
}

impl<'a> Reader<'a> {
    fn new(app: &'a TestApp, statements: Vec<Statement>) -> Self {
        let tls = Provider::rustls(CryptoMode::Ring);
        Self {
            app,
            statements,
            network: Connector::builder().tls_provider(tls).build(),
            iterators: BTreeMap::new(),
        }
    }

    /// The response, or nothing if the request is denied.
    async fn send(&mut self, action: &str, body: &Value) -> Option<Value> {
        let resources = self.resources(action, body);
        assert!(!resources.is_empty(), "{action} {body} has no resource");
        let is_allowed = resources.iter().all(|resource| {
            let mut statements = self.statements.iter();
            statements.any(|statement| statement.allows(action, resource))
        });
        if !is_allowed {
            return None;
        }
        let mut request = HttpRequest::new(SdkBody::from(body.to_string()));
        request.set_method("POST").unwrap();
        request.set_uri(self.app.endpoint.as_str()).unwrap();
        let service = match action {
            "DescribeStream" | "GetShardIterator" | "GetRecords" | "ListStreams" => {
                "DynamoDBStreams"
            }
            _ => "DynamoDB",
        };
        let headers = request.headers_mut();
        headers.insert("content-type", "application/x-amz-json-1.0");
        headers.insert("x-amz-target", format!("{service}_20120810.{action}"));
        // Local engines require a signature, and do not check it.
        headers.insert("x-amz-date", "20260101T000000Z");
        headers.insert(
            "authorization",
            "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, \
             SignedHeaders=host, Signature=0",
        );
        let response = self.network.call(request).await.unwrap();
        let status = response.status().as_u16();
        let bytes = ByteStream::new(response.into_body()).collect().await;
        let response: Value = serde_json::from_slice(&bytes.unwrap().into_bytes()).unwrap();
        assert_eq!(status, 200, "{action} {body}: {response}");
        if let Some(iterator) = response["ShardIterator"].as_str() {
            self.iterators
                .insert(iterator.to_owned(), resources[0].clone());
        }
        Some(response)
    }

    /// The resources for which a request needs a permission.
    fn resources(&self, action: &str, body: &Value) -> Vec<String> {
        let table = |name: &str| {
            let mut tables = Table::ALL.iter();
            let table = tables.find(|table| self.app.tables.name(**table) == name);
            table.unwrap().logical_id.to_owned()
        };
        if action == "GetRecords" {
            return vec![self.iterators[body["ShardIterator"].as_str().unwrap()].clone()];
        }
        if let Some(arn) = body["StreamArn"].as_str() {
            return vec![table(arn.split('/').nth(1).unwrap()) + "/stream"];
        }
        if let Some(index) = body["IndexName"].as_str() {
            let name = body["TableName"].as_str().unwrap();
            return vec![format!("{}/index/{index}", table(name))];
        }
        let batch = body["RequestItems"].as_object().into_iter();
        let batch = batch.flat_map(|tables| tables.keys().map(String::as_str));
        let names = body["TableName"].as_str().into_iter().chain(batch);
        names.map(table).collect()
    }
}

/// The requests of `docs/records.md`, as the AWS CLI sends them.
fn documented_requests(app: &TestApp) -> Vec<(String, Value)> {
    let documentation = include_str!("../../docs/records.md");
    let blocks = documentation.split("```sh needs=aws\n").skip(1);
    let blocks = blocks.map(|block| block.split("```").next().unwrap());
    let mut requests = Vec::new();
    for block in blocks.filter(|block| block.starts_with("aws dynamodb ")) {
        let mut block = block.replace("\\\n", " ");
        for table in Table::ALL {
            block = block.replace(
                &format!("${}\"", table.variable),
                &format!("{}\"", app.tables.name(*table)),
            );
        }
        let words = shlex::split(&block).unwrap();
        let commands = words.split(|word| word == "aws").skip(1);
        requests.extend(commands.map(request));
    }
    requests
}

/// The action and the body of a command.
fn request(command: &[String]) -> (String, Value) {
    assert_eq!(command[0], "dynamodb");
    let mut body = json!({});
    let mut words = command[2..].iter().peekable();
    while let Some(option) = words.next() {
        let name = pascal_case(option.strip_prefix("--").unwrap());
        body[name] = match words.next_if(|word| !word.starts_with("--")) {
            None => json!(true),
            Some(word) => serde_json::from_str(word).unwrap_or_else(|_| json!(word)),
        };
    }
    (pascal_case(&command[1]), body)
}

fn pascal_case(kebab: &str) -> String {
    let words = kebab.split('-');
    words
        .map(|word| word[..1].to_uppercase() + &word[1..])
        .collect()
}

/// An app with the records of every operation.
async fn app_with_records() -> TestApp {
    let app = TestApp::new().await;
    app.insert_demo_key().await;
    for operation in Operation::ALL {
        app.send(operation_event(*operation)).await.assert_success();
    }
    app
}

/// The tables of records: all but that of the keys.
fn record_tables() -> impl Iterator<Item = Table> {
    Table::ALL
        .iter()
        .copied()
        .filter(|table| *table != Table::KEYS)
}

/// Asserts that a response has a record of the example in it.
fn assert_finds_records(action: &str, body: &Value, response: &Value) {
    let found = match action {
        "GetItem" => response["Item"].is_object(),
        "BatchGetItem" => {
            let mut tables = response["Responses"].as_object().unwrap().values();
            tables.all(|records| !records.as_array().unwrap().is_empty())
        }
        _ => !response["Items"].as_array().unwrap().is_empty(),
    };
    assert!(found, "{action} {body}: {response}");
}

/// The requests that follow the stream of a table, from its ARN on.
async fn follow(reader: &mut Reader<'_>, table: Table) -> Option<usize> {
    let described = reader.app.dynamodb.describe_table();
    let described = described
        .table_name(reader.app.tables.name(table))
        .send()
        .await;
    let stream = described.unwrap().table.unwrap().latest_stream_arn.unwrap();
    let description = reader
        .send("DescribeStream", &json!({ "StreamArn": stream }))
        .await?;
    let shard = &description["StreamDescription"]["Shards"][0]["ShardId"];
    let position =
        json!({ "StreamArn": stream, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON" });
    let position = reader.send("GetShardIterator", &position).await?;
    let iterator = json!({ "ShardIterator": position["ShardIterator"] });
    let records = reader.send("GetRecords", &iterator).await?;
    Some(records["Records"].as_array().unwrap().len())
}

#[test]
fn policies_only_allow_reading_records() {
    let tables: BTreeSet<_> = record_tables().map(|table| table.logical_id).collect();
    for name in POLICIES {
        for statement in policy(name) {
            for action in &statement.actions {
                let reads = ["Get", "BatchGet", "Query", "Scan", "Describe", "List"];
                assert!(
                    reads.iter().any(|prefix| action.starts_with(prefix)),
                    "{action}"
                );
                assert!(!action.contains('*'), "{action}");
            }
            for resource in &statement.resources {
                let table = resource.split('/').next().unwrap();
                assert!(tables.contains(table), "{resource}");
                assert!(!resource.contains('*'), "{resource}");
            }
        }
    }
}

/// No engine evaluates this: moto does not attach policies to a role that CloudFormation creates.
#[test]
fn the_role_of_readers_has_both_policies_for_the_given_principals_only() {
    let resources = |principals| Stack::new(&[("ReaderPrincipals", principals)]).resources();
    assert!(!resources("").contains_key("ReaderRole"));
    let role = &resources("111122223333,444455556666")["ReaderRole"].properties;
    assert!(role.get("Policies").is_none());
    let policies = role["ManagedPolicyArns"].as_sequence().unwrap().iter();
    assert_eq!(policies.map(text).collect::<Vec<_>>(), POLICIES);

    let statements = &role["AssumeRolePolicyDocument"]["Statement"];
    let [statement] = statements.as_sequence().unwrap().as_slice() else {
        panic!("{statements:?}")
    };
    assert_eq!(statement["Action"], "sts:AssumeRole");
    let principals = statement["Principal"]["AWS"].as_sequence().unwrap().iter();
    let principals: Vec<_> = principals.map(text).collect();
    assert_eq!(principals, ["111122223333", "444455556666"]);
    assert_eq!(statement["Principal"].as_mapping().unwrap().len(), 1);
}

#[tokio::test]
async fn every_documented_request_is_allowed_and_needs_its_statement() {
    let app = app_with_records().await;
    let requests = documented_requests(&app);
    assert!(requests.len() > 10, "{requests:?}");
    for name in POLICIES {
        let statements = policy(name);
        for (action, body) in &requests {
            let mut reader = Reader::new(&app, statements.clone());
            let response = reader.send(action, body).await;
            let response = response.unwrap_or_else(|| panic!("{name} denies {action} {body}"));
            assert_finds_records(action, body, &response);
            let allowing = reader.resources(action, body);
            let without: Vec<_> = statements
                .iter()
                .filter(|statement| {
                    !allowing
                        .iter()
                        .any(|resource| statement.allows(action, resource))
                })
                .cloned()
                .collect();
            assert_eq!(without.len() + 1, statements.len(), "{action} {body}");
            let denied = Reader::new(&app, without).send(action, body).await;
            assert_eq!(denied, None, "{action} {body}");
        }
    }
}

#[tokio::test]
async fn only_a_follower_can_scan_and_read_streams() {
    let app = app_with_records().await;
    for table in record_tables() {
        let scan = json!({ "TableName": app.tables.name(table), "ConsistentRead": true });

        let mut reader = Reader::new(&app, policy("RecordsReader"));
        assert_eq!(reader.send("Scan", &scan).await, None);
        assert_eq!(follow(&mut reader, table).await, None);

        let mut follower = Reader::new(&app, policy("RecordsFollower"));
        let response = follower.send("Scan", &scan).await.unwrap();
        assert_finds_records("Scan", &scan, &response);
        let events = follow(&mut follower, table).await;
        assert!(events > Some(0), "{}: {events:?}", table.noun);

        let mut statements = policy("RecordsFollower");
        statements.retain(|statement| statement.id != "ReadStreams");
        let mut reader = Reader::new(&app, statements);
        assert_eq!(follow(&mut reader, table).await, None);
    }
}

#[tokio::test]
async fn writes_and_reads_of_keys_are_denied() {
    let app = app_with_records().await;
    for name in POLICIES {
        let mut reader = Reader::new(&app, policy(name));
        for table in Table::ALL {
            let body = json!({ "TableName": app.tables.name(*table) });
            for action in ["PutItem", "UpdateItem", "DeleteItem", "DeleteTable"] {
                assert_eq!(
                    reader.send(action, &body).await,
                    None,
                    "{name}: {action} {body}"
                );
            }
            let batch = json!({ "RequestItems": { app.tables.name(*table): [] } });
            let denied = reader.send("BatchWriteItem", &batch).await;
            assert_eq!(denied, None, "{name}: BatchWriteItem {batch}");
        }
        let keys = app.tables.name(Table::KEYS);
        for action in ["GetItem", "Query", "Scan"] {
            let body = json!({ "TableName": keys });
            assert_eq!(reader.send(action, &body).await, None, "{name}: {action}");
        }
        let index = json!({ "TableName": keys, "IndexName": "by_organization" });
        assert_eq!(reader.send("Query", &index).await, None, "{name}");
        // A batch is denied if one of its tables is.
        let batch = json!({ "RequestItems": { keys: {}, app.tables.name(Table::TEAMS): {} } });
        assert_eq!(reader.send("BatchGetItem", &batch).await, None, "{name}");
    }
}
