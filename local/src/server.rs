//! An HTTP server for a developer's machine. It rejects requests of web pages that a developer happens
//! to visit, and closes connections that send nothing.

use std::{io, sync::Arc, time::Duration};

use anyhow::Result;
use axum::{
    Json, Router,
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, StatusCode, Uri, header, uri::Authority},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
};
use http_body_util::LengthLimitError;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use serde_json::json;
use tokio::{
    net::TcpListener,
    time::{sleep, timeout},
};

/// How long a client may take to send the headers of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a client may take to send the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Host names that lead to this machine: from its programs, and from containers.
const LOCAL_HOSTS: [&str; 2] = ["localhost", "host.docker.internal"];

/// Who may send requests.
///
/// A page of any origin can send requests to this machine. DNS can also make a name of that origin
/// resolve to this machine, so that the browser takes the server for the page's own.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Names of this machine, in addition to IP addresses, `localhost` and `host.docker.internal`.
    pub hosts: Vec<String>,
    /// Whether the server has pages of its own that send requests.
    pub has_pages: bool,
    /// Another origin whose pages may send requests.
    pub origin: Option<String>,
}

impl Access {
    /// Why a request is rejected.
    fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), String> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or(""));
        let host = text(header::HOST).or(uri.authority().map(Authority::as_str));
        let host = host.unwrap_or_default();
        if !self.allows_host(host) {
            return Err(format!(
                "the host {host:?} is not a name of this machine: allow it with --allow-host"
            ));
        }
        match text(header::ORIGIN) {
            Some(origin) if !self.allows_origin(origin, host) => {
                let hint = match self.has_pages {
                    true => ": allow them with --cors",
                    false => "",
                };
                Err(format!(
                    "pages of the origin {origin:?} may not send requests here{hint}"
                ))
            }
            _ => Ok(()),
        }
    }

    fn allows_host(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else {
            return false;
        };
        if host.contains('@') {
            return false;
        }
        let name = authority.host();
        let is_address = name.starts_with('[') || name.parse::<std::net::Ipv4Addr>().is_ok();
        let names = self.hosts.iter().map(String::as_str).chain(LOCAL_HOSTS);
        is_address || { names }.any(|allowed| allowed.eq_ignore_ascii_case(name))
    }

    fn allows_origin(&self, origin: &str, host: &str) -> bool {
        let is_own = || origin.strip_prefix("http://") == Some(host);
        self.has_pages && is_own() || self.origin.as_deref() == Some(origin)
    }
}

/// Serves HTTP requests until `shutdown` completes and the requests in progress are finished.
///
/// # Errors
/// If the listener fails.
pub async fn serve(
    listener: TcpListener,
    routes: Router,
    access: Access,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<()> {
    let routes = routes.layer(from_fn_with_state(Arc::new(access), check_access));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT);
    let graceful = GracefulShutdown::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let connection = tokio::select! {
            connection = listener.accept() => connection,
            () = &mut shutdown => break,
        };
        match connection {
            Ok((stream, _)) => {
                // Each response is written at once.
                let _ = stream.set_nodelay(true);
                let service = TowerToHyperService::new(routes.clone());
                let connection = http.serve_connection(TokioIo::new(stream), service);
                let connection = graceful.watch(connection);
                tokio::spawn(async move {
                    // A client that disconnects is not an error of the server.
                    let _ = connection.await;
                });
            }
            Err(error) if is_connection_error(&error) => {}
            // Such as too many open files. Others may close soon.
            Err(_) => sleep(Duration::from_secs(1)).await,
        }
    }
    drop(listener);
    graceful.shutdown().await;
    Ok(())
}

/// Whether a connection was closed before it was accepted.
fn is_connection_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}

async fn check_access(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    match access.check(request.headers(), request.uri()) {
        Ok(()) => next.run(request).await,
        // In a format that both API Gateway and DynamoDB use for errors of their own.
        Err(reason) => {
            let body = json!({ "__type": "RequestRejected", "message": reason });
            (StatusCode::FORBIDDEN, Json(body)).into_response()
        }
    }
}

/// An id for a request.
pub(crate) fn random_id() -> String {
    getrandom::u64().map_or_else(|_| "local".to_owned(), |random| format!("{random:016x}"))
}

/// Why a body could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyError {
    TooLarge,
    TimedOut,
    /// The client disconnected, or sent something other than HTTP.
    Malformed,
}

