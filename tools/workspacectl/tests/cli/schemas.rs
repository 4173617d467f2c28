//! The records of operations and commands have the attributes in `records.schema.json`.

use std::collections::{BTreeMap, BTreeSet};

use test_support::faults::DENIED;
use workspace_management::records::Table;
use workspace_records::{kinds::Kind, schemas};

use crate::{network::Network, new_file, server::Server};

#[test]
fn the_schemas_have_exactly_the_attributes_that_operations_and_commands_store() {
    let server = Server::with_records();
    let (_folder, file) = new_file();
    // The attributes of all records that were stored, by the name of their table.
    let mut seen = BTreeMap::<&str, BTreeSet<String>>::new();
    let mut look = || {
        for (table, record) in server.valid_records() {
            let names = record.as_object().unwrap().keys().cloned();
            seen.entry(Kind::of(table).plural)
                .or_default()
                .extend(names);
        }
    };
    // Kills a command when it has marked a record: while it waits.
    let kill_when_marked = |line: &str, mark: &str| {
        let mut process = server.start_until_marked(line, mark);
        process.kill().unwrap();
        process.wait().unwrap();
    };
    look();
    for command in [
        "edit team --org acme --project apollo research-team --name Manuals --yes",
        "edit data-store --org acme papers --description Maps --yes",
        "edit logging-instance --org acme --project apollo --project-name Zeus --yes",
        "edit model --org acme --type chat gpt-4o --id 7 --yes",
    ] {
        server.run(command);
    }
    look();
    server.run(&format!("orgs export acme --out {file}"));
    let disable = "orgs disable acme --wait 0";
    let edit = "orgs edit acme --name Acme --reference CRM-42";
    for command in [edit, disable, "orgs enable acme", disable] {
        server.run(command);
        look();
    }

    let erase = "orgs erase acme --without-export --yes";
    kill_when_marked(erase, "erasing_id");
    look();
    server.run(&format!("{erase} --wait 0"));
    assert!(server.valid_records().is_empty());
    server.run(&format!("restore --from {file}"));
    look();
    let remove = "remove team --org acme --project apollo research-team --yes";
    kill_when_marked(remove, "removing_id");
    look();
    server.run("remove team --org acme --project apollo research-team --cancel");
    look();
    // Commands that fail when they have begun to delete.
    let network = Network::with_team(&["ada"]);
    network.disable_acme();
    for line in [
        "remove team --org acme --project apollo docs --yes --wait 0",
        "orgs erase acme --without-export --yes --wait 0",
    ] {
        network.hooked_output(line, |request| request.writes("Delete").then_some(DENIED));
    }
    for table in [Table::ORGANIZATIONS, Table::TEAMS] {
        let record = network.dynamodb.records(table).remove(0);
        let names = record.as_object().unwrap().keys().cloned();
        seen.get_mut(Kind::of(table).plural).unwrap().extend(names);
    }

    for table in schemas::tables() {
        let described = schemas::schema(table)["properties"].as_object();
        let described: BTreeSet<String> = described.unwrap().keys().cloned().collect();
        assert_eq!(
            seen[Kind::of(table).plural],
            described,
            "{}",
            Kind::of(table).plural
        );
    }
}
