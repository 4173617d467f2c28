//! Runs the whole service on this machine: an embedded DynamoDB with the demo organization, the API
//! and the local page.

use std::{
    io::{self, ErrorKind, Write as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use axum::Router;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::net::TcpListener;
use workspace_management::{
    api_key::ApiKey,
    auth::AnonymousAccess,
    operations::Operation,
    records::{ApiKeyRecord, Organization, Table},
    service::Service,
    store::Store,
};
use workspace_records::{
    contract,
    local::{self, sdk_config, table_names},
};

pub use crate::options::Options;
use crate::{
    data_file::{self, DataFile},
    demo::{DEMO_KEY, DEMO_ORGANIZATION, store_demo},
    dynamodb::DynamoDb,
    events, gateway, page,
    server::{self, Access},
};

/// A service that runs in the background until the tokio runtime ends.
pub struct LocalService {
    /// The address of the API and the local page.
    pub url: String,
    /// The address of DynamoDB.
    pub dynamodb_url: String,
    dynamodb: DynamoDb,
    _data_file: Option<DataFile>,
}

impl LocalService {
    /// Starts the service.
    ///
    /// # Errors
    /// If an address or the data file is in use, or cannot be used.
    pub async fn start(options: &Options) -> Result<Self> {
        let api_listener = listen(options.host, options.port, "--port").await?;
        let dynamodb_listener =
            listen(options.host, options.dynamodb_port, "--dynamodb-port").await?;
        let url = client_url(api_listener.local_addr()?);
        let dynamodb_url = client_url(dynamodb_listener.local_addr()?);
        let (dynamodb, data_file) = match &options.data {
            None => {
                let dynamodb = DynamoDb::with_tables().await?;
                store_demo(&dynamodb.client(), &table_names()).await?;
                (dynamodb, None)
            }
            Some(file) => {
                let (dynamodb, data_file) = data_file::open(file).await?;
                (dynamodb, Some(data_file))
            }
        };
        let dynamodb_access = Access {
            hosts: options.allowed_hosts.clone(),
            ..Access::default()
        };
        let api_access = Access {
            hosts: options.allowed_hosts.clone(),
            has_pages: true,
            origin: options.cors.clone(),
        };
        let routes = api_and_page(options, &dynamodb_url, dynamodb.clone())?;
        tokio::spawn(dynamodb.clone().serve(dynamodb_listener, dynamodb_access));
        tokio::spawn(server::serve(api_listener, routes, api_access));
        Ok(Self {
            url,
            dynamodb_url,
            dynamodb,
            _data_file: data_file,
        })
    }

    /// A `curl` command for each operation.
    pub fn requests(&self, options: &Options) -> Vec<String> {
        let is_anonymous_denied = options.anonymous == AnonymousAccess::Denied;
        let mut requests = Vec::new();
        for operation in Operation::ALL {
            let request = contract::example(*operation, |_| None);
            let has_key = is_anonymous_denied || !operation.is_key_optional();
            requests.push(events::curl(&request, &self.url, has_key));
        }
        requests
    }

    /// Prints the addresses and a `curl` command for each operation to standard output, and without
    /// `--json` notes for a person to standard error.
    ///
    /// # Errors
    /// If DynamoDB cannot be read.
    pub async fn print(&self, options: &Options) -> Result<()> {
        let (url, dynamodb_url) = (&self.url, &self.dynamodb_url);
        let requests = self.requests(options);
        if options.json {
            let addresses = json!({
                "url": url,
                "dynamodb": dynamodb_url,
                "key": DEMO_KEY,
                "requests": requests,
            });
            print(&addresses.to_string());
            return Ok(());
        }
        let requests = requests.join("\n");
        print(&format!(
            "listening on {url}\ndynamodb on {dynamodb_url}\nkey: {DEMO_KEY}\n{requests}"
        ));
        for line in self.notes(options).await? {
            note(&line);
        }
        let command = doctor_command(url, dynamodb_url);
        note(&format!("to check the service: {command}"));
        note(&format!(
            "paste these requests into a shell, or open {url} in a browser"
        ));
        Ok(())
    }

    /// What a person should know besides the addresses and requests.
    async fn notes(&self, options: &Options) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        let settings = options.settings();
        if !settings.is_empty() {
            notes.push(format!("settings: {}", settings.join(" ")));
        }
        if !options.host.is_loopback() {
            notes.push("other machines can connect: DynamoDB checks no credentials".to_owned());
        }
        if self.dynamodb_url != local::DYNAMODB_URL {
            let variable = format!("AWS_ENDPOINT_URL_DYNAMODB={}", self.dynamodb_url);
            notes.push(format!("for `cargo ctl`: export {variable}"));
        }
        let acme = DEMO_ORGANIZATION;
        let key = ApiKey::parse(DEMO_KEY).context("the demo key is malformed")?;
        let demo_key: Option<ApiKeyRecord> = self.find(Table::API_KEYS, key.id).await?;
        if demo_key.is_some_and(|key| key.revoked_at.is_some()) {
            let create = format!("cargo ctl keys create --org {acme}");
            notes.push(format!("the demo key is revoked: run `{create}`"));
        }
        let organization: Option<Organization> = self.find(Table::ORGANIZATIONS, acme).await?;
        if organization.is_some_and(|organization| !organization.is_enabled()) {
            let enable = format!("cargo ctl orgs enable {acme}");
            notes.push(format!("organization {acme} is disabled: run `{enable}`"));
        }
        Ok(notes)
    }

    /// Reads the record with the primary key `id`.
    async fn find<R: DeserializeOwned>(&self, table: Table, id: &str) -> Result<Option<R>> {
        let client = self.dynamodb.client();
        let response = client
            .get_item()
            .table_name(table_names().get(table))
            .set_key(Some(table.primary_key(&[id])))
            .send()
            .await?;
        Ok(response.item.map(serde_dynamo::from_item).transpose()?)
    }
}

/// Prints lines to standard output. If this fails, the service goes on.
fn print(lines: &str) {
    if let Err(error) = writeln!(io::stdout(), "{lines}") {
        note(&format!("cannot print the addresses: {error}"));
    }
}

/// Prints a line to standard error. If this fails, nothing else changes.
pub fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// The routes of the API and the local page.
fn api_and_page(options: &Options, dynamodb_url: &str, dynamodb: DynamoDb) -> Result<Router> {
    let cache_ttl = Duration::from_secs(options.key_cache);
    let store = Store::new(sdk_config(dynamodb_url), table_names(), cache_ttl);
    let service = Arc::new(Service::new(store, options.anonymous));
    let api = gateway::routes(service, options.cors.as_deref(), options.rate_limit)?;
    let anonymous_allowed = options.anonymous == AnonymousAccess::Allowed;
    Ok(api.merge(page::routes(dynamodb, anonymous_allowed)?))
}

/// The command that checks this service.
fn doctor_command(api_url: &str, dynamodb_url: &str) -> String {
    match (api_url, dynamodb_url) {
        (local::API_URL, local::DYNAMODB_URL) => "cargo ctl doctor".to_owned(),
        (_, local::DYNAMODB_URL) => format!("cargo ctl doctor --url '{api_url}'"),
        _ => {
            format!("AWS_ENDPOINT_URL_DYNAMODB='{dynamodb_url}' cargo ctl doctor --url '{api_url}'")
        }
    }
}

async fn listen(host: IpAddr, port: u16, option: &str) -> Result<TcpListener> {
    let address = SocketAddr::new(host, port);
    match TcpListener::bind(address).await {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            bail!("{address} is in use: choose a different port with {option}")
        }
        Err(error) => bail!("cannot listen on {address}: {error}"),
    }
}

