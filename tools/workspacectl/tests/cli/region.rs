//! A region is lost: a second service takes over from restored tables, as in the runbook.

use serde_json::{Value, json};
use workspace_local::demo::DEMO_KEY;
use workspace_management::records::Table;
use workspace_records::kinds::Kind;

use crate::{
    docs::{bash, documents},
    keys,
    server::Server,
};

/// Copies each table of a service to a table of the other, as AWS Backup restores it.
fn copy_tables(from: &Server, to: &Server) {
    for table in Table::ALL {
        let source = table.logical_id;
        let name = format!("restored-{}", Kind::of(*table).plural);
        let description = from.dynamodb("DescribeTable", &json!({ "TableName": source }));
        let description = &description["Table"];
        let mut attributes = description["AttributeDefinitions"].clone();
        let attributes = attributes.as_array_mut().unwrap();
        // Without indexes, only the attributes of the primary key may be defined.
        attributes.retain(|it| {
            let mut names = table.primary_key_attributes.iter();
            names.any(|name| it["AttributeName"] == *name)
        });
        let create = json!({ "TableName": name, "KeySchema": description["KeySchema"],
            "AttributeDefinitions": attributes, "BillingMode": "PAY_PER_REQUEST" });
        to.dynamodb("CreateTable", &create);
        let scan = from.dynamodb("Scan", &json!({ "TableName": source }));
        for item in scan["Items"].as_array().unwrap() {
            to.dynamodb("PutItem", &json!({ "TableName": name, "Item": item }));
        }
    }
}

/// The records, without what a restore adds to them.
fn records(server: &Server) -> Vec<(Table, Value)> {
    let mut records = server.valid_records();
    records.retain(|(table, _)| Table::ALL.contains(table));
    for (_, record) in &mut records {
        let attributes = record.as_object_mut().unwrap();
        attributes.retain(|name, _| !name.starts_with("restored_"));
    }
    records.sort_by_key(|(table, record)| format!("{}{record}", table.logical_id));
    records
}

#[test]
fn the_other_region_has_the_same_records_and_accepts_the_same_keys() {
    let lost = Server::with_records();
    lost.run("orgs create globex");
    let disabled = lost.run("keys create --org globex");
    lost.run("orgs disable globex --wait 0");
    let revoked = keys::create(&lost, "");
    lost.run(&format!("keys revoke {}", &revoked[4..16]));
    let other = Server::start();
    other.run("orgs disable acme --wait 0");
    other.run("orgs erase acme --without-export --yes --wait 0");
    copy_tables(&lost, &other);
    assert_eq!(other.create_data_store("acme", DEMO_KEY, "New"), 401);

    let documents = documents();
    let runbook = documents.iter().find(|it| it.name == "docs/runbook.md");
    let mut blocks = runbook.unwrap().blocks().into_iter();
    let block = blocks.find(|it| it.text.contains(r#"--from "restored-$kind""#));
    let failure = bash("run", &block.unwrap().text, &other.dynamodb_url);
    assert_eq!(failure, None);

    assert_eq!(records(&other), records(&lost));
    other.run(&format!("doctor --strict --url {}", other.url));
    assert_eq!(other.create_data_store("acme", DEMO_KEY, "New"), 204);
    assert_eq!(other.create_data_store("acme", &revoked, "Other"), 401);
    assert_eq!(
        other.create_data_store("globex", disabled.trim(), "New"),
        403
    );
}
