//! A layer between the SDK and DynamoDB that makes chosen requests fail as DynamoDB or the network
//! would.

use std::{fmt, net::SocketAddr, sync::Arc, time::Duration};

use aws_sdk_dynamodb::config::http::{HttpRequest, HttpResponse};
use aws_smithy_http_client::{
    Connector,
    tls::{Provider, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::{
    client::{
        http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector},
        result::ConnectorError,
    },
    http::StatusCode,
};
use aws_smithy_types::{body::SdkBody, byte_stream::ByteStream};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpSocket},
};
use workspace_local::dynamodb::action;

/// How a request to DynamoDB fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// DynamoDB responds with a status and an error code.
    Status(u16, &'static str),
    /// DynamoDB cancels a transaction for a reason. For a single write, it responds with the status
    /// and the error code instead.
    Cancelled(&'static str, (u16, &'static str)),
    /// The connection is refused.
    Refused,
    /// The connection is closed before the request is read.
    ClosedBeforeRequest,
    /// The connection is closed after the request, without a response.
    Closed,
    /// The connection is reset after the request.
    Reset,
    /// The connection is closed in the middle of the response.
    HalfResponse,
    /// No more data arrives after the middle of the response.
    StalledResponse,
    /// The TLS handshake fails.
    NoTls,
    /// No response arrives.
    NoResponse,
    /// The response is late, but within the timeout of an attempt.
    Late,
    /// The response is not HTTP.
    NotHttp,
    /// A `BatchGetItem` leaves the table at this index unprocessed.
    Unprocessed(usize),
    /// A `BatchGetItem` finds nothing where it does not ask for strong consistency.
    Stale,
}

/// The faults of the matrix: every one but the last two, which only reads can have.
pub const FAULTS: &[Fault] = &[
    Fault::Status(500, "InternalServerError"),
    Fault::Status(503, "ServiceUnavailable"),
    Fault::Status(400, "ThrottlingException"),
    Fault::Status(400, "ProvisionedThroughputExceededException"),
    Fault::Status(400, "RequestLimitExceeded"),
    Fault::Cancelled("TransactionConflict", (400, "TransactionConflictException")),
    Fault::Cancelled("ThrottlingError", (400, "ThrottlingException")),
    Fault::Cancelled(
        "ProvisionedThroughputExceeded",
        (400, "ProvisionedThroughputExceededException"),
    ),
    Fault::Status(400, "TransactionInProgressException"),
    Fault::Status(400, "AccessDeniedException"),
    Fault::Status(400, "ResourceNotFoundException"),
    Fault::Status(400, "ExpiredTokenException"),
    Fault::Status(400, "UnrecognizedClientException"),
    Fault::Refused,
    Fault::ClosedBeforeRequest,
    Fault::Closed,
    Fault::Reset,
    Fault::HalfResponse,
    Fault::StalledResponse,
    Fault::NoTls,
    Fault::NoResponse,
    Fault::Late,
    Fault::NotHttp,
];

/// Faults that a listener causes.
const LISTENER_FAULTS: &[Fault] = &[
    Fault::ClosedBeforeRequest,
    Fault::Closed,
    Fault::Reset,
    Fault::HalfResponse,
    Fault::StalledResponse,
    Fault::NoResponse,
    Fault::NotHttp,
];

/// Whether DynamoDB executes the request before it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    BeforeExecution,
    AfterExecution,
}

/// Chooses the requests that fail.
pub trait Plan: Fn(&HttpRequest) -> Option<(Fault, Phase)> + Send + Sync + 'static {}

impl<F: Fn(&HttpRequest) -> Option<(Fault, Phase)> + Send + Sync + 'static> Plan for F {}

/// An HTTP client for the SDK that makes requests fail according to a plan.
#[derive(Clone)]
pub struct FaultInjector {
    network: SharedHttpConnector,
    plan: Arc<dyn Plan>,
    faulty: Arc<FaultyAddresses>,
}

/// Addresses at which connections fail.
struct FaultyAddresses {
    /// Bound, so that no other process uses the port, but not listening.
    refused: TcpSocket,
    listeners: Vec<(Fault, SocketAddr)>,
}

impl FaultyAddresses {
    fn get(&self, fault: Fault) -> SocketAddr {
        let listener_fault = match fault {
            Fault::Refused => return self.refused.local_addr().unwrap(),
            // Any response that is not TLS makes the handshake fail.
            Fault::NoTls => Fault::HalfResponse,
            fault => fault,
        };
        let mut listeners = self.listeners.iter();
        let listener = listeners.find(|(other, _)| *other == listener_fault);
        listener.expect("a listener causes this fault").1
    }
}

impl FaultInjector {
    pub async fn new(plan: impl Plan) -> Self {
        let refused = TcpSocket::new_v4().unwrap();
        refused.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let mut listeners = Vec::new();
        for fault in LISTENER_FAULTS {
            listeners.push((*fault, faulty_listener(*fault).await));
        }
        let faulty = FaultyAddresses { refused, listeners };
        let network = Connector::builder()
            .tls_provider(Provider::rustls(CryptoMode::Ring))
            .build();
        Self {
            network: SharedHttpConnector::new(network),
            plan: Arc::new(plan),
            faulty: Arc::new(faulty),
        }
    }

