//! DynamoDB behind TLS, as AWS presents it, with a watch on what passes.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
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
        pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    },
};
use workspace_local::dynamodb::DynamoDb;

/// An embedded DynamoDB: plain for the benchmark itself, behind TLS for the programs that it measures.
pub(crate) struct Endpoint {
    pub(crate) dynamodb: DynamoDb,
    pub(crate) plain: String,
    pub(crate) secure: String,
    /// Amazon's roots and the endpoint's own.
    pub(crate) few_roots: PathBuf,
    /// The system's roots and the endpoint's own.
    pub(crate) all_roots: PathBuf,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
}

/// A request and its response, as they passed.
#[derive(Debug, Clone, Copy)]
struct Exchange {
    connection: usize,
    asked: Instant,
    answered: Option<Instant>,
}

/// What passed in a while.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Traffic {
    pub(crate) requests: usize,
    /// How many of them had to wait for one another.
    pub(crate) round_trips: usize,
    /// How long the endpoint took for them, summed up.
    pub(crate) time: Duration,
}

impl Endpoint {
    pub(crate) async fn start(folder: &Path) -> Result<Self> {
        let dynamodb = DynamoDb::in_memory()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let plain = listener.local_addr()?;
        tokio::spawn(dynamodb.clone().serve(listener, std::future::pending()));

        // As AWS presents itself: RSA keys of 2,048 bits, a leaf, an authority between, a root.
        let key = || KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048);
        let mut authority = CertificateParams::new([])?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = CertifiedIssuer::self_signed(authority.clone(), key()?)?;
        let between = CertifiedIssuer::signed_by(authority, key()?, &root)?;
        let leaf_key = key()?;
        let leaf = CertificateParams::new(["localhost".to_owned()])?;
        let leaf = leaf.signed_by(&leaf_key, &between)?;
        let roots = |name: &str, others: &str| -> Result<PathBuf> {
            let file = folder.join(name);
            std::fs::write(&file, format!("{others}{}", root.pem()))?;
            Ok(file)
        };
        let few_roots = roots("few.pem", include_str!("../../src/store/amazon-roots.pem"))?;
        let system = "/etc/ssl/certs/ca-certificates.crt";
        let all_roots = roots("all.pem", &std::fs::read_to_string(system)?)?;

        let config = ServerConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(
                vec![leaf.der().clone(), between.der().clone()],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(leaf_key.serialize_der())),
            )?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let secure = format!("https://localhost:{}", listener.local_addr()?.port());
        let exchanges = Arc::<Mutex<Vec<Exchange>>>::default();
        tokio::spawn(relay(
            listener,
            TlsAcceptor::from(Arc::new(config)),
            plain,
            exchanges.clone(),
        ));
        Ok(Self {
            dynamodb,
            plain: format!("http://{plain}"),
            secure,
            few_roots,
            all_roots,
            exchanges,
        })
    }

    /// What passed since this was last asked.
    pub(crate) fn traffic(&self) -> Traffic {
        let exchanges = std::mem::take(&mut *lock(&self.exchanges));
        let mut traffic = Traffic {
            requests: exchanges.len(),
            ..Traffic::default()
        };
        let mut until: Option<Instant> = None;
        for exchange in exchanges {
            let answered = exchange.answered.unwrap_or(exchange.asked);
            traffic.time += answered - exchange.asked;
            if until.is_none_or(|until| exchange.asked >= until) {
                traffic.round_trips += 1;
                until = Some(answered);
            }
        }
        traffic
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

async fn relay(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    engine: std::net::SocketAddr,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
) {
    for connection in 0.. {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        let (acceptor, exchanges) = (acceptor.clone(), exchanges.clone());
        tokio::spawn(async move {
            stream.set_nodelay(true)?;
            let secure = acceptor.accept(stream).await?;
            let plain = TcpStream::connect(engine).await?;
            plain.set_nodelay(true)?;
            let (from_client, to_client) = tokio::io::split(secure);
            let (from_engine, to_engine) = plain.into_split();
            let asked = |bytes: &[u8]| {
                if bytes.starts_with(b"POST ") {
                    let asked = Instant::now();
                    lock(&exchanges).push(Exchange {
                        connection,
                        asked,
                        answered: None,
                    });
                }
            };
            let answered = |_: &[u8]| {
                let mut exchanges = lock(&exchanges);
                let open = exchanges
                    .iter_mut()
                    .rev()
                    .find(|exchange| exchange.connection == connection);
                if let Some(exchange) = open {
                    exchange.answered = Some(Instant::now());
                }
            };
            tokio::try_join!(
                copy(from_client, to_engine, asked),
                copy(from_engine, to_client, answered)
            )?;
            io::Result::Ok(())
        });
    }
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    watch: impl Fn(&[u8]),
) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        watch(&buffer[..read]);
        to.write_all(&buffer[..read]).await?;
        to.flush().await?;
    }
}
