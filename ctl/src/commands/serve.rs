//! `serve`: the whole service on this machine. It starts an embedded DynamoDB, creates the tables,
//! stores the demo organization, and serves the API and a page.

use std::{
    io::ErrorKind,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::json;
use tokio::{net::TcpListener, sync::watch};
use workspace_local::{
    demo::{DEMO_KEY, store_demo},
    dynamodb::DynamoDb,
    events, gateway,
    server::{self, Access},
    tables::{Declaration, create_missing, sdk_config, table_names},
};
use workspace_management::{
    auth::AnonymousOperations,
    service::Service,
    store::{Store, Table},
};

use crate::{commands::doctor::differences, deployment::Deployment, output::print, page};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl serve
  workspacectl serve --data data.sqlite --key-cache 0
  workspacectl serve --port 3001 --dynamodb-port 8001
  AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:8001 workspacectl list teams";

/// How long requests in progress may take when the service stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Where to listen and where to keep the data.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The address to listen on, for both ports
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    host: IpAddr,
    /// The port of the API; 0 selects a free one
    #[arg(long, default_value_t = 3000)]
    port: u16,
    /// The port of DynamoDB; 0 selects a free one
    #[arg(long, default_value_t = 8000, value_name = "PORT")]
    dynamodb_port: u16,
    /// How long to cache API keys, as with the parameter KeyCacheSeconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(..=3600))]
    key_cache: u64,
    /// Keep the data in this SQLite file [default: in memory]
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
}

/// Serves until Ctrl-C or SIGTERM.
///
/// # Errors
/// If a port is in use or the file cannot be opened.
pub(crate) async fn run(options: Options, json: bool) -> Result<()> {
    // Before anything is printed, since a script may stop the service as soon as it reads that.
    let mut interruptions = Interruptions::listen()?;
    let api_listener = listen(options.host, options.port, "--port").await?;
    let dynamodb_listener = listen(options.host, options.dynamodb_port, "--dynamodb-port").await?;
    let api_url = url(api_listener.local_addr()?);
    let dynamodb_url = url(dynamodb_listener.local_addr()?);
    let dynamodb = match &options.data {
        None => DynamoDb::in_memory()?,
        Some(file) => DynamoDb::open(file)?,
    };

    let (stop, stopped) = watch::channel(());
    let dynamodb = tokio::spawn(dynamodb.serve(
        dynamodb_listener,
        Access::default(),
        closed(stopped.clone()),
    ));
    let deployment = Deployment::local(&dynamodb_url);
    create_missing(&deployment.client, &deployment.tables).await?;
    if let Some(file) = &options.data {
        check_tables(&deployment, file).await?;
    }
    store_demo(&deployment.client, &deployment.tables).await?;

    let config = sdk_config(&dynamodb_url);
    let store = Store::new(
        config,
        table_names(),
        Duration::from_secs(options.key_cache),
    );
    let service = Service::new(store, AnonymousOperations::Allowed, None);
    let api = gateway::routes(Arc::new(service), None)?;
    let routes = api.merge(page::routes(Arc::new(deployment)));
    let access = Access {
        has_pages: true,
        ..Access::default()
    };
    let api = tokio::spawn(server::serve(api_listener, routes, access, closed(stopped)));

    print_addresses(&api_url, &dynamodb_url, json)?;
    interruptions.next().await;
    drop(stop);
    let finished = async {
        api.await??;
        dynamodb.await?
    };
    // A client that never finishes its request must not keep the service running.
    tokio::select! {
        result = finished => result,
        () = tokio::time::sleep(SHUTDOWN_TIMEOUT) => Ok(()),
        () = interruptions.next() => Ok(()),
    }
}

/// Rejects a data file whose tables another version has created. Tables cannot be changed.
async fn check_tables(deployment: &Deployment, file: &Path) -> Result<()> {
    for table in Table::ALL {
        let name = deployment.tables.name(*table);
        let response = deployment.client.describe_table().table_name(name).send();
        let description = response
            .await?
            .table
            .context("DynamoDB returned no table")?;
        if !differences(&Declaration::of(*table)?, &description).is_empty() {
            bail!(
                "{} is from another version, whose {name} differs: keep it with that version, and use another file",
                file.display()
            );
        }
    }
    Ok(())
}

/// Prints where the service listens, and a request for each operation.
fn print_addresses(api_url: &str, dynamodb_url: &str, json: bool) -> Result<()> {
    let requests: Vec<String> = events::all()
        .map(|(_, event)| events::curl(event, api_url))
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
    requests.iter().try_for_each(|request| print(request))?;
    eprintln!("paste these requests into a shell, or open {api_url} in a browser");
    Ok(())
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

/// Waits until the sender is dropped.
async fn closed(mut receiver: watch::Receiver<()>) {
    while receiver.changed().await.is_ok() {}
}

/// Ctrl-C and, on Unix, SIGTERM. Once this exists, neither ends the process by itself.
struct Interruptions {
    #[cfg(unix)]
    interrupted: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminated: tokio::signal::unix::Signal,
    #[cfg(windows)]
    interrupted: tokio::signal::windows::CtrlC,
}

impl Interruptions {
    #[cfg(unix)]
    fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupted: signal(SignalKind::interrupt())?,
            terminated: signal(SignalKind::terminate())?,
        })
    }

    #[cfg(windows)]
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupted: tokio::signal::windows::ctrl_c()?,
        })
    }

    /// Waits for the next one.
    async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupted.recv() => {}
            _ = self.terminated.recv() => {}
        }
        #[cfg(windows)]
        self.interrupted.recv().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
