//! An embedded DynamoDB behind TLS, with certificates like those of AWS.

use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use anyhow::{Context as _, Result};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PKCS_RSA_SHA256};
use tokio::{
    io::copy_bidirectional,
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

/// A DynamoDB that is reached with TLS.
pub(crate) struct Endpoint {
    pub(crate) dynamodb: DynamoDb,
    pub(crate) url: String,
    /// The file with Amazon's root certificates and the root certificate of the endpoint.
    pub(crate) amazon_roots: PathBuf,
    /// The file with the system's root certificates and the root certificate of the endpoint.
    pub(crate) system_roots: PathBuf,
}

impl Endpoint {
    /// Starts DynamoDB, and stores the files with the certificates in `folder`.
    pub(crate) async fn start(folder: &Path) -> Result<Self> {
        let dynamodb = DynamoDb::with_tables().await?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let plain = listener.local_addr()?;
        tokio::spawn(dynamodb.clone().serve(listener, Access::default()));

        let (root, config) = certificates()?;
        let amazon = include_str!("../../../src/store/amazon-roots.pem");
        let amazon_roots = folder.join("amazon.pem");
        fs::write(&amazon_roots, format!("{amazon}{root}"))?;
        let system = fs::read_to_string("/etc/ssl/certs/ca-certificates.crt")?;
        let system_roots = folder.join("system.pem");
        fs::write(&system_roots, format!("{system}{root}"))?;

        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("https://localhost:{}", listener.local_addr()?.port());
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(accept(listener, acceptor, plain));
        Ok(Self {
            dynamodb,
            url,
            amazon_roots,
            system_roots,
        })
    }
}

/// A root certificate as PEM, and the configuration of a server whose certificate chain ends at it.
/// As on AWS, the keys are RSA with 2,048 bits, and there is an intermediate certificate.
fn certificates() -> Result<(String, ServerConfig)> {
    let mut authority = CertificateParams::new([])?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = CertifiedIssuer::self_signed(authority.clone(), rsa_key()?)?;
    let intermediate = CertifiedIssuer::signed_by(authority, rsa_key()?, &root)?;
    let leaf_key = rsa_key()?;
    let leaf =
        CertificateParams::new(["localhost".to_owned()])?.signed_by(&leaf_key, &intermediate)?;
    let chain: Vec<CertificateDer<'static>> = vec![leaf.der().clone(), intermediate.der().clone()];
    let leaf_key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(leaf_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, leaf_key)?;
    Ok((root.pem(), config))
}

/// Generates a key with `openssl`, because `ring` cannot generate RSA keys, and `aws-lc` would take
/// half a minute to compile.
fn rsa_key() -> Result<KeyPair> {
    let arguments = "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048";
    let mut openssl = Command::new("openssl");
    let output = openssl.args(arguments.split(' ')).output();
    let pem = String::from_utf8(output.context("cannot run openssl")?.stdout)?;
    Ok(KeyPair::from_pkcs8_pem_and_sign_algo(
        &pem,
        &PKCS_RSA_SHA256,
    )?)
}

/// Accepts TLS connections, and forwards each connection to the address without TLS.
async fn accept(listener: TcpListener, acceptor: TlsAcceptor, plain: SocketAddr) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(forward(stream, acceptor.clone(), plain));
    }
}

async fn forward(stream: TcpStream, acceptor: TlsAcceptor, plain: SocketAddr) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut secure = acceptor.accept(stream).await?;
    let mut plain = TcpStream::connect(plain).await?;
    plain.set_nodelay(true)?;
    copy_bidirectional(&mut secure, &mut plain).await?;
    Ok(())
}
