//! `serve`: the whole service on this machine. It starts an embedded DynamoDB, creates the tables,
//! stores the demo organization, and serves the API and a page.

mod data_file;
mod options;

use std::{
    io::ErrorKind,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow};
use axum::Router;
use serde_json::json;
use tokio::net::TcpListener;
use workspace_local::{
    demo::{DEMO_KEY, DEMO_ORGANIZATION, store_demo},
    dynamodb::DynamoDb,
    events, gateway,
    server::{self, Access},
};
use workspace_management::{
    api_key::ApiKey,
    auth::AnonymousOperations,
    service::Service,
    store::{Store, Table},
};
use workspace_records::local::{self, sdk_config, table_names};

pub(crate) use self::options::Options;
use crate::{
    deployment::Deployment, interruptions::interruption, output::print, page, records::get,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl serve
  workspacectl serve --data data.sqlite --key-cache 0
  workspacectl serve --anonymous denied --cors http://localhost:5173 --open
  workspacectl serve --port 3001 --dynamodb-port 8001
  AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:8001 workspacectl list teams";

/// Serves until Ctrl-C or SIGTERM. Requests in progress are aborted then.
pub(crate) async fn run(options: Options, json: bool) -> Result<()> {
    // Before anything is printed, since a script may stop the service as soon as it reads that.
    let interruption = interruption()?;
    let api_listener = listen(options.host, options.port, "--port").await?;
    let dynamodb_listener = listen(options.host, options.dynamodb_port, "--dynamodb-port").await?;
    let api_url = url(api_listener.local_addr()?);
    let dynamodb_url = url(dynamodb_listener.local_addr()?);
    let dynamodb = match &options.data {
        None => DynamoDb::with_tables().await?,
        Some(file) => data_file::open(file).await?,
    };
    let access = Access {
        hosts: options.allowed_hosts.clone(),
        ..Access::default()
    };
    tokio::spawn(dynamodb.clone().serve(dynamodb_listener, access.clone()));
    let deployment = Deployment::local(&dynamodb_url);
    store_demo(&deployment.client, &deployment.tables).await?;
    let notes = notes(&options, &deployment, &dynamodb_url).await?;
    let routes = routes(&options, &dynamodb_url, deployment, dynamodb)?;
    let access = Access {
        has_pages: true,
        origin: options.cors.clone(),
        ..access
    };
    tokio::spawn(server::serve(api_listener, routes, access));

    print_addresses(&options, &api_url, &dynamodb_url, json)?;
    if !json {
        notes.iter().for_each(|note| eprintln!("{note}"));
        eprintln!("to check the service: {}", doctor(&api_url, &dynamodb_url));
        eprintln!("paste these requests into a shell, or open {api_url} in a browser");
    }
    if options.open
        && let Err(error) = open::that_detached(&api_url)
    {
        // The address is printed, so a machine without a browser is not a failure.
        eprintln!("cannot open a browser: {error}");
    }
    interruption.await;
    Ok(())
}

/// The routes of the API and the page.
fn routes(
    options: &Options,
    dynamodb_url: &str,
    deployment: Deployment,
    dynamodb: DynamoDb,
) -> Result<Router> {
    let key_cache = Duration::from_secs(options.key_cache);
    let store = Store::new(sdk_config(dynamodb_url), table_names(), key_cache);
    let service = Service::new(store, options.anonymous);
    let api = gateway::routes(
        Arc::new(service),
        options.cors.as_deref(),
        options.rate_limit,
    )?;
    let anonymous_allowed = options.anonymous == AnonymousOperations::Allowed;
    let page = page::routes(deployment, dynamodb, anonymous_allowed)?;
    Ok(api.merge(page))
}

/// Prints where the service listens, and a request for each operation.
fn print_addresses(options: &Options, api_url: &str, dynamodb_url: &str, json: bool) -> Result<()> {
    let default_key = match options.anonymous {
        AnonymousOperations::Allowed => None,
        AnonymousOperations::Denied => Some(DEMO_KEY),
    };
    let requests: Vec<String> = events::all()
        .map(|(_, event)| events::curl(event, api_url, default_key))
        .collect::<Result<_>>()?;
    if json {
        return print(&serde_json::to_string(&json!({
            "url": api_url,
            "dynamodb": dynamodb_url,
            "key": DEMO_KEY,
            "requests": requests,
        }))?);
    }
    print(&format!("listening on {api_url}"))?;
    print(&format!("dynamodb on {dynamodb_url}"))?;
    print(&format!("key: {DEMO_KEY}"))?;
    requests.iter().try_for_each(|request| print(request))
}

/// What differs from the defaults.
async fn notes(
    options: &Options,
    deployment: &Deployment,
    dynamodb_url: &str,
) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    let settings = options.settings();
    if !settings.is_empty() {
        notes.push(format!("settings: {}", settings.join(" ")));
    }
    if !options.host.is_loopback() {
        notes.push(
            "other machines can connect: DynamoDB accepts every request, without credentials"
                .to_owned(),
        );
    }
    if dynamodb_url != local::DYNAMODB {
        notes.push(format!(
            "for `cargo ctl`: export AWS_ENDPOINT_URL_DYNAMODB={dynamodb_url}"
        ));
    }
    let has = async |table, key, attribute| -> Result<bool> {
        let record = get(deployment, table, &[key]).await?;
        Ok(record.is_some_and(|record| record.get(attribute).is_some()))
    };
    let key = ApiKey::parse(DEMO_KEY).context("the demo key is malformed")?;
    if has(Table::KEYS, key.id, "revoked_at").await? {
        notes.push(format!(
            "the demo key is revoked: issue another with `cargo ctl keys create --org {DEMO_ORGANIZATION}`"
        ));
    }
    if has(Table::ORGANIZATIONS, DEMO_ORGANIZATION, "disabled_at").await? {
        notes.push(format!(
            "the organization {DEMO_ORGANIZATION} is disabled: enable it with `cargo ctl orgs enable {DEMO_ORGANIZATION}`"
        ));
    }
    Ok(notes)
}

