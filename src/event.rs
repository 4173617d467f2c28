//! Parses events: HTTP requests in payload format 2.0 (HTTP APIs, function URLs) or 1.0 (REST
//! APIs).
//!
//! `lambda_http`'s parser is not used, because it panics on some events and drops repeated headers.

use std::{borrow::Cow, time::SystemTime};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    api_key::{ApiKey, Credential},
    prefer::prefers,
};

/// The HTTP request in an event.
pub(crate) struct Request<'a> {
    /// The id that identifies the request in the response, the log and the records.
    pub(crate) id: &'a str,
    /// When the function received the request. The caches and the records use this time.
    pub(crate) received_at: SystemTime,
    pub(crate) method: &'a str,
    /// The decoded segments of the path.
    pub(crate) segments: Vec<Cow<'a, str>>,
    pub(crate) credential: Credential<'a>,
    /// `Prefer: return=headers-only`, which is this API's own: the response to a create operation
    /// has headers that give the id of the record and say whether it is new.
    pub(crate) wants_record_headers: bool,
    /// `Prefer: handling=strict`: a body with an unknown field is invalid.
    pub(crate) is_strict: bool,
    pub(crate) body: Cow<'a, [u8]>,
}

/// The fields of an event that the function reads. Most are `Option`s, because some sources of
/// events send null for a missing field. No source sends null for `requestContext` or `http`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Event {
    /// `2.0` in payload 2.0.
    version: Option<String>,
    /// The route that an HTTP API matched, such as `POST /api/v1/bot/playground/{id}/voice`.
    route_key: Option<String>,
    /// The path in payload 2.0.
    raw_path: Option<String>,
    /// The path in payload 1.0.
    path: Option<String>,
    /// The method in payload 1.0.
    http_method: Option<String>,
    // The values can have any type, because a value that the function does not read changes nothing.
    headers: Option<Map<String, Value>>,
    /// All values of all headers, in payload 1.0. `headers` has only one value per header.
    multi_value_headers: Option<Map<String, Value>>,
    body: Option<String>,
    is_base64_encoded: Option<bool>,
    request_context: RequestContext,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RequestContext {
    request_id: Value,
    stage: Option<String>,
    /// The method in payload 2.0.
    http: Http,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Http {
    method: Option<String>,
}

impl Event {
    /// Parses an event. JSON that is not an event becomes an empty event, which has no `request`.
    pub(crate) fn parse(json: &str) -> Self {
        serde_json::from_str(json).unwrap_or_default()
    }

    pub(crate) fn is_payload_2(&self) -> bool {
        self.version.as_deref() == Some("2.0")
    }

    /// API Gateway's id of the request. `None` unless it has 1 to 128 visible ASCII characters and
    /// contains no API key. Emulators send empty ids, and a client of a REST API can choose the id.
    pub(crate) fn request_id(&self) -> Option<&str> {
        let id = self.request_context.request_id.as_str()?;
        let is_visible = id.bytes().all(|byte| byte.is_ascii_graphic());
        let is_used = is_visible && (1..=128).contains(&id.len()) && !ApiKey::is_in(id);
        is_used.then_some(id)
    }

    /// The HTTP request in the event. `None` if there is none, or if the body is not valid base64.
    pub(crate) fn request<'a>(
        &'a self,
        id: &'a str,
        received_at: SystemTime,
    ) -> Option<Request<'a>> {
        let v2_method = self.request_context.http.method.as_deref();
        let body = self.body.as_deref().unwrap_or_default();
        let prefer = self.header_values("prefer");
        Some(Request {
            id,
            received_at,
            method: v2_method.or(self.http_method.as_deref())?,
            segments: self.segments()?,
            credential: Credential::parse(&self.header_values("authorization")),
            wants_record_headers: prefers(&prefer, "return", "headers-only"),
            is_strict: prefers(&prefer, "handling", "strict"),
            body: match self.is_base64_encoded {
                Some(true) => STANDARD.decode(body).ok()?.into(),
                _ => body.as_bytes().into(),
            },
        })
    }

    /// The decoded segments of the path, without the stage that some event sources add.
    fn segments(&self) -> Option<Vec<Cow<'_, str>>> {
        let path = self.raw_path.as_deref().or(self.path.as_deref())?;
        let without_leading_slash = path.strip_prefix('/').unwrap_or(path);
        // An HTTP API decodes the path before it invokes the function. REST APIs and function URLs
        // do not.
        let route_key = self.route_key.as_deref().unwrap_or_default();
        let is_decoded = route_key.starts_with("POST /api/v1/");
        let mut segments = Vec::new();
        for segment in without_leading_slash.split('/') {
            segments.push(if is_decoded {
                segment.into()
            } else {
                percent_decode_str(segment).decode_utf8_lossy()
            });
        }
        // If the path begins with `api/v1`, its first segment is not the stage, even if the stage
        // is named `api`.
        let starts_at_api = segments.starts_with(&["api".into(), "v1".into()]);
        let stage = self.request_context.stage.as_deref();
        if !starts_at_api && segments.first().map(AsRef::as_ref) == stage {
            segments.remove(0);
        }
        Some(segments)
    }

    /// The values of a header that are strings. Payload 2.0 joins repeated headers into one value with
    /// commas. The case of `name` does not matter.
    fn header_values(&self, name: &str) -> Vec<&str> {
        let mut found = Vec::new();
        for (header, values) in self.multi_value_headers.iter().flatten() {
            if header.eq_ignore_ascii_case(name) {
                found.extend(
                    values
                        .as_array()
                        .into_iter()
                        .flatten()
                        .filter_map(Value::as_str),
                );
            }
        }
        if !found.is_empty() {
            return found;
        }
        for (header, value) in self.headers.iter().flatten() {
            if header.eq_ignore_ascii_case(name) {
                found.extend(value.as_str());
            }
        }
        found
    }
}
