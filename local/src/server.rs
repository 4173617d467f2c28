//! An HTTP server for a developer's machine. It rejects requests of web pages that a developer happens
//! to visit.

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{Request, State},
    http::{HeaderMap, HeaderName, StatusCode, Uri, header, uri::Authority},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use serde_json::json;
use tokio::net::TcpListener;

/// How long a connection may be idle, so that clients that keep connections do not use up the
/// descriptors of this process.
const MAX_IDLE: Duration = Duration::from_secs(30);

/// Who may send requests.
///
/// A page of any origin can send requests to this machine. DNS can also make a name of that origin
/// resolve to this machine, so that the browser takes the server for the page's own.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Names of this machine, in addition to IP addresses and `localhost`.
    pub hosts: Vec<String>,
    /// Whether the server has pages of its own that send requests.
    pub has_pages: bool,
    /// Another origin whose pages may send requests.
    pub origin: Option<String>,
}

impl Access {
    /// Why a request is rejected.
    fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), String> {
        let authority = uri.authority().map(Authority::as_str);
        let sent = only_value(headers, &header::HOST)?;
        let host = sent.or(authority).unwrap_or_default();
        if authority.is_some_and(|authority| !authority.eq_ignore_ascii_case(host)) {
            return Err(format!("the URL names another host than {host:?}"));
        }
        if !self.allows_host(host) {
            return Err(format!(
                "the host {host:?} is not a name of this machine: allow it with `--allow-host NAME`"
            ));
        }
        match only_value(headers, &header::ORIGIN)? {
            Some(origin) if !self.allows_origin(origin, host) => {
                let hint = if self.has_pages {
                    ": allow them with --cors"
                } else {
                    ""
                };
                Err(format!(
                    "pages of the origin {origin:?} may not send requests here{hint}"
                ))
            }
            _ => Ok(()),
        }
    }

    /// Whether a host is `localhost`, an allowed name or an IP address, which DNS cannot change. It may
    /// have a port.
    fn allows_host(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, port),
            _ => (host, "0"),
        };
        let is_port = !port.starts_with('+') && port.parse::<u16>().is_ok();
        let in_brackets = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'));
        let is_address = match in_brackets {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => name.parse::<Ipv4Addr>().is_ok(),
        };
        let mut names = self.hosts.iter().map(String::as_str).chain(["localhost"]);
        is_port && (is_address || names.any(|allowed| allowed.eq_ignore_ascii_case(name)))
    }

    fn allows_origin(&self, origin: &str, host: &str) -> bool {
        let is_own = || origin.strip_prefix("http://") == Some(host);
        self.has_pages && is_own() || self.origin.as_deref() == Some(origin)
    }
}

/// The value of a header that a request has at most once.
fn only_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, String> {
    let mut values = headers.get_all(name).iter();
    let value = values.next();
    match values.next() {
        Some(_) => Err(format!("the request has more than one header `{name}`")),
        None => Ok(value.map(|value| value.to_str().unwrap_or_default())),
    }
}

/// Serves HTTP requests until the future is dropped.
pub async fn serve(mut listener: TcpListener, routes: Router, access: Access) {
    let routes = routes.layer(from_fn_with_state(Arc::new(access), check_access));
    loop {
        // `axum::serve` has no timeout. This method of its trait waits if there are no descriptors left.
        let (stream, _) = axum::serve::Listener::accept(&mut listener).await;
        // Each response is written at once.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(routes.clone());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(MAX_IDLE)
            .serve_connection(TokioIo::new(stream), service);
        tokio::spawn(connection);
    }
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

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpStream,
        time::timeout,
    };

    use super::*;

    fn access() -> Access {
        Access {
            hosts: vec!["devbox.example".to_owned()],
            has_pages: true,
            origin: Some("https://app.example.com".to_owned()),
        }
    }

    /// The outcome for a request to a URL with these hosts.
    fn check(uri: &'static str, hosts: &[&str]) -> Result<(), String> {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, host.parse().expect("a header"));
        }
        access().check(&headers, &Uri::from_static(uri))
    }

    #[test]
    fn a_host_must_be_a_name_or_an_address_of_this_machine() {
        for host in [
            "127.0.0.1:3000",
            "192.0.2.7",
            "[::1]",
            "[::1]:3000",
            "localhost:3000",
            "LOCALHOST",
            "devbox.example:3000",
        ] {
            let result = check("/", &[host]);
            assert_eq!(result, Ok(()), "{host:?}");
        }
        for host in [
            "",
            "evil.example:3000",
            "host.docker.internal:8000",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "localhost.:3000",
            "evil.example@localhost",
            "localhost@evil.example",
            // A resolver may take these for a name, or for another address.
            "127.1",
            "0x7f.1",
            "0177.0.0.1",
            "[evil]",
            "[127.0.0.1]",
            "[::1].evil.example",
            "[::1]evil",
            "::1",
            // Browsers cannot send a zone, and other clients do not.
            "[fe80::1%25eth0]",
            "localhost:",
            "localhost:+80",
            "localhost:65536",
            "localhost:3000:3000",
            "localhost, evil.example",
        ] {
            let result = check("/", &[host]);
            assert!(result.is_err(), "{host:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_ends() {
        const REQUEST: &str = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(serve(listener, Router::new(), access()));
        for (sent, expected) in [
            ("", ""),
            (&REQUEST[..20], ""),
            (REQUEST, "HTTP/1.1 404 Not Found"),
        ] {
            let mut client = TcpStream::connect(address).await.expect("a connection");
            client.write_all(sent.as_bytes()).await.expect("sent");
            let mut received = String::new();
            let read = client.read_to_string(&mut received);
            let ended = timeout(2 * MAX_IDLE, read).await;
            assert!(ended.is_ok(), "after {sent:?}");
            assert!(received.starts_with(expected), "{sent:?}: {received}");
        }
    }

    #[test]
    fn a_request_names_one_host() {
        let (local, evil) = ("localhost", "evil.example");
        let rows: [(&str, &[&str], bool); 8] = [
            ("/", &[], false),
            ("/", &[local, local], false),
            ("/", &[local, evil], false),
            // A request to a proxy names the host in its first line.
            ("http://localhost/", &[], true),
            ("http://evil.example/", &[], false),
            ("http://LOCALHOST/", &[local], true),
            ("http://evil.example/", &[local], false),
            ("http://localhost/", &[evil], false),
        ];
        for (uri, hosts, expected) in rows {
            let result = check(uri, hosts);
            assert_eq!(result.is_ok(), expected, "{uri} {hosts:?}: {result:?}");
        }
    }

    #[test]
    fn an_origin_must_be_that_of_the_page_or_allowed() {
        let rows: [(&[&str], bool); 10] = [
            (&["http://localhost:3000"], true),
            (&["https://app.example.com"], true),
            (&["http://localhost:3001"], false),
            (&["https://localhost:3000"], false),
            (&["http://127.0.0.1:3000"], false),
            (&["http://evil.example"], false),
            (&["http://localhost:3000.evil.example"], false),
            (&["https://app.example.com.evil.example"], false),
            (&["null"], false),
            (&["http://localhost:3000", "http://evil.example"], false),
        ];
        for (origins, expected) in rows {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "localhost:3000".parse().expect("a header"));
            for origin in origins {
                headers.append(header::ORIGIN, origin.parse().expect("a header"));
            }
            let result = access().check(&headers, &Uri::from_static("/"));
            assert_eq!(result.is_ok(), expected, "{origins:?}: {result:?}");
            let result = Access::default().check(&headers, &Uri::from_static("/"));
            assert!(result.is_err(), "{origins:?}");
        }
    }
}
