//! The page of `serve`.

use serde_json::{Value, json};

use crate::{listed_tables, server::Server};

const POLICY: &str =
    "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

fn json(server: &Server, path: &str) -> Value {
    let response = server.get(path);
    assert_eq!(response.status, 200, "{path}: {}", response.body);
    serde_json::from_str(&response.body).unwrap()
}

/// The numbers of records that the page shows, of each kind that has some.
fn totals(server: &Server) -> Value {
    let kinds = json(server, "/stored");
    let kinds = kinds.as_array().unwrap().iter();
    let filled = kinds.filter(|kind| kind["total"] != 0);
    filled
        .map(|kind| {
            (
                kind["kind"].as_str().unwrap().to_owned(),
                kind["total"].clone(),
            )
        })
        .collect()
}

#[test]
fn the_page_and_its_files_come_from_the_server_itself() {
    let server = Server::start(&[]);

    let page = server.get("/");

    assert_eq!(page.status, 200);
    assert!(page.body.contains(&server.key), "{}", page.body);
    assert!(!page.body.contains("//"), "{}", page.body);
    let links = page.body.split('"').filter(|part| part.starts_with('/'));
    let files: Vec<_> = links.collect();
    assert!(files.contains(&"/page.js"), "{files:?}");
    for file in files {
        let response = server.get(file);
        assert_eq!(response.status, 200, "{file}");
        let header = |name: &str| response.headers[name].to_str().unwrap();
        assert_eq!(header("content-security-policy"), POLICY, "{file}");
        assert_eq!(header("x-content-type-options"), "nosniff", "{file}");
    }
}

#[test]
fn the_contract_names_the_server_itself_and_keeps_the_order_of_the_operations() {
    let server = Server::start(&[]);

    let yaml = server.get("/openapi.yaml").body;
    let json = server.get("/openapi.json").body;

    for (contract, url) in [(&yaml, "- url: /\n"), (&json, r#"{"url":"/","#)] {
        assert!(contract.contains(url) && !contract.contains("127.0.0.1"));
        let position = |operation: &str| contract.find(operation).unwrap();
        assert!(position("createNewTeamOnProject") < position("addUsersToTheTeam"));
    }
    let parsed: Value = yaml_serde::from_str(&yaml).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), parsed);
}

#[test]
fn the_page_shows_the_same_records_as_list() {
    let server = Server::start(&[]);
    server.send_events();

    let stored = json(&server, "/stored");

    let kinds: Vec<_> = stored.as_array().unwrap().iter().collect();
    let names: Vec<_> = kinds.iter().map(|kind| &kind["kind"]).collect();
    let tables: Vec<_> = listed_tables().map(|table| table.noun).collect();
    assert_eq!(names, tables);
    for (kind, name) in kinds.iter().zip(tables) {
        let records = Value::from(server.records(&["list", name]));
        assert_eq!(kind["records"], records, "{name}");
        assert_eq!(
            json(&server, &format!("/stored/{name}"))["records"],
            records
        );
    }
    assert_eq!(server.get("/stored/nothing").status, 404);
}

#[test]
fn the_page_shows_the_newest_records_first_and_at_most_twenty_of_a_kind() {
    let server = Server::start(&[]);
    for number in 0..25 {
        let name = format!("Store {number}");
        assert_eq!(server.create_data_store("acme", &server.key, &name), 204);
    }

    let stored = json(&server, "/stored");
    let kinds = stored.as_array().unwrap();
    let kind = kinds.iter().find(|kind| kind["kind"] == "data-stores");
    let all = json(&server, "/stored/data-stores");

    let ids = |kind: &Value| -> Vec<Value> {
        let records = kind["records"].as_array().unwrap().iter();
        records
            .map(|record| record["data_store_id"].clone())
            .collect()
    };
    let expected: Vec<_> = (0..25)
        .rev()
        .map(|number| json!(format!("store-{number}")))
        .collect();
    assert_eq!(ids(&all), expected);
    assert_eq!(ids(kind.unwrap()), expected[..20]);
    assert_eq!(kind.unwrap()["total"], 25);
    let selected = json(
        &server,
        "/stored/data-stores?org_id=acme&data_store_id=store-3",
    );
    assert_eq!(ids(&selected), ["store-3"]);
}

#[test]
fn the_records_of_a_request_have_its_id() {
    let server = Server::start(&[]);
    let path = "/api/v1/bot/playground/bot-7/voice";
    let authorization = format!("Bearer {}", server.key);
    let set_voice = |voice: &str| {
        let body = json!({ "type": voice, "enabled": true }).to_string();
        let response = server.post(path, Some(&authorization), &body);
        assert_eq!(response.status, 204, "{}", response.body);
        response.headers["x-request-id"]
            .to_str()
            .unwrap()
            .to_owned()
    };
    let stored_by = |id: &str| json(&server, &format!("/stored/by/{id}"));

    let created = set_voice("alloy");
    assert_eq!(stored_by(&created)[0]["kind"], "voices");
    let repeated = set_voice("alloy");
    assert_eq!(stored_by(&repeated), json!([]));
    let changed = set_voice("verse");
    assert_eq!(
        stored_by(&changed)[0]["records"][0]["updated_request_id"],
        json!(changed)
    );
}

