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
}

/// The faults of the matrix: every one but the last, which only reads can have.
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
}

impl FaultInjector {
    pub fn new(plan: impl Plan) -> Self {
        let network = Connector::builder()
            .tls_provider(Provider::rustls(CryptoMode::Ring))
            .build();
        Self {
            network: SharedHttpConnector::new(network),
            plan: Arc::new(plan),
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
            Fault::Late | Fault::Unprocessed(_) => unreachable!("not a failure"),
            Fault::NoTls => "https",
            _ => "http",
        };
        let (socket, address) = bound_socket();
        request.set_uri(format!("{scheme}://{address}/")).unwrap();
        if fault == Fault::Refused {
            return self.network.call(request).await;
        }
        let listener = socket.listen(1).unwrap();
        tokio::spawn(fail_connection(listener, fault));
        self.network.call(request).await
    }

    /// The response to a `BatchGetItem` that leaves the table at an index unprocessed.
    async fn withhold(
        &self,
        unprocessed: usize,
        request: HttpRequest,
    ) -> Result<HttpResponse, ConnectorError> {
        let requested = json_body(&request);
        let response = self.network.call(request).await?;
        let body = ByteStream::new(response.into_body()).collect().await;
        let mut body: Value = serde_json::from_slice(&body.unwrap().to_vec()).unwrap();
        let reads = requested["RequestItems"].as_object().unwrap();
        let (table, read) = reads.iter().nth(unprocessed).unwrap();
        body["Responses"].as_object_mut().unwrap().remove(table);
        body["UnprocessedKeys"][table] = read.clone();
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
                Fault::Unprocessed(index) => return injector.withhold(index, request).await,
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

/// Whether a read is strongly consistent.
pub(crate) fn is_consistent(request: &HttpRequest) -> bool {
    let body = json_body(request);
    match body["RequestItems"].as_object() {
        Some(tables) => tables.values().all(|keys| keys["ConsistentRead"] == true),
        None => body["ConsistentRead"] == true,
    }
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

/// A socket on a free port. It refuses connections while it does not listen.
fn bound_socket() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// Accepts a connection, which fails.
async fn fail_connection(listener: TcpListener, fault: Fault) {
    let (mut stream, _) = listener.accept().await.unwrap();
    if fault == Fault::ClosedBeforeRequest {
        return;
    }
    let mut buffer = [0; 64 * 1024];
    let _ = stream.read(&mut buffer).await;
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"Attri";
    match fault {
        Fault::Closed => {}
        Fault::Reset => stream.set_zero_linger().unwrap(),
        // A response that is not TLS makes the handshake fail.
        Fault::HalfResponse | Fault::NoTls => drop(stream.write_all(half).await),
        Fault::NotHttp => drop(stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").await),
        _ => {
            if fault == Fault::StalledResponse {
                let _ = stream.write_all(half).await;
            }
            // Keeps the connection open until the client closes it.
            while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
        }
    }
}
