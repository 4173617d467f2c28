//! Reads the event: a request from an HTTP API (payload 2.0), a REST API (payload 1.0), a load
//! balancer or a function URL.
//!
//! `lambda_http` is not used for this, because it panics on some events and keeps only the last of
//! two `Authorization` headers.

use std::{borrow::Cow, collections::HashMap, time::SystemTime};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, de::IgnoredAny};

use crate::prefer::prefers_headers_only;

/// A request that an event contains.
pub(crate) struct Request<'a> {
    /// The id that the response, the log and the records show.
    pub(crate) id: &'a str,
    /// When the function received it. Cache entries and records use this time.
    pub(crate) received_at: SystemTime,
    pub(crate) method: &'a str,
    /// The decoded segments of the path.
    pub(crate) path: Vec<Cow<'a, str>>,
    /// Every value of the `Authorization` header.
    pub(crate) authorization: Vec<&'a str>,
    pub(crate) body: Cow<'a, [u8]>,
}

/// Where an event comes from. Each source expects its own response format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventSource {
    /// An HTTP API or a function URL. Also an unrecognized source.
    HttpApi,
    RestApi,
    LoadBalancer,
}

/// The members of an event that the function reads. Some sources send null for an absent member.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Event {
    /// Sent by HTTP APIs and function URLs.
    raw_path: Option<String>,
    /// Sent by REST APIs and load balancers, like `http_method`.
    path: Option<String>,
    http_method: Option<String>,
    headers: Option<HashMap<String, String>>,
    /// REST APIs send them in addition to `headers`, load balancers instead of `headers`.
    multi_value_headers: Option<HashMap<String, Vec<String>>>,
    body: Option<String>,
    is_base64_encoded: Option<bool>,
    request_context: Option<RequestContext>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RequestContext {
    request_id: Option<String>,
    stage: Option<String>,
    /// Sent by HTTP APIs and function URLs.
    http: Option<Http>,
    /// Sent by load balancers.
    elb: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Http {
    method: String,
}

impl Event {
    /// Parses an event. JSON of any other shape becomes an event without a request.
    pub(crate) fn parse(json: &str) -> Self {
        serde_json::from_str(json).unwrap_or_default()
    }

    /// The request's id, if the source sends one.
    pub(crate) fn request_id(&self) -> Option<&str> {
        self.request_context.as_ref()?.request_id.as_deref()
    }

    /// The request. `None` if the event contains none, or if its body is not valid base64.
    pub(crate) fn request<'a>(
        &'a self,
        id: &'a str,
        received_at: SystemTime,
    ) -> Option<Request<'a>> {
        let body = self.body.as_deref().unwrap_or_default();
        let context = self.request_context.as_ref();
        let http = context.and_then(|context| context.http.as_ref());
        let method = http.map(|http| &http.method);
        Some(Request {
            id,
            received_at,
            method: method.or(self.http_method.as_ref())?,
            path: self.segments()?,
            authorization: self.header_values("authorization"),
            body: match self.is_base64_encoded {
                Some(true) => STANDARD.decode(body).ok()?.into(),
                _ => body.as_bytes().into(),
            },
        })
    }

    /// The percent-decoded segments of the path, without the stage that some sources add.
    ///
    /// If the source has decoded the path already, decoding it again is harmless: valid
    /// identifiers contain no `%`.
    fn segments(&self) -> Option<Vec<Cow<'_, str>>> {
        let path = self.raw_path.as_deref().or(self.path.as_deref())?;
        let path = path.strip_prefix('/').unwrap_or(path);
        let decode = |segment| percent_decode_str(segment).decode_utf8_lossy();
        let mut segments: Vec<_> = path.split('/').map(decode).collect();
        // A path without a stage keeps its first segment, even if the stage is named `api`.
        let has_no_stage = segments.len() > 1 && segments[0] == "api" && segments[1] == "v1";
        let context = self.request_context.as_ref();
        let stage = context.and_then(|context| context.stage.as_deref());
        if !has_no_stage && stage == Some(&*segments[0]) {
            segments.remove(0);
        }
        Some(segments)
    }

    /// The root of the trace in X-Ray's header, if it is well-formed: `1-`, 8 and 24 hexadecimal
    /// digits.
    pub(crate) fn amzn_trace_id(&self) -> Option<&str> {
        let values = self.header_values("x-amzn-trace-id").into_iter();
        let mut fields = values.flat_map(|value| value.split(';'));
        let root = fields.find_map(|field| field.trim().strip_prefix("Root="))?;
        (root.starts_with("1-") && is_hex_groups(root, &[1, 8, 24])).then_some(root)
    }

    /// The `traceparent` header (W3C Trace Context, section 3.2), if it is well-formed. Only the
    /// part that every version has.
    pub(crate) fn traceparent(&self) -> Option<&str> {
        let value = self.header_values("traceparent").into_iter().next()?;
        let traceparent = value.get(..55)?;
        is_hex_groups(traceparent, &[2, 32, 16, 2]).then_some(traceparent)
    }

    /// Every value of a header. Its name may be in any case.
    fn header_values(&self, name: &str) -> Vec<&str> {
        let mut values = Vec::new();
        for (other, multiple) in self.multi_value_headers.iter().flatten() {
            if other.eq_ignore_ascii_case(name) {
                values.extend(multiple.iter().map(String::as_str));
            }
        }
        if values.is_empty() {
            let single = self.headers.iter().flatten();
            let single = single.filter(|(other, _)| other.eq_ignore_ascii_case(name));
            values.extend(single.map(|(_, value)| value.as_str()));
        }
        values
    }

    /// Whether the client prefers to get the id of what it creates in a header.
    pub(crate) fn prefers_headers_only(&self) -> bool {
        prefers_headers_only(&self.header_values("prefer"))
    }

    pub(crate) fn source(&self) -> EventSource {
        let context = self.request_context.as_ref();
        let elb = context.and_then(|context| context.elb.as_ref());
        match (elb, &self.http_method) {
            (Some(_), _) => EventSource::LoadBalancer,
            (None, Some(_)) => EventSource::RestApi,
            (None, None) => EventSource::HttpApi,
        }
    }
}

