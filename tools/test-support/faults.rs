//! What can go wrong with a request to DynamoDB or a different service of AWS.

use std::{future::pending, net::SocketAddr, process::Command, time::Duration};

use aws_sdk_dynamodb::config::http::{HttpRequest, HttpResponse};
use aws_smithy_http_client::{
    Connector,
    tls::{Provider, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::{
    client::{
        http::{HttpConnector as _, SharedHttpConnector},
        result::ConnectorError,
    },
    http::StatusCode,
};
use aws_smithy_types::{body::SdkBody, byte_stream::ByteStream};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpSocket},
    time::sleep,
};

use crate::hook::Request;

/// Within the time limit of an attempt.
const LATE: Duration = Duration::from_millis(300);

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// DynamoDB responds with a status and an error code.
    Status(u16, &'static str),
    /// DynamoDB cancels a transaction for this reason. A single write gets the same kind of error.
    Cancelled(&'static str),
    /// The caller's identity lacks a permission.
    Denied,
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
    /// The response is 300 ms late.
    Late,
    NotHttp,
    /// A proxy responds with a status and its own page.
    Page(u16),
    /// A `BatchGetItem` leaves the table at this index unprocessed.
    Unprocessed(usize),
    /// The process with this id is killed.
    Killed(u32),
}

/// The faults of the matrix: all except `Unprocessed`, which only reads can have, and `Killed`.
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
    Fault::Denied,
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
    Fault::Page(200),
    Fault::Page(302),
    Fault::Page(413),
];

/// Whether the fault occurs before or after DynamoDB executes the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    BeforeExecution,
    AfterExecution,
}

/// The fault of a request that the caller's identity must not send.
pub const DENIED: (Fault, Phase) = (Fault::Denied, Phase::BeforeExecution);

/// A connector to servers with this URL.
pub fn network(url: &str) -> Connector {
    let builder = Connector::builder();
    if url.starts_with("https:") {
        let provider = Provider::rustls(CryptoMode::Ring);
        builder.tls_provider(provider).build()
    } else {
        builder.build_http()
    }
}

impl Fault {
    /// Makes a request fail that would otherwise be sent through `connector`.
    pub(crate) async fn inject(
        self,
        phase: Phase,
        request: &Request,
        http_request: HttpRequest,
        connector: &SharedHttpConnector,
    ) -> Result<HttpResponse, ConnectorError> {
        match (self, phase) {
            (Self::Late, Phase::BeforeExecution) => {
                sleep(LATE).await;
                connector.call(http_request).await
            }
            (Self::Late, Phase::AfterExecution) => {
                let response = connector.call(http_request).await;
                sleep(LATE).await;
                response
            }
            (Self::Unprocessed(index), _) => {
                let response = connector.call(http_request).await?;
                Ok(withhold(index, request, response).await)
            }
            (_, Phase::BeforeExecution) => self.fail(request, http_request).await,
            (_, Phase::AfterExecution) => {
                let copy = http_request.try_clone().expect("the body is in memory");
                connector.call(copy).await?;
                self.fail(request, http_request).await
            }
        }
    }

    /// Returns the error of the service or of the connection.
    async fn fail(
        self,
        request: &Request,
        mut http_request: HttpRequest,
    ) -> Result<HttpResponse, ConnectorError> {
        if let Some(response) = self.response(request) {
            return Ok(response);
        }
        if let Self::Killed(process) = self {
            kill(process);
            return pending().await;
        }
        let scheme = match self {
            Self::FailedTlsHandshake => "https",
            _ => "http",
        };
        let (socket, address) = bound_socket();
        let url = format!("{scheme}://{address}/");
        http_request.set_uri(&*url).unwrap();
        if self == Self::Refused {
            // `socket` keeps its port, but does not listen.
            return network(&url).call(http_request).await;
        }
        let listener = socket.listen(1).unwrap();
        tokio::spawn(fail_connection(listener, self));
        network(&url).call(http_request).await
    }

    /// The error response, if the fault has one.
    pub(crate) fn response(self, request: &Request) -> Option<HttpResponse> {
        let (status, body) = match self {
            Self::Denied => return Some(denial(&request.service)),
            Self::Page(status) => return Some(http_response(status, "<!doctype html>".to_owned())),
            Self::Status(status, code) => (status, json!({ "__type": qualified(code) })),
            Self::Cancelled(reason) if request.action == "TransactWriteItems" => {
                (400, cancellation(request, reason))
            }
            Self::Cancelled(reason) => {
                let code = format!("{}Exception", reason.trim_end_matches("Error"));
                (400, json!({ "__type": qualified(&code) }))
            }
            _ => return None,
        };
        Some(http_response(status, body.to_string()))
    }
}

/// Changes the response to a `BatchGetItem` such that the table at an index is unprocessed.
async fn withhold(index: usize, request: &Request, response: HttpResponse) -> HttpResponse {
    let body = ByteStream::new(response.into_body()).collect().await;
    let mut body: Value = serde_json::from_slice(&body.unwrap().to_vec()).unwrap();
    let reads = request.body["RequestItems"].as_object().unwrap();
    let (table, read) = reads.iter().nth(index).unwrap();
    body["Responses"].as_object_mut().unwrap().remove(table);
    body["UnprocessedKeys"][table] = read.clone();
    http_response(200, body.to_string())
}

/// The response of a service to a request that the caller's identity must not send.
fn denial(service: &str) -> HttpResponse {
    let code = match service {
        "dynamodb" | "lambda" | "logs" => {
            let error = "com.amazon.coral.service#AccessDeniedException";
            let body = json!({ "__type": error, "Message": "not authorized" });
            return http_response(400, body.to_string());
        }
        "sns" => "AuthorizationError",
        _ => "AccessDenied",
    };
    let error = format!("<Code>{code}</Code><Message>not authorized</Message>");
    let body = format!("<ErrorResponse><Error>{error}</Error></ErrorResponse>");
    http_response(403, body)
}

fn kill(process: u32) {
    let mut kill = Command::new("kill");
    let status = kill.args(["-KILL", &process.to_string()]).status();
    assert!(status.unwrap().success());
}

/// An error code as DynamoDB sends it.
fn qualified(code: &str) -> String {
    format!("com.amazonaws.dynamodb.v20120810#{code}")
}

/// The error of a transaction that is cancelled because of its last action.
fn cancellation(request: &Request, reason: &str) -> Value {
    let actions = request.body["TransactItems"].as_array().unwrap().len();
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
