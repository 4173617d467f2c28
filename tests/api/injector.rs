//! A layer between the SDK's client and the engine that fails in the ways in which DynamoDB and the network can.

use std::{fmt, net::SocketAddr, sync::Arc, time::Duration};

use aws_sdk_dynamodb::config::{
    HttpClient, RuntimeComponents,
    http::{HttpRequest, HttpResponse},
};
use aws_smithy_http_client::{
    Connector,
    tls::{Provider, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::{
    client::{
        http::{HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector},
        result::ConnectorError,
    },
    http::StatusCode,
};
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpSocket},
};

pub use workspace_local::dynamodb::action;

/// What can go wrong with one request to DynamoDB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// DynamoDB says so, with that status and code.
    Says(u16, &'static str),
    /// DynamoDB cancels a transaction for that reason. A single write it refuses with the code beside it.
    Cancels(&'static str, (u16, &'static str)),
    /// Nobody listens.
    Refused,
    /// The connection is reset once the request was sent.
    Reset,
    /// The connection ends in the midst of the answer.
    HalfAnswer,
    /// What answers speaks no TLS.
    NoTls,
    /// Nothing comes back.
    Silence,
    /// The answer comes late, but in time.
    Late,
    /// The answer is not JSON.
    NotJson,
}

/// Every failure of the matrix.
pub const FAULTS: [Fault; 20] = [
    Fault::Says(500, "InternalServerError"),
    Fault::Says(503, "ServiceUnavailable"),
    Fault::Says(400, "ThrottlingException"),
    Fault::Says(400, "ProvisionedThroughputExceededException"),
    Fault::Says(400, "RequestLimitExceeded"),
    Fault::Cancels("TransactionConflict", (400, "TransactionConflictException")),
    Fault::Cancels("ThrottlingError", (400, "ThrottlingException")),
    Fault::Cancels(
        "ProvisionedThroughputExceeded",
        (400, "ProvisionedThroughputExceededException"),
    ),
    Fault::Says(400, "TransactionInProgressException"),
    Fault::Says(400, "AccessDeniedException"),
    Fault::Says(400, "ResourceNotFoundException"),
    Fault::Says(400, "ExpiredTokenException"),
    Fault::Says(400, "UnrecognizedClientException"),
    Fault::Refused,
    Fault::Reset,
    Fault::HalfAnswer,
    Fault::NoTls,
    Fault::Silence,
    Fault::Late,
    Fault::NotJson,
];

/// Whether the engine has carried the request out when the fault shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Before,
    After,
}

/// Says which requests fail, and how.
pub trait Plan: Fn(&HttpRequest) -> Option<(Fault, When)> + Send + Sync + 'static {}

impl<F: Fn(&HttpRequest) -> Option<(Fault, When)> + Send + Sync + 'static> Plan for F {}

/// The layer: an HTTP client for the SDK.
#[derive(Clone)]
pub struct Injector {
    engine: SharedHttpConnector,
    plan: Arc<dyn Plan>,
    troubles: Arc<Troubles>,
}

/// Where nothing good listens.
struct Troubles {
    /// Bound, so that nobody else takes the port, and never listening.
    closed: TcpSocket,
    resetting: SocketAddr,
    halving: SocketAddr,
    silent: SocketAddr,
}

impl Injector {
    pub async fn new(plan: impl Plan) -> Self {
        let closed = TcpSocket::new_v4().unwrap();
        closed.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let troubles = Troubles {
            closed,
            resetting: trouble(Fault::Reset).await,
            halving: trouble(Fault::HalfAnswer).await,
            silent: trouble(Fault::Silence).await,
        };
        let engine = Connector::builder()
            .tls_provider(Provider::rustls(CryptoMode::Ring))
            .build();
        Self {
            engine: SharedHttpConnector::new(engine),
            plan: Arc::new(plan),
            troubles: Arc::new(troubles),
        }
    }