/// Whether a text is groups of lower-case hexadecimal digits of these lengths, joined by hyphens.
fn is_hex_groups(text: &str, lengths: &[usize]) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let groups = text
        .split('-')
        .map(|group| group.bytes().all(is_digit).then_some(group.len()));
    groups.eq(lengths.iter().copied().map(Some))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(json: &Value) -> Event {
        Event::parse(&json.to_string())
    }

    #[test]
    fn segments_are_decoded_and_have_no_stage() {
        for (path, stage, expected) in [
            ("/api/v1/org", "$default", vec!["api", "v1", "org"]),
            ("/prod/api/v1/org", "prod", vec!["api", "v1", "org"]),
            ("/prod/api/v1/org", "test", vec!["prod", "api", "v1", "org"]),
            ("/api/v1/org", "api", vec!["api", "v1", "org"]),
            ("/api/api/v1/org", "api", vec!["api", "v1", "org"]),
            ("/v1/api/v1/org", "v1", vec!["api", "v1", "org"]),
            ("/a%2Fb/%2541/%C3%A9", "$default", vec!["a/b", "%41", "é"]),
            ("//a/", "$default", vec!["", "a", ""]),
            ("", "$default", vec![""]),
        ] {
            let event = event(&json!({ "rawPath": path, "requestContext": { "stage": stage } }));
            assert_eq!(event.segments().unwrap(), expected, "{path} in {stage}");
        }
        assert!(event(&json!({})).segments().is_none());
    }

    #[test]
    fn multi_value_headers_take_precedence() {
        let event = event(&json!({
            "headers": { "Authorization": "last" },
            "multiValueHeaders": { "AUTHORIZATION": ["first", "last"], "other": ["x"] },
        }));
        assert_eq!(event.header_values("authorization"), ["first", "last"]);
        assert_eq!(event.header_values("absent"), [] as [&str; 0]);
    }

    #[test]
    fn amzn_trace_id_returns_a_well_formed_root() {
        let root = "1-67891233-abcdef012345678912345678";
        let trace = |value: &str| event(&json!({ "headers": { "X-Amzn-Trace-Id": value } }));
        for value in [
            format!("Root={root}"),
            format!("Self=1-1; Root={root};Sampled=1"),
        ] {
            assert_eq!(trace(&value).amzn_trace_id(), Some(root), "{value}");
        }
        for value in [
            "",
            "Root=",
            "Root=1-67891233-Papers",
            &format!("Root={root}0"),
            &format!("Root=a{}", &root[1..]),
            root,
        ] {
            assert_eq!(trace(value).amzn_trace_id(), None, "{value}");
        }
    }

    #[test]
    fn traceparent_returns_the_part_that_every_version_has() {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let trace = |value: &str| event(&json!({ "headers": { "TraceParent": value } }));
        for value in [parent.to_owned(), format!("{parent}-more")] {
            assert_eq!(trace(&value).traceparent(), Some(parent), "{value}");
        }
        let upper_case = parent.to_uppercase();
        for value in ["", &parent[..54], &upper_case, &parent.replace("01", "0x")] {
            assert_eq!(trace(value).traceparent(), None, "{value}");
        }
    }

    #[test]
    fn the_source_is_recognized() {
        let rows = [
            (
                json!({ "rawPath": "/", "requestContext": { "http": { "method": "POST" } } }),
                EventSource::HttpApi,
            ),
            (
                json!({ "httpMethod": "POST", "requestContext": { "stage": "prod" } }),
                EventSource::RestApi,
            ),
            (
                json!({ "httpMethod": "POST", "requestContext": { "elb": {} } }),
                EventSource::LoadBalancer,
            ),
            (json!(null), EventSource::HttpApi),
        ];
        for (json, source) in rows {
            assert_eq!(event(&json).source(), source, "{json}");
        }
    }
}
