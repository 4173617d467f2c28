//! A layer between the SDK and DynamoDB that injects faults of DynamoDB and the network into chosen
//! requests.

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

/// What goes wrong with a request to DynamoDB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// DynamoDB responds with a status and an error code.
    Status(u16, &'static str),
    /// DynamoDB cancels a transaction for this reason. A single write gets the same kind of error.
    Cancelled(&'static str),
    Refused,
    /// The connection is closed before the request is read.
    ClosedBeforeRequest,
    /// The connection is closed after the request, without a response.
    Closed,
    /// The connection is reset after the request.
    Reset,
    /// The connection is closed in the middle of the response.
    HalfResponse,
    /// After half of the response, no more data arrives.
    StalledResponse,
    FailedTlsHandshake,
    NoResponse,
    /// The response is 300 ms late, which is within the time limit of an attempt.
    Late,
    NotHttp,
    /// A `BatchGetItem` leaves the table at this index unprocessed.
    Unprocessed(usize),
}

/// The faults of the matrix: all except `Unprocessed`, which only reads can have.
pub const FAULTS: &[Fault] = &[
    Fault::Status(500, "InternalServerError"),
    Fault::Status(503, "ServiceUnavailable"),
    Fault::Status(400, "ThrottlingException"),
    Fault::Status(400, "ProvisionedThroughputExceededException"),
    Fault::Status(400, "RequestLimitExceeded"),
    Fault::Cancelled("TransactionConflict"),
    Fault::Cancelled("ThrottlingError"),
    Fault::Cancelled("ProvisionedThroughputExceeded"),
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
    Fault::FailedTlsHandshake,
    Fault::NoResponse,
    Fault::Late,
    Fault::NotHttp,
];

/// Whether the fault occurs before or after DynamoDB executes the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    BeforeExecution,
    AfterExecution,
}

/// Chooses the fault of a request. `None` means that the request has no fault.
pub trait Plan: Fn(&HttpRequest) -> Option<(Fault, Phase)> + Send + Sync + 'static {}

impl<F: Fn(&HttpRequest) -> Option<(Fault, Phase)> + Send + Sync + 'static> Plan for F {}

/// An HTTP client for the SDK that injects the faults that a plan chooses.
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

    /// Makes a request fail. Returns the error of DynamoDB or of the connection.
    async fn fail(
        &self,
        fault: Fault,
        mut request: HttpRequest,
    ) -> Result<HttpResponse, ConnectorError> {
        if let Some(response) = error_response(fault, &request) {
            return Ok(response);
        }
        let scheme = match fault {
            Fault::FailedTlsHandshake => "https",
            _ => "http",
        };
        let (socket, address) = bound_socket();
        request.set_uri(format!("{scheme}://{address}/")).unwrap();
        if fault == Fault::Refused {
            // `socket` keeps its port, but does not listen.
            return self.network.call(request).await;
        }
        let listener = socket.listen(1).unwrap();
        tokio::spawn(fail_connection(listener, fault));
        self.network.call(request).await
    }

    /// Executes a `BatchGetItem`, and leaves the table at an index unprocessed.
    async fn withhold(
        &self,
        index: usize,
        request: HttpRequest,
    ) -> Result<HttpResponse, ConnectorError> {
        let requested = json_body(&request);
        let response = self.network.call(request).await?;
        let body = ByteStream::new(response.into_body()).collect().await;
        let mut body: Value = serde_json::from_slice(&body.unwrap().to_vec()).unwrap();
        let reads = requested["RequestItems"].as_object().unwrap();
        let (table, read) = reads.iter().nth(index).unwrap();
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
            match (fault, phase) {
                (Fault::Late, _) => injector.delay(request, phase).await,
                (Fault::Unprocessed(index), _) => injector.withhold(index, request).await,
                (_, Phase::BeforeExecution) => injector.fail(fault, request).await,
                (_, Phase::AfterExecution) => {
                    let copy = request.try_clone().expect("the body is in memory");
                    injector.network.call(copy).await?;
                    injector.fail(fault, request).await
                }
            }
        })
    }
}

pub(crate) fn json_body(request: &HttpRequest) -> Value {
    serde_json::from_slice(request.body().bytes().unwrap()).unwrap()
}

pub(crate) fn is_consistent(request: &HttpRequest) -> bool {
    let body = json_body(request);
    match body["RequestItems"].as_object() {
        Some(reads) => reads.values().all(|read| read["ConsistentRead"] == true),
        None => body["ConsistentRead"] == true,
    }
}

/// The error response of DynamoDB, if the fault has one.
fn error_response(fault: Fault, request: &HttpRequest) -> Option<HttpResponse> {
    let (status, body) = match fault {
        Fault::Status(status, code) => (status, json!({ "__type": qualified(code) })),
        Fault::Cancelled(reason) if action(request) == "TransactWriteItems" => {
            (400, cancellation(request, reason))
        }
        Fault::Cancelled(reason) => {
            let code = format!("{}Exception", reason.trim_end_matches("Error"));
            (400, json!({ "__type": qualified(&code) }))
        }
        _ => return None,
    };
    Some(http_response(status, body.to_string()))
}

/// An error code as DynamoDB sends it.
fn qualified(code: &str) -> String {
    format!("com.amazonaws.dynamodb.v20120810#{code}")
}

/// The error of a transaction that is cancelled because of its last action.
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

/// A socket on a free port. The system refuses connections until the socket listens.
fn bound_socket() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// Accepts one connection, which then fails as the fault says.
async fn fail_connection(listener: TcpListener, fault: Fault) {
    let (mut stream, _) = listener.accept().await.unwrap();
    if fault == Fault::ClosedBeforeRequest {
        return;
    }
    let mut buffer = [0; 64 * 1024];
    let _ = stream.read(&mut buffer).await;
    let response: &[u8] = match fault {
        // This response also makes a TLS handshake fail.
        Fault::HalfResponse | Fault::StalledResponse | Fault::FailedTlsHandshake => {
            b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"Attri"
        }
        Fault::NotHttp => b"SSH-2.0-OpenSSH_9.2\r\n",
        _ => b"",
    };
    let _ = stream.write_all(response).await;
    match fault {
        Fault::Reset => stream.set_zero_linger().unwrap(),
        // Keeps the connection open until the client closes it.
        Fault::StalledResponse | Fault::NoResponse => {
            while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
        }
        _ => {}
    }
}
