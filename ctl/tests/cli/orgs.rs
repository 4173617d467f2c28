//! `orgs`.

use crate::{assert_fails, server::Server};

#[test]
fn registering_an_organization_again_changes_nothing() {
    let server = Server::start(&[]);

    assert_eq!(server.run(&["orgs", "create", "globex"]), "globex\n");
    let organizations = server.records(&["orgs", "list"]);
    assert_eq!(server.run(&["orgs", "create", "globex"]), "globex\n");

    assert_eq!(server.records(&["orgs", "list"]), organizations);
    let ids: Vec<_> = organizations.iter().map(|org| &org["org_id"]).collect();
    assert_eq!(ids, ["acme", "globex"]);
}

#[test]
fn an_invalid_organization_id_is_rejected() {
    let server = Server::start(&[]);
    let output = server.output(&["orgs", "create", "not valid"]);
    assert_fails(
        &output,
        "invalid organization id \"not valid\": use 1 to 128",
    );
}
