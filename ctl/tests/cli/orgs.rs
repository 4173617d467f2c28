//! `orgs`.

use crate::{assert_fails, server::Server};

#[test]
fn an_organization_is_registered_only_once() {
    let server = Server::start(&[]);

    assert_eq!(server.run(&["orgs", "create", "globex"]), "globex\n");
    let organizations = server.records(&["orgs", "list"]);
    let again = server.output(&["orgs", "create", "globex"]);
    assert_fails(
        &again,
        "the organization globex is already registered: choose another id",
    );
    let if_absent = ["orgs", "create", "globex", "--if-absent"];
    assert_eq!(server.run(&if_absent), "globex\n");
    assert_eq!(server.json(&if_absent)["created"], false);

    assert_eq!(server.records(&["orgs", "list"]), organizations);
    let hooli = ["orgs", "create", "hooli", "--if-absent"];
    assert_eq!(server.json(&hooli)["created"], true);
    let ids: Vec<_> = organizations.iter().map(|org| &org["org_id"]).collect();
    assert_eq!(ids, ["acme", "globex"]);
}

#[test]
fn an_invalid_organization_id_is_a_usage_error() {
    let server = Server::start(&[]);

    for id in ["not valid", "", ".", ".."] {
        let output = server.output(&["orgs", "create", id]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{id:?}: {error}");
        let advice = "use 1 to 128 of A-Z a-z 0-9 . _ ~ : @ -, but not `.` or `..`";
        assert!(error.contains(advice), "{id:?}: {error}");
    }

    let organizations = server.records(&["orgs", "list"]);
    assert_eq!(organizations.len(), 1, "{organizations:?}");
}
