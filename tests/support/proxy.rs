//! A proxy between a process and DynamoDB.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

/// A TCP proxy in front of DynamoDB that closes or stalls connections, as networks do while Lambda
/// freezes a function.
pub struct ChaosProxy {
    /// The URL of the proxy.
    pub endpoint: String,
    connections: Arc<Mutex<Vec<Connection>>>,
}

struct Connection {
    relay: AbortHandle,
    is_stalled: Arc<AtomicBool>,
}

impl ChaosProxy {
    pub async fn start(dynamodb: &str) -> Self {
        let dynamodb = dynamodb.strip_prefix("http://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            endpoint: format!("http://{}", listener.local_addr().unwrap()),
            connections: Arc::default(),
        };
        let connections = proxy.connections.clone();
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let server = TcpStream::connect(&dynamodb).await.unwrap();
                let is_stalled = Arc::<AtomicBool>::default();
                let relay = tokio::spawn(relay(client, server, is_stalled.clone()));
                connections.lock().unwrap().push(Connection {
                    relay: relay.abort_handle(),
                    is_stalled,
                });
            }
        });
        proxy
    }

    /// Closes every connection.
    pub fn close(&self) {
        for connection in self.connections.lock().unwrap().drain(..) {
            connection.relay.abort();
        }
    }

    /// Stalls every connection: connections stay open, but their requests are not forwarded.
    pub fn stall(&self) {
        for connection in self.connections.lock().unwrap().iter() {
            connection.is_stalled.store(true, Ordering::Relaxed);
        }
    }
}

/// Forwards what the client and the server send, until one of them closes its connection.
async fn relay(mut client: TcpStream, mut server: TcpStream, is_stalled: Arc<AtomicBool>) {
    let mut from_client = [0; 16 * 1024];
    let mut from_server = [0; 16 * 1024];
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => match read {
                Ok(read @ 1..) if !is_stalled.load(Ordering::Relaxed) => {
                    server.write_all(&from_client[..read]).await.unwrap();
                }
                Ok(1..) => {}
                _ => return,
            },
            read = server.read(&mut from_server) => match read {
                Ok(read @ 1..) => client.write_all(&from_server[..read]).await.unwrap(),
                _ => return,
            },
        }
    }
}
