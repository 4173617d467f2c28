//! An HTTP server for a developer's machine. It rejects requests of web pages that a developer happens
//! to visit.

use std::{io, sync::Arc};

use axum::{
    Json, Router,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, Uri, header, uri::Authority},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
    serve::ListenerExt as _,
};
use serde_json::json;
use tokio::net::TcpListener;

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

/// Serves HTTP requests until the future is dropped.
///
/// # Errors
/// Never: `axum::serve` has this type, and does not complete.
pub async fn serve(listener: TcpListener, routes: Router, access: Access) -> io::Result<()> {
    let routes = routes.layer(from_fn_with_state(Arc::new(access), check_access));
    let listener = listener.tap_io(|stream| {
        // Each response is written at once.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, routes).await
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
}
