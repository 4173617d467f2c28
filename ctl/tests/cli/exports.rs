//! The files of `orgs export`, `orgs erase` and `remove --export`. `kills` tests interruptions.

use std::{collections::BTreeSet, fs, path::Path, process::Child};

use workspace_management::store::Table;

use crate::{assert_fails, assert_usage_error, network::Network, server::Server};

/// A folder, and a file in it that does not exist yet.
fn new_file() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("export.jsonl");
    let file = file.to_str().unwrap().to_owned();
    (folder, file)
}

fn erasure(file: &str, wait: &str) -> String {
    format!("orgs erase acme --yes --wait {wait} --export {file}")
}

/// A service with a disabled organization, whose erasure waits after it has created its file.
fn start_erasure(server: &Server, file: &str) -> Child {
    server.run("orgs disable acme --wait 0");
    let erase = server.start_until_marked(&erasure(file, "90"), "erasing_id");
    assert!(Path::new(&format!("{file}.partial")).is_file());
    erase
}

#[test]
fn an_erasure_that_was_killed_is_continued_with_another_file() {
    let server = Server::with_records();
    let (folder, file) = new_file();
    let mut process = start_erasure(&server, &file);
    process.kill().unwrap();
    process.wait().unwrap();

    let enable = server.output("orgs enable acme");
    assert_fails(&enable, "is being erased: it cannot be enabled again");
    let again = server.output(&erasure(&file, "0"));
    assert_usage_error(&again, "export.jsonl.partial, or was interrupted");
    assert!(!server.records("list models").is_empty());
    let other = folder.path().join("other.jsonl");
    let other = other.to_str().unwrap();
    server.run(&erasure(other, "0"));

    for table in Table::ALL {
        assert_eq!(server.count(table.logical_id), 0, "{}", table.noun);
    }
    assert!(fs::read_to_string(other).unwrap().lines().count() > 5);
    assert_usage_error(&server.output(&erasure(other, "0")), "exists");
}

/// The arguments of each kind of removal. Each removes one record.
fn removals() -> [&'static str; 7] {
    [
        "remove member --project apollo --team research-team ada",
        "remove member --all-teams grace --yes",
        "remove model --type chat gpt-4o",
        "remove data-store papers",
        "remove voice bot-7",
        "remove logging-instance --project apollo",
        "remove team --project apollo research-team --wait 0 --yes",
    ]
}

#[test]
fn each_removal_is_undone_from_its_file() {
    let server = Server::with_records();
    let all = || -> BTreeSet<String> {
        let export = server.run("orgs export acme");
        export.lines().map(str::to_owned).collect()
    };
    let before = all();
    let (folder, _) = new_file();
    let mut files = Vec::new();
    for (number, removal) in removals().into_iter().enumerate() {
        let file = folder.path().join(number.to_string());
        let file = file.to_str().unwrap().to_owned();
        let line = format!("{removal} --org acme --export {file}");
        let removed = server.json(&line);
        assert_eq!(removed["removed_by"], server.operator(), "{removed}");
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(before.contains(text.trim_end()), "{text}");
        // Another undo must not restore what this file has.
        assert_usage_error(&server.output(&line), "exists: choose another file");
        files.push(file);
    }
    assert_eq!(all().len() + files.len(), before.len());
    // The team comes before its members.
    for file in files.iter().rev() {
        server.run(&format!("restore --from {file}"));
    }
    assert_eq!(all().len(), before.len());
}

#[test]
fn nothing_changes_if_the_export_cannot_be_written_or_nothing_is_found() {
    let server = Server::with_records();
    let (folder, file) = new_file();
    let before = server.valid_records();
    for removal in removals() {
        let unwritable = format!("{removal} --org acme --export missing/export.jsonl");
        let output = server.output(&unwritable);
        assert_fails(&output, "cannot write missing/export.jsonl");
    }
    let missing = format!("remove voice --org acme nobody --export {file}");
    assert_fails(&server.output(&missing), "does not exist");
    assert_eq!(server.valid_records(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Another program creates the file of an erasure before it is complete.
#[test]
fn nothing_is_deleted_if_the_export_fails() {
    let network = Network::with_team(&["ada"]);
    network.disable_acme();
    let (folder, file) = new_file();
    let path = file.clone();
    let output = network.output_if(&erasure(&file, "0"), move |action, _| {
        if action == "dynamodb:UpdateItem" {
            fs::write(&path, "other").unwrap();
        }
        true
    });

    assert_fails(&output, "export.jsonl exists");
    assert_eq!(network.dynamodb.records(Table::TEAM_MEMBERS).len(), 1);
    assert_eq!(fs::read_to_string(&file).unwrap(), "other");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