/// The command that checks the service.
fn doctor(api_url: &str, dynamodb_url: &str) -> String {
    match (api_url, dynamodb_url) {
        (local::API, local::DYNAMODB) => "cargo ctl doctor".to_owned(),
        (_, local::DYNAMODB) => format!("cargo ctl doctor --url '{api_url}'"),
        _ => {
            format!("AWS_ENDPOINT_URL_DYNAMODB='{dynamodb_url}' cargo ctl doctor --url '{api_url}'")
        }
    }
}

async fn listen(host: IpAddr, port: u16, option: &str) -> Result<TcpListener> {
    let address = SocketAddr::new(host, port);
    TcpListener::bind(address)
        .await
        .map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => {
                anyhow!("{address} is in use: choose another port with {option}")
            }
            _ => anyhow!("cannot listen on {address}: {error}"),
        })
}

/// The URL of a listener for clients on this machine.
fn url(mut address: SocketAddr) -> String {
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
    use super::*;

    #[test]
    fn the_doctor_command_names_the_addresses_that_are_not_the_defaults() {
        let rows = [
            (local::API, local::DYNAMODB, "cargo ctl doctor"),
            (
                "http://[::1]:1",
                local::DYNAMODB,
                "cargo ctl doctor --url 'http://[::1]:1'",
            ),
            (
                local::API,
                "http://[::1]:2",
                "AWS_ENDPOINT_URL_DYNAMODB='http://[::1]:2' cargo ctl doctor --url 'http://127.0.0.1:3000'",
            ),
        ];
        for (api, dynamodb, expected) in rows {
            assert_eq!(doctor(api, dynamodb), expected);
        }
    }

    #[test]
    fn a_listener_on_all_addresses_is_reached_on_the_loopback_address() {
        let rows = [
            ("0.0.0.0:3000", "http://127.0.0.1:3000"),
            ("[::]:3000", "http://[::1]:3000"),
            ("192.0.2.1:80", "http://192.0.2.1:80"),
        ];
        for (address, expected) in rows {
            assert_eq!(url(address.parse().expect("an address")), expected);
        }
    }
}
