//! An embedded DynamoDB behind TLS, with certificates like those of AWS. It counts and times the
//! requests.

use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PKCS_RSA_SHA256,
    RsaKeySize,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
    },
};
use workspace_local::{dynamodb::DynamoDb, server::Access};

/// A DynamoDB at two addresses.
pub(crate) struct Endpoint {
    pub(crate) dynamodb: DynamoDb,
    /// The URL for the benchmark itself, without TLS.
    pub(crate) plain: String,
    /// The URL for the programs, with TLS.
    pub(crate) secure: String,
    /// A file with Amazon's root certificates and the endpoint's.
    pub(crate) amazon_roots: PathBuf,
    /// A file with the system's root certificates and the endpoint's.
    pub(crate) system_roots: PathBuf,
    exchanges: Exchanges,
}

/// The requests at the address with TLS, in the order in which they arrived.
type Exchanges = Arc<Mutex<Vec<Exchange>>>;

/// A request and its response.
#[derive(Debug, Clone, Copy)]
struct Exchange {
    connection: usize,
    requested: Instant,
    /// When the last part of the response arrived.
    responded: Option<Instant>,
}

/// The requests of a period.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Traffic {
    pub(crate) requests: usize,
    /// The number of requests, where concurrent ones count as one.
    pub(crate) round_trips: usize,
    /// The sum of the response times.
    pub(crate) time: Duration,
}

impl Endpoint {
    /// Listens at both addresses. Stores the certificates in `folder`.
    pub(crate) async fn start(folder: &Path) -> Result<Self> {
        let dynamodb = DynamoDb::in_memory()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let plain = listener.local_addr()?;
        tokio::spawn(dynamodb.clone().serve(listener, Access::default()));

        let (root, config) = certificates()?;
        let store_roots = |name: &str, others: &str| -> Result<PathBuf> {
            let file = folder.join(name);
            fs::write(&file, format!("{others}{root}"))?;
            Ok(file)
        };
        let amazon = include_str!("../../src/store/amazon-roots.pem");
        let system = fs::read_to_string("/etc/ssl/certs/ca-certificates.crt")?;
        let amazon_roots = store_roots("amazon.pem", amazon)?;
        let system_roots = store_roots("system.pem", &system)?;

        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let secure = format!("https://localhost:{}", listener.local_addr()?.port());
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let exchanges = Exchanges::default();
        tokio::spawn(accept(listener, acceptor, plain, exchanges.clone()));
        Ok(Self {
            dynamodb,
            plain: format!("http://{plain}"),
            secure,
            amazon_roots,
            system_roots,
            exchanges,
        })
    }

    /// The requests since the last call of this method.
    pub(crate) fn take_traffic(&self) -> Traffic {
        let exchanges = std::mem::take(&mut *lock(&self.exchanges));
        let mut traffic = Traffic {
            requests: exchanges.len(),
            ..Traffic::default()
        };
        let mut until: Option<Instant> = None;
        for exchange in exchanges {
            let responded = exchange.responded.unwrap_or(exchange.requested);
            traffic.time += responded - exchange.requested;
            if until.is_none_or(|until| exchange.requested >= until) {
                traffic.round_trips += 1;
                until = Some(responded);
            }
        }
        traffic
    }
}

/// A root certificate as PEM, and a server with a chain that ends at it. As on AWS, keys are RSA
/// with 2,048 bits, and there is an intermediate certificate.
fn certificates() -> Result<(String, ServerConfig)> {
    let key = || KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048);
    let mut authority = CertificateParams::new([])?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = CertifiedIssuer::self_signed(authority.clone(), key()?)?;
    let intermediate = CertifiedIssuer::signed_by(authority, key()?, &root)?;
    let leaf_key = key()?;
    let leaf = CertificateParams::new(["localhost".to_owned()])?;
    let leaf = leaf.signed_by(&leaf_key, &intermediate)?;
    let chain: Vec<CertificateDer<'static>> = vec![leaf.der().clone(), intermediate.der().clone()];
    let leaf_key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(leaf_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, leaf_key)?;
    Ok((root.pem(), config))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forwards each connection to the address without TLS.
async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    plain: SocketAddr,
    exchanges: Exchanges,
) {
    for connection in 0.. {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        let (acceptor, exchanges) = (acceptor.clone(), exchanges.clone());
        tokio::spawn(forward(stream, acceptor, plain, connection, exchanges));
    }
}

async fn forward(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    plain: SocketAddr,
    connection: usize,
    exchanges: Exchanges,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let secure = acceptor.accept(stream).await?;
    let plain = TcpStream::connect(plain).await?;
    plain.set_nodelay(true)?;
    let (from_client, to_client) = tokio::io::split(secure);
    let (from_dynamodb, to_dynamodb) = plain.into_split();
    let on_request = |bytes: &[u8]| {
        if bytes.starts_with(b"POST ") {
            lock(&exchanges).push(Exchange {
                connection,
                requested: Instant::now(),
                responded: None,
            });
        }
    };
    let on_response = |_: &[u8]| {
        let mut exchanges = lock(&exchanges);
        let mut latest = exchanges.iter_mut().rev();
        if let Some(exchange) = latest.find(|exchange| exchange.connection == connection) {
            exchange.responded = Some(Instant::now());
        }
    };
    tokio::try_join!(
        copy(from_client, to_dynamodb, on_request),
        copy(from_dynamodb, to_client, on_response)
    )?;
    Ok(())
}

/// Copies until the end of the stream. Calls `observe` before it writes what it has read.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    observe: impl Fn(&[u8]),
) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        observe(&buffer[..read]);
        to.write_all(&buffer[..read]).await?;
        to.flush().await?;
    }
}