#[test]
fn the_page_follows_every_way_to_change_a_record() {
    let server = Server::start(&[]);
    assert_eq!(totals(&server), json!({}));
    let store = json!({ "org_id": { "S": "acme" }, "data_store_id": { "S": "a" } });
    let table = "DataStoresTable";
    let update = json!({
        "TableName": table, "Key": store, "UpdateExpression": "SET data_store_name = :name",
        "ExpressionAttributeValues": { ":name": { "S": "A" } },
    });
    let delete = json!({ "TableName": table, "Key": store });
    let key = store.clone();
    let put = json!({ "Put": { "TableName": table, "Item": store } });
    let batch = json!({ "DeleteRequest": { "Key": store } });
    let insert =
        format!("INSERT INTO \"{table}\" VALUE {{'org_id': 'acme', 'data_store_id': 'a'}}");
    for (action, request, total) in [
        ("PutItem", json!({ "TableName": table, "Item": store }), 1),
        ("UpdateItem", update, 1),
        ("DeleteItem", delete, 0),
        ("TransactWriteItems", json!({ "TransactItems": [put] }), 1),
        (
            "BatchWriteItem",
            json!({ "RequestItems": { table: [batch] } }),
            0,
        ),
        ("ExecuteStatement", json!({ "Statement": insert }), 1),
    ] {
        server.dynamodb(action, &request);
        let all = json(&server, "/stored/data-stores");
        assert_eq!(all["total"], total, "{action}");
        if action == "UpdateItem" {
            assert_eq!(all["records"][0]["data_store_name"], "A");
        }
    }
    // It has no `created_at`, as every record of the service has.
    server.delete_item(table, key);
    server.send_events();
    server.run(&[
        "remove", "model", "--org", "acme", "--type", "chat", "gpt-4o", "--yes",
    ]);
    let listed = server.records(&["list", "models"]).len();
    assert_eq!(json(&server, "/stored/models")["total"], listed);
}

/// `ci/page` tests how it shows them.
#[test]
fn records_with_unexpected_types_come_last() {
    let server = Server::start(&[]);
    assert_eq!(server.create_data_store("acme", &server.key, "New"), 204);
    for (id, value) in [
        ("map", json!({ "M": { "toString": { "N": "1" } } })),
        ("null", json!({ "NULL": true })),
        ("number", json!({ "N": "9999" })),
    ] {
        let org = json!({ "S": "acme" });
        let item = json!({ "org_id": org, "data_store_id": { "S": id }, "created_at": value });
        let request = json!({ "TableName": "DataStoresTable", "Item": item });
        server.dynamodb("PutItem", &request);
    }

    let all = json(&server, "/stored/data-stores");

    let records = all["records"].as_array().unwrap().iter();
    let ids: Vec<_> = records.map(|record| &record["data_store_id"]).collect();
    assert_eq!(ids, ["new", "map", "null", "number"]);
    assert_eq!(all["records"][1]["created_at"], json!({ "toString": 1 }));
}

#[test]
fn the_page_shows_a_table_that_was_created_again() {
    let server = Server::start(&[]);
    server.send_events();
    let before = totals(&server);

    server.recreate_without_index("TeamsTable");

    assert_eq!(totals(&server), before);
    server.delete_item(
        "TeamsTable",
        json!({ "project": { "S": "acme#apollo" }, "team_id": { "S": "research-team" } }),
    );
    assert_eq!(json(&server, "/stored/teams")["total"], 0);
}

#[test]
fn unchanged_records_are_not_sent_again() {
    let server = Server::start(&[]);
    server.send_events();
    let etag = |server: &Server| server.get("/stored").headers["etag"].clone();
    let first = etag(&server);

    let repeated = server.get_if_none_match("/stored", first.to_str().unwrap());

    assert_eq!((repeated.status, repeated.body.as_str()), (304, ""));
    assert_eq!(server.create_data_store("acme", &server.key, "New"), 204);
    let changed = server.get_if_none_match("/stored", first.to_str().unwrap());
    assert_eq!(changed.status, 200);
    assert_ne!(etag(&server), first);
}

#[test]
fn the_page_does_not_hide_the_api() {
    let server = Server::start(&[]);
    let response = server.get("/api/v1/org/acme/dataStores/create");
    assert_eq!(response.status, 405, "{}", response.body);
    assert!(
        response.body.contains("method_not_allowed"),
        "{}",
        response.body
    );
}