/// The URL of a listener for clients on this machine.
fn client_url(mut address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("http://{address}")
}

#[cfg(test)]
mod tests {
    use workspace_records::local::{API_URL, DYNAMODB_URL};

    use super::*;

    #[test]
    fn the_doctor_command_names_the_addresses_that_are_not_the_defaults() {
        let cases = [
            (API_URL, DYNAMODB_URL, "cargo ctl doctor"),
            (
                "http://a",
                DYNAMODB_URL,
                "cargo ctl doctor --url 'http://a'",
            ),
            (
                API_URL,
                "http://[::1]:2",
                "AWS_ENDPOINT_URL_DYNAMODB='http://[::1]:2' cargo ctl doctor --url 'http://127.0.0.1:3000'",
            ),
        ];
        for (api, dynamodb, expected) in cases {
            assert_eq!(doctor_command(api, dynamodb), expected);
        }
    }

    #[test]
    fn a_listener_on_all_addresses_is_reached_on_the_loopback_address() {
        let cases = [
            ("0.0.0.0:3000", "http://127.0.0.1:3000"),
            ("[::]:3000", "http://[::1]:3000"),
            ("192.0.2.1:80", "http://192.0.2.1:80"),
        ];
        for (address, expected) in cases {
            assert_eq!(client_url(address.parse().expect("an address")), expected);
        }
    }
}
