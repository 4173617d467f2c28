//! The clock of this machine differs from DynamoDB's.

use serde_json::json;
use workspace_local::fixtures::{self, key_record};
use workspace_management::{api_key::ApiKey, store::Table};

use crate::{assert_fails, network::Network, text, words, workspacectl};

/// A network whose clock is this many seconds behind that of this machine, with an organization.
fn network(behind: i64) -> Network {
    let mut network = Network::new();
    network.behind = behind;
    let organization = fixtures::organization("acme");
    network.dynamodb.put(Table::ORGANIZATIONS, organization);
    network
}

#[test]
fn a_small_difference_is_a_warning() {
    for (behind, expected) in [
        (0, None),
        (130, Some("clock is 2 minutes ahead of DynamoDB's")),
        (-130, Some("clock is 2 minutes behind DynamoDB's")),
    ] {
        let network = network(behind);
        let url = network.listen(|_, _| true);
        let mut list = workspacectl(&["orgs", "list"]);
        let output = list.env("AWS_ENDPOINT_URL_DYNAMODB", url).output().unwrap();
        let error = text(&output.stderr);
        assert!(output.status.success(), "{error}");
        assert_eq!(error.contains("warning: "), expected.is_some(), "{error}");
        assert!(error.contains(expected.unwrap_or_default()), "{error}");
    }
}

#[test]
fn nothing_is_written_with_a_clock_that_is_wrong() {
    let key = ApiKey::generate([1; 8], [[7; 16]; 2]);
    let key = json!(key_record(&key, "acme", "test"));
    let id = key["key_id"].as_str().unwrap();
    for behind in [25 * 3_600, -600] {
        let network = network(behind);
        network.dynamodb.put(Table::KEYS, &key);
        let url = network.listen(|_, _| true);
        for command in [
            "orgs create globex",
            "orgs disable acme",
            "keys create --org acme",
            "keys rotate KEY",
            "keys revoke KEY",
            "keys revoke --all --org acme --yes",
        ] {
            let mut process = workspacectl(&words(&command.replace("KEY", id)));
            let output = process.env("AWS_ENDPOINT_URL_DYNAMODB", &url).output();
            assert_fails(&output.unwrap(), "this machine's clock is ");
        }
        let organizations = network.dynamodb.records(Table::ORGANIZATIONS);
        assert_eq!(organizations, [fixtures::organization("acme")]);
        let keys = network.dynamodb.records(Table::KEYS);
        assert_eq!(keys, std::slice::from_ref(&key));
    }
}
