//! The options of `cargo serve`.

use std::{
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
};

use axum::http::uri::Authority;
use clap::{
    Parser,
    builder::{PossibleValuesParser, TypedValueParser},
};
use workspace_management::{auth::AnonymousAccess, store::MAX_CACHE_TTL};

/// The default address to listen on.
const DEFAULT_HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// How many seconds API keys are cached by default.
const DEFAULT_KEY_CACHE: u64 = 60;

const EXAMPLES: &str = "\
Examples:
  cargo serve
  cargo serve --data data.sqlite --key-cache 0
  cargo serve --anonymous denied --cors http://localhost:5173 --open
  cargo serve --port 3001 --dynamodb-port 8001
  AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:8001 cargo ctl list teams";

/// Run the whole service locally, with a demo organization and an API key
#[derive(Debug, Parser)]
#[command(name = "serve", bin_name = "cargo serve", version, after_help = EXAMPLES)]
pub struct Options {
    /// The IP address to listen on, for the API and DynamoDB
    #[arg(long, default_value_t = DEFAULT_HOST, value_name = "ADDRESS")]
    pub(crate) host: IpAddr,
    /// The port of the API, or 0 for any free port
    #[arg(long, default_value_t = 3000)]
    pub(crate) port: u16,
    /// The port of DynamoDB, or 0 for any free port
    #[arg(long, default_value_t = 8000, value_name = "PORT")]
    pub(crate) dynamodb_port: u16,
    /// How long the service caches API keys, as KeyCacheSeconds in the template
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_KEY_CACHE, value_parser = clap::value_parser!(u64).range(..=MAX_CACHE_TTL.as_secs()))]
    pub(crate) key_cache: u64,
    /// Policy for callers without an API key, as AnonymousOperations in the template
    #[arg(long, value_name = "POLICY", default_value = "allowed", value_parser = policy_parser())]
    pub(crate) anonymous: AnonymousAccess,
    /// Limit the requests per second. Further requests get a 429, as from API Gateway
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate_limit: Option<u32>,
    /// Allow the pages of an origin, such as http://localhost:5173, to call the API
    #[arg(long, value_name = "ORIGIN", value_parser = parse_origin)]
    pub(crate) cors: Option<String>,
    /// Also accept requests to a host name, such as host.docker.internal. Can be repeated
    #[arg(long = "allow-host", value_name = "NAME", value_parser = parse_host_name)]
    pub(crate) allowed_hosts: Vec<String>,
    /// Keep the data in this SQLite file [default: in memory]
    #[arg(long, value_name = "FILE")]
    pub(crate) data: Option<PathBuf>,
    /// Open the local page in a browser
    #[arg(long)]
    pub open: bool,
    /// Print the addresses and requests as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Log the warnings of libraries
    #[arg(long)]
    pub verbose: bool,
}

fn policy_parser() -> impl TypedValueParser<Value = AnonymousAccess> {
    PossibleValuesParser::new(["allowed", "denied"]).map(|policy| match &*policy {
        "allowed" => AnonymousAccess::Allowed,
        _ => AnonymousAccess::Denied,
    })
}

/// Parses an origin. Returns it as browsers send it: in lower case, without the default port.
fn parse_origin(text: &str) -> Result<String, &'static str> {
    let (scheme, authority) = text.split_once("://").unwrap_or_default();
    let default_port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => "",
    };
    let is_valid = !default_port.is_empty()
        && authority.parse::<Authority>().is_ok()
        && !authority.contains(['@', '*']);
    if !is_valid {
        return Err("give a scheme, a host in ASCII and a port, such as http://localhost:5173");
    }
    Ok(text.trim_end_matches(default_port).to_ascii_lowercase())
}

fn parse_host_name(text: &str) -> Result<String, &'static str> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if text.is_empty() || !text.bytes().all(is_allowed) {
        return Err("give a name in ASCII without scheme and port, such as devbox.example");
    }
    Ok(text.to_owned())
}

impl Options {
    /// The options whose values are not the defaults. Without the ports, which the addresses show.
    pub(crate) fn settings(&self) -> Vec<String> {
        let mut settings = Vec::new();
        if self.host != DEFAULT_HOST {
            settings.push(format!("--host {}", self.host));
        }
        if self.key_cache != DEFAULT_KEY_CACHE {
            settings.push(format!("--key-cache {}", self.key_cache));
        }
        if self.anonymous == AnonymousAccess::Denied {
            settings.push("--anonymous denied".to_owned());
        }
        if let Some(limit) = self.rate_limit {
            settings.push(format!("--rate-limit {limit}"));
        }
        if let Some(origin) = &self.cors {
            settings.push(format!("--cors {origin}"));
        }
        for host in &self.allowed_hosts {
            settings.push(format!("--allow-host {host}"));
        }
        if let Some(file) = &self.data {
            settings.push(format!("--data {}", file.display()));
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowed_host_is_a_name() {
        assert!(parse_host_name("my-box_2.example").is_ok());
        for invalid in ["", "a:80", "http://a", "*.a", "a b", "a@b", "[a]", "ü.com"] {
            assert!(parse_host_name(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn an_origin_is_a_scheme_a_host_and_a_port() {
        for (text, expected) in [
            ("http://localhost:5173", "http://localhost:5173"),
            ("https://App.example.com", "https://app.example.com"),
            ("http://[::1]:80", "http://[::1]"),
            ("https://a:443", "https://a"),
            ("https://a:80", "https://a:80"),
        ] {
            assert_eq!(parse_origin(text).as_deref(), Ok(expected));
        }
        for invalid in [
            "",
            "*",
            "null",
            "localhost:5173",
            "http://",
            "http://a/",
            "ftp://a",
            "http://*.a",
            "http://münchen.example",
            "http://a b",
        ] {
            assert!(parse_origin(invalid).is_err(), "{invalid}");
        }
    }
}
