//! An HTTP server for a developer's machine. It rejects requests from web pages that the developer
//! happens to visit.

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use axum::{
    Extension, Json, Router,
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

/// How long a connection may be idle. Without this limit, clients that keep connections open could
/// use up the file descriptors of this process.
const MAX_IDLE: Duration = Duration::from_secs(30);

/// Who may send requests.
///
/// A page of any origin can send requests to this machine. With DNS rebinding, the page's own host
/// name can even resolve to this machine, so that the browser treats this server as the page's own.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Host names of this machine, in addition to IP addresses and `localhost`.
    pub hosts: Vec<String>,
    /// Whether this server serves pages that send requests.
    pub has_pages: bool,
    /// An additional origin whose pages may send requests.
    pub origin: Option<String>,
}

impl Access {
    /// Checks whether a request is allowed. The error says why not.
    fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), String> {
        let authority = uri.authority().map(Authority::as_str);
        let host_header = only_value(headers, &header::HOST)?;
        let host = host_header.or(authority).unwrap_or_default();
        if authority.is_some_and(|authority| !authority.eq_ignore_ascii_case(host)) {
            return Err(format!("the URL names a different host than {host:?}"));
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

    /// Whether a host, with or without a port, is `localhost`, an allowed name or an IP address.
    /// DNS cannot redirect an IP address.
    fn allows_host(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
            _ => (host, None),
        };
        let is_port = match port {
            Some(port) => !port.starts_with('+') && port.parse::<u16>().is_ok(),
            None => true,
        };
        let ipv6 = name.strip_prefix('[').and_then(|ip| ip.strip_suffix(']'));
        let is_address = match ipv6 {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => name.parse::<Ipv4Addr>().is_ok(),
        };
        let is_name = |allowed: &str| allowed.eq_ignore_ascii_case(name);
        let is_known = is_name("localhost") || self.hosts.iter().any(|host| is_name(host));
        is_port && (is_address || is_known)
    }

    fn allows_origin(&self, origin: &str, host: &str) -> bool {
        let is_own = origin.strip_prefix("http://") == Some(host);
        (self.has_pages && is_own) || self.origin.as_deref() == Some(origin)
    }
}

/// The value of a header, or `None` if the request lacks it. A repeated header is an error.
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
        // Accepts connections itself, because `axum::serve` has no timeout. `accept` waits if there
        // are no file descriptors left.
        let (stream, client) = axum::serve::Listener::accept(&mut listener).await;
        // Sends a response without waiting for more data (no Nagle's algorithm).
        let _ = stream.set_nodelay(true);
        // `forward` logs the address.
        let routes = routes.clone().layer(Extension(client));
        let service = TowerToHyperService::new(routes);
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
        // DynamoDB's own errors have both fields. API Gateway's own errors have `message`.
        Err(reason) => {
            let body = json!({ "__type": "RequestRejected", "message": reason });
            (StatusCode::FORBIDDEN, Json(body)).into_response()
        }
    }
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

    /// Checks a request to `uri` with these `Host` headers.
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
            assert_eq!(check("/", &[host]), Ok(()), "{host:?}");
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
            // A resolver may read these as names or as different addresses.
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
            assert!(check("/", &[host]).is_err(), "{host:?}");
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
        let cases: [(&str, &[&str], bool); 8] = [
            ("/", &[], false),
            ("/", &[local, local], false),
            ("/", &[local, evil], false),
            // The request line of a request to a proxy names the host.
            ("http://localhost/", &[], true),
            ("http://evil.example/", &[], false),
            ("http://LOCALHOST/", &[local], true),
            ("http://evil.example/", &[local], false),
            ("http://localhost/", &[evil], false),
        ];
        for (uri, hosts, expected) in cases {
            let result = check(uri, hosts);
            assert_eq!(result.is_ok(), expected, "{uri} {hosts:?}: {result:?}");
        }
    }

    #[test]
    fn an_origin_must_be_that_of_the_server_or_allowed() {
        let cases: [(&[&str], bool); 10] = [
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
        for (origins, expected) in cases {
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
