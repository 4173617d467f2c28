//! The whole service on this machine: an embedded DynamoDB, its tables, a demo organization with a key, the HTTP API.

use std::{io::ErrorKind, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Result, anyhow};
use serde_json::json;
use tokio::{net::TcpListener, sync::watch};
use workspace_local::{
    demo::{DEMO_KEY, store_demo},
    dynamodb::DynamoDb,
    events, gateway,
    tables::{create_missing, sdk_config, table_names},
};
use workspace_management::{
    auth::{AnonymousOperations, Auth},
    event::Service,
    store::Store,
};

use crate::{deployment::Deployment, output::print, page};

/// How long requests that are under way may take to end when the service is asked to stop.
const PATIENCE: Duration = Duration::from_secs(5);

/// What to serve, and where.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The address to listen on, for both ports
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    host: std::net::IpAddr,
    /// The port of the HTTP API; 0 takes a free one
    #[arg(long, default_value_t = 3000)]
    port: u16,
    /// The port of DynamoDB; 0 takes a free one
    #[arg(long, default_value_t = 8000, value_name = "PORT")]
    dynamodb_port: u16,
    /// Keep the data in this SQLite file; without it, in memory
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
}

/// Serves until Ctrl-C or SIGTERM.
///
/// # Errors
/// If a port is taken or the file cannot be opened.
pub(crate) async fn serve(options: Options, json: bool) -> Result<()> {
    let http = listen(options.host, options.port, "--port").await?;
    let dynamodb = listen(options.host, options.dynamodb_port, "--dynamodb-port").await?;
    let engine = match &options.data {
        None => DynamoDb::in_memory()?,
        Some(file) => DynamoDb::open(file)?,
    };

    let (http_address, dynamodb_url) = (http.local_addr()?, url(dynamodb.local_addr()?));
    let (stop, stopped) = watch::channel(());
    let engine = tokio::spawn(engine.serve(dynamodb, wait_for(stopped.clone())));

    let deployment = Deployment::local(&dynamodb_url);
    create_missing(&deployment.client, &deployment.tables).await?;
    store_demo(&deployment.client, &deployment.tables).await?;

    let auth = Auth::new(AnonymousOperations::Allowed, Duration::from_secs(60));
    let store = Store::new(sdk_config(&dynamodb_url), table_names());
    let routes = gateway::routes(Arc::new(Service::new(auth, store)));
    let routes = routes.merge(page::routes(Arc::new(deployment)));
    let api = tokio::spawn(
        axum::serve(http, routes)
            .with_graceful_shutdown(wait_for(stopped))
            .into_future(),
    );

    let base_url = url(http_address);
    let requests = events::all().map(|(_, event)| events::curl(event, &base_url));
    let requests: Vec<String> = requests.collect::<Result<_>>()?;
    if json {
        print(&serde_json::to_string(&json!({
            "url": base_url,
            "dynamodb": dynamodb_url,
            "key": DEMO_KEY,
            "requests": requests,
        }))?)?;
    } else {
        print(&format!("listening on {base_url}"))?;
        print(&format!("dynamodb on {dynamodb_url}"))?;
        print(&format!("key: {DEMO_KEY}"))?;
        requests.iter().try_for_each(|request| print(request))?;
        eprintln!("open {base_url} in a browser to try them there");
    }

    interrupted().await?;
    drop(stop);
    let stopped = async {
        api.await??;
        engine.await?
    };
    // Whoever holds a request open shall not hold the service.
    tokio::select! {
        stopped = stopped => stopped,
        () = tokio::time::sleep(PATIENCE) => Ok(()),
        again = interrupted() => again,
    }
}

async fn listen(host: std::net::IpAddr, port: u16, option: &str) -> Result<TcpListener> {
    let address = SocketAddr::new(host, port);
    TcpListener::bind(address)
        .await
        .map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => {
                anyhow!("{address} is taken: choose another port with {option}")
            }
            _ => anyhow!("cannot listen on {address}: {error}"),
        })
}

/// How this machine reaches a listener: one on every address is on this machine's own too.
fn url(mut address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("http://{address}")
}

async fn wait_for(mut stopped: watch::Receiver<()>) {
    // An error means that the sender is gone, which is the signal.
    while stopped.changed().await.is_ok() {}
}

async fn interrupted() -> Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminated = signal(SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted?,
            _ = terminated.recv() => {}
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await?;
    Ok(())
}