    /// The result of a request that fails.
    async fn inject(
        &self,
        fault: Fault,
        mut request: HttpRequest,
    ) -> Result<HttpResponse, ConnectorError> {
        let scheme = match fault {
            Fault::Cancelled(reason, _) if action(&request) == "TransactWriteItems" => {
                return Ok(http_response(
                    400,
                    cancellation(&request, reason).to_string(),
                ));
            }
            Fault::Status(status, code) | Fault::Cancelled(_, (status, code)) => {
                let body = json!({ "__type": qualified(code) }).to_string();
                return Ok(http_response(status, body));
            }
            Fault::Late | Fault::Unprocessed(_) | Fault::Stale => {
                unreachable!("not a failure")
            }
            Fault::NoTls => "https",
            _ => "http",
        };
        let address = self.faulty.get(fault);
        request.set_uri(format!("{scheme}://{address}/")).unwrap();
        self.network.call(request).await
    }

    /// The response to a `BatchGetItem` without some of the records.
    async fn withhold(
        &self,
        fault: Fault,
        request: HttpRequest,
    ) -> Result<HttpResponse, ConnectorError> {
        let requested = json_body(&request);
        let response = self.network.call(request).await?;
        let body = ByteStream::new(response.into_body()).collect().await;
        let mut body: Value = serde_json::from_slice(&body.unwrap().to_vec()).unwrap();
        let reads = requested["RequestItems"].as_object().unwrap();
        for (index, (table, read)) in reads.iter().enumerate() {
            if fault == Fault::Stale && read["ConsistentRead"] != true {
                body["Responses"][table] = json!([]);
            }
            if fault == Fault::Unprocessed(index) {
                body["Responses"].as_object_mut().unwrap().remove(table);
                body["UnprocessedKeys"][table] = read.clone();
            }
        }
        Ok(http_response(200, body.to_string()))
    }

    async fn delay(
        &self,
        request: HttpRequest,
        phase: Phase,
    ) -> Result<HttpResponse, ConnectorError> {
        let delay = tokio::time::sleep(Duration::from_millis(300));
        if phase == Phase::BeforeExecution {
            delay.await;
            return self.network.call(request).await;
        }
        let response = self.network.call(request).await;
        delay.await;
        response
    }
}

impl fmt::Debug for FaultInjector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("FaultInjector")
    }
}

impl HttpConnector for FaultInjector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let injector = self.clone();
        HttpConnectorFuture::new(async move {
            let Some((fault, phase)) = (injector.plan)(&request) else {
                return injector.network.call(request).await;
            };
            match fault {
                Fault::Late => return injector.delay(request, phase).await,
                Fault::Unprocessed(_) | Fault::Stale => {
                    return injector.withhold(fault, request).await;
                }
                _ => {}
            }
            if phase == Phase::AfterExecution {
                let copy = request.try_clone().expect("the body is in memory");
                injector.network.call(copy).await?;
            }
            injector.inject(fault, request).await
        })
    }
}

/// The tables that a request names, sorted.
pub fn tables(request: &HttpRequest) -> Vec<String> {
    let body = json_body(request);
    let table_name = |request: &Value| request["TableName"].as_str().map(str::to_owned);
    let actions = body["TransactItems"].as_array().into_iter().flatten();
    let actions = actions.flat_map(|action| action.as_object().unwrap().values());
    let reads = body["RequestItems"].as_object().into_iter();
    let reads = reads.flat_map(|reads| reads.keys().cloned());
    let mut tables: Vec<_> = table_name(&body)
        .into_iter()
        .chain(actions.filter_map(table_name))
        .chain(reads)
        .collect();
    tables.sort();
    tables.dedup();
    tables
}

pub(crate) fn json_body(request: &HttpRequest) -> Value {
    serde_json::from_slice(request.body().bytes().unwrap()).unwrap()
}

/// An error code as DynamoDB sends it.
fn qualified(code: &str) -> String {
    format!("com.amazonaws.dynamodb.v20120810#{code}")
}

/// A cancellation that gives a reason for the last action.
fn cancellation(request: &HttpRequest, reason: &str) -> Value {
    let body = json_body(request);
    let actions = body["TransactItems"].as_array().unwrap().len();
    let mut reasons = vec![json!({ "Code": "None" }); actions];
    *reasons.last_mut().unwrap() = json!({ "Code": reason, "Message": "another writer" });
    json!({
        "__type": qualified("TransactionCanceledException"),
        "message": "Transaction cancelled",
        "CancellationReasons": reasons,
    })
}

pub fn http_response(status: u16, body: String) -> HttpResponse {
    HttpResponse::new(StatusCode::try_from(status).unwrap(), SdkBody::from(body))
}

/// Listens on a free port. Every connection fails.
async fn faulty_listener(fault: Fault) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            if fault == Fault::ClosedBeforeRequest {
                continue;
            }
            tokio::spawn(async move {
                let mut buffer = [0; 64 * 1024];
                let _ = stream.read(&mut buffer).await;
                let half = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"Attri";
                if matches!(fault, Fault::HalfResponse | Fault::StalledResponse) {
                    let _ = stream.write_all(half).await;
                }
                match fault {
                    Fault::Closed | Fault::HalfResponse => {}
                    Fault::Reset => stream.set_zero_linger().unwrap(),
                    Fault::NotHttp => {
                        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").await;
                    }
                    // Keeps the connection open until the client closes it.
                    _ => while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {},
                }
            });
        }
    });
    address
}