/// Reads a body of at most `limit` bytes.
pub(crate) async fn read_body(body: Body, limit: usize) -> Result<Bytes, BodyError> {
    let body = timeout(BODY_TIMEOUT, to_bytes(body, limit)).await;
    let body = body.map_err(|_| BodyError::TimedOut)?;
    body.map_err(|error| {
        let source = std::error::Error::source(&error);
        match source.is_some_and(|source| source.is::<LengthLimitError>()) {
            true => BodyError::TooLarge,
            false => BodyError::Malformed,
        }
    })
}

#[cfg(test)]
mod tests {
    use axum::routing::post;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpStream,
        time::Instant,
    };

    use super::*;

    fn access() -> Access {
        Access {
            hosts: vec!["devbox.example".to_owned()],
            has_pages: true,
            origin: Some("https://app.example.com".to_owned()),
        }
    }

    #[test]
    fn a_host_must_be_a_name_of_this_machine() {
        let rows = [
            (Some("127.0.0.1:3000"), true),
            (Some("192.0.2.7"), true),
            (Some("[::1]"), true),
            (Some("[::1]:3000"), true),
            (Some("localhost:3000"), true),
            (Some("LOCALHOST"), true),
            (Some("host.docker.internal:8000"), true),
            (Some("devbox.example:3000"), true),
            (Some("evil.example:3000"), false),
            (Some("127.0.0.1.evil.example"), false),
            (Some("localhost.evil.example"), false),
            (Some("localhost.:3000"), false),
            (Some("evil.example@localhost"), false),
            (Some(""), false),
            (None, false),
        ];
        for (host, expected) in rows {
            let mut headers = HeaderMap::new();
            if let Some(host) = host {
                headers.insert(header::HOST, host.parse().expect("a header"));
            }
            let result = access().check(&headers, &Uri::from_static("/"));
            assert_eq!(result.is_ok(), expected, "{host:?}: {result:?}");
        }
        // A request to a proxy names the host in its first line.
        for (uri, expected) in [("http://localhost/", true), ("http://evil.example/", false)] {
            let result = access().check(&HeaderMap::new(), &Uri::from_static(uri));
            assert_eq!(result.is_ok(), expected, "{uri}: {result:?}");
        }
    }

    #[test]
    fn an_origin_must_be_that_of_the_page_or_allowed() {
        let rows = [
            ("http://localhost:3000", true),
            ("https://app.example.com", true),
            ("http://localhost:3001", false),
            ("https://localhost:3000", false),
            ("http://127.0.0.1:3000", false),
            ("http://evil.example", false),
            ("null", false),
        ];
        for (origin, expected) in rows {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "localhost:3000".parse().expect("a header"));
            headers.insert(header::ORIGIN, origin.parse().expect("a header"));
            let result = access().check(&headers, &Uri::from_static("/"));
            assert_eq!(result.is_ok(), expected, "{origin}: {result:?}");
            let result = Access::default().check(&headers, &Uri::from_static("/"));
            assert!(result.is_err(), "{origin}");
        }
    }

    /// Sends the beginning of a request. Returns the response, and how long the server waited.
    async fn send(request: &str) -> (String, Duration) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let read = async |request: Request| match read_body(request.into_body(), 4).await {
            Ok(_) => "read".to_owned(),
            Err(error) => format!("{error:?}"),
        };
        let routes = Router::new().route("/", post(read));
        tokio::spawn(serve(listener, routes, access(), std::future::pending()));
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let began = Instant::now();
        let mut response = vec![0; 1024];
        let length = stream.read(&mut response).await.expect("a response");
        let response = String::from_utf8_lossy(&response[..length]);
        (response.into_owned(), began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn an_incomplete_request_times_out() {
        let request = "POST / HTTP/1.1\r\nHost: localhost\r\n";
        let (response, waited) = send(request).await;
        assert_eq!(response, "");
        assert!(waited >= HEADER_TIMEOUT && waited < HEADER_TIMEOUT * 2);

        let request = format!("{request}Content-Length: 4\r\n\r\na");
        let (response, waited) = send(&request).await;
        assert!(response.ends_with("TimedOut"), "{response}");
        assert!(waited >= BODY_TIMEOUT && waited < BODY_TIMEOUT * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_too_large_differs_from_a_malformed_one() {
        let rows = [
            ("Content-Length: 4\r\n\r\naaaa", "read"),
            ("Content-Length: 5\r\n\r\naaaaa", "TooLarge"),
            ("Transfer-Encoding: chunked\r\n\r\nx\r\n", "Malformed"),
        ];
        for (rest, expected) in rows {
            let request = format!("POST / HTTP/1.1\r\nHost: localhost\r\n{rest}");
            let (response, _) = send(&request).await;
            assert!(response.ends_with(expected), "{rest:?}: {response}");
        }
    }
}