    /// What comes of a request that meets the fault.
    async fn meet(
        &self,
        fault: Fault,
        request: HttpRequest,
    ) -> Result<HttpResponse, ConnectorError> {
        let (scheme, address) = match fault {
            Fault::Says(status, code) => {
                return Ok(said(status, &json!({ "__type": named(code) })));
            }
            Fault::Cancels(reason, _) if action(&request) == "TransactWriteItems" => {
                return Ok(said(400, &cancelled(&request, reason)));
            }
            Fault::Cancels(_, (status, code)) => {
                return Ok(said(status, &json!({ "__type": named(code) })));
            }
            Fault::NotJson => return Ok(answer(200, "<html>It works!</html>".to_owned())),
            Fault::Late => unreachable!("what is late comes"),
            Fault::Refused => ("http", self.troubles.closed.local_addr().unwrap()),
            Fault::Reset => ("http", self.troubles.resetting),
            Fault::HalfAnswer => ("http", self.troubles.halving),
            Fault::Silence => ("http", self.troubles.silent),
            Fault::NoTls => ("https", self.troubles.halving),
        };
        let mut request = request;
        request.set_uri(format!("{scheme}://{address}/")).unwrap();
        self.engine.call(request).await
    }
}

impl fmt::Debug for Injector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Injector")
    }
}

impl HttpClient for Injector {
    fn http_connector(
        &self,
        _: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Injector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let injector = self.clone();
        HttpConnectorFuture::new(async move {
            let Some((fault, when)) = (injector.plan)(&request) else {
                return injector.engine.call(request).await;
            };
            let copy = request.try_clone().expect("a body in memory");
            if fault == Fault::Late {
                let late = tokio::time::sleep(Duration::from_millis(300));
                if when == When::Before {
                    late.await;
                    return injector.engine.call(request).await;
                }
                let answer = injector.engine.call(request).await;
                late.await;
                return answer;
            }
            if when == When::After {
                injector
                    .engine
                    .call(copy.try_clone().expect("the same"))
                    .await?;
            }
            injector.meet(fault, copy).await
        })
    }
}

/// The tables that a request names.
pub fn tables(request: &HttpRequest) -> Vec<String> {
    let body: Value = serde_json::from_slice(request.body().bytes().unwrap_or_default()).unwrap();
    let named = |request: &Value| request["TableName"].as_str().map(str::to_owned);
    let actions = body["TransactItems"].as_array().into_iter().flatten();
    let actions = actions.flat_map(|action| action.as_object().unwrap().values());
    let reads = body["RequestItems"].as_object().into_iter().flatten();
    let reads = reads.map(|(name, _)| name.clone());
    let mut tables: Vec<_> = named(&body)
        .into_iter()
        .chain(actions.filter_map(named))
        .chain(reads)
        .collect();
    tables.sort();
    tables.dedup();
    tables
}

/// A code as DynamoDB writes it.
fn named(code: &str) -> String {
    format!("com.amazonaws.dynamodb.v20120810#{code}")
}

/// A cancellation whose last action has the reason.
fn cancelled(request: &HttpRequest, reason: &str) -> Value {
    let body: Value = serde_json::from_slice(request.body().bytes().unwrap()).unwrap();
    let mut reasons =
        vec![json!({ "Code": "None" }); body["TransactItems"].as_array().unwrap().len()];
    *reasons.last_mut().unwrap() = json!({ "Code": reason, "Message": "another writer" });
    json!({
        "__type": named("TransactionCanceledException"),
        "message": "Transaction cancelled",
        "CancellationReasons": reasons,
    })
}

fn said(status: u16, body: &Value) -> HttpResponse {
    answer(status, body.to_string())
}

pub fn answer(status: u16, body: String) -> HttpResponse {
    HttpResponse::new(StatusCode::try_from(status).unwrap(), SdkBody::from(body))
}

/// A listener that does to each connection what the fault says.
async fn trouble(fault: Fault) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut request = [0; 64 * 1024];
                let _ = stream.read(&mut request).await;
                match fault {
                    Fault::Reset => stream.set_zero_linger().unwrap(),
                    Fault::HalfAnswer => {
                        let half = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"Attri";
                        let _ = stream.write_all(half).await;
                    }
                    _ => while stream.read(&mut request).await.is_ok_and(|read| read > 0) {},
                }
            });
        }
    });
    address
}
