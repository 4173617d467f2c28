//! Parses events: HTTP requests in payload format 2.0 (HTTP APIs, function URLs) or 1.0 (REST
//! APIs).
//!
//! `lambda_http`'s parser is not used, because it panics on some events and drops repeated headers.

use std::{borrow::Cow, collections::HashMap, time::SystemTime};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use percent_encoding::percent_decode_str;
use serde::Deserialize;

use crate::api_key::Credential;

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
    pub(crate) body: Cow<'a, [u8]>,
}

/// The fields of an event that the function reads. Most are `Option`s, because some sources of
/// events send null for a missing field. No source sends null for `requestContext` or `http`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Event {
    /// The path in payload 2.0.
    raw_path: Option<String>,
    /// The path in payload 1.0.
    path: Option<String>,
    /// The method in payload 1.0.
    http_method: Option<String>,
    headers: Option<HashMap<String, String>>,
    /// All values of all headers, in payload 1.0. `headers` has only one value per header.
    multi_value_headers: Option<HashMap<String, Vec<String>>>,
    body: Option<String>,
    is_base64_encoded: Option<bool>,
    request_context: RequestContext,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RequestContext {
    request_id: Option<String>,
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

    /// The id of the request. `None` if the event source sends no id.
    pub(crate) fn request_id(&self) -> Option<&str> {
        self.request_context.request_id.as_deref()
    }

    /// The HTTP request in the event. `None` if there is none, or if the body is not valid base64.
    pub(crate) fn request<'a>(
        &'a self,
        id: &'a str,
        received_at: SystemTime,
    ) -> Option<Request<'a>> {
        let v2_method = self.request_context.http.method.as_deref();
        let body = self.body.as_deref().unwrap_or_default();
        Some(Request {
            id,
            received_at,
            method: v2_method.or(self.http_method.as_deref())?,
            segments: self.segments()?,
            credential: Credential::parse(&self.header_values("authorization")),
            body: match self.is_base64_encoded {
                Some(true) => STANDARD.decode(body).ok()?.into(),
                _ => body.as_bytes().into(),
            },
        })
    }

    /// The percent-decoded segments of the path, without the stage that some event sources add.
    ///
    /// Some event sources have decoded the path already. Decoding twice is harmless, because no
    /// valid path contains a `%` once it is decoded.
    fn segments(&self) -> Option<Vec<Cow<'_, str>>> {
        let path = self.raw_path.as_deref().or(self.path.as_deref())?;
        let without_leading_slash = path.strip_prefix('/').unwrap_or(path);
        let mut segments: Vec<_> = without_leading_slash
            .split('/')
            .map(|segment| percent_decode_str(segment).decode_utf8_lossy())
            .collect();
        // If the path begins with `api/v1`, its first segment is not the stage, even if the stage
        // is named `api`.
        let starts_at_api = segments.starts_with(&["api".into(), "v1".into()]);
        let stage = self.request_context.stage.as_deref();
        if !starts_at_api && segments.first().map(AsRef::as_ref) == stage {
            segments.remove(0);
        }
        Some(segments)
    }

    /// The values of a header. Payload 2.0 joins repeated headers into one value with commas. The
    /// case of `name` does not matter.
    fn header_values(&self, name: &str) -> Vec<&str> {
        let mut found = Vec::new();
        for (header, values) in self.multi_value_headers.iter().flatten() {
            if header.eq_ignore_ascii_case(name) {
                found.extend(values.iter().map(String::as_str));
            }
        }
        if !found.is_empty() {
            return found;
        }
        for (header, value) in self.headers.iter().flatten() {
            if header.eq_ignore_ascii_case(name) {
                found.push(value.as_str());
            }
        }
        found
    }

    /// Whether a `Prefer` header (RFC 7240) contains this API's preference `return=headers-only`
    /// (case-insensitive). If so, the response to a create operation has headers that give the id
    /// of the record and say whether it is new.
    pub(crate) fn wants_record_headers(&self) -> bool {
        let values = self.header_values("prefer");
        let mut preferences = values.iter().flat_map(|value| value.split(','));
        preferences.any(|preference| {
            preference
                .trim()
                .eq_ignore_ascii_case("return=headers-only")
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(json: &Value) -> Event {
        Event::parse(&json.to_string())
    }

    #[test]
    fn a_stage_that_has_the_name_of_a_segment_is_found() {
        for (path, stage) in [
            ("/api/v1/org", "api"),
            ("/api/api/v1/org", "api"),
            ("/v1/api/v1/org", "v1"),
        ] {
            let event = event(&json!({ "rawPath": path, "requestContext": { "stage": stage } }));
            let segments = event.segments().unwrap();
            assert_eq!(segments, ["api", "v1", "org"], "{path} in {stage}");
        }
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
    fn the_preference_is_found_in_lists_and_in_any_case() {
        for (values, expected) in [
            (&["return=headers-only"][..], true),
            (&["Return=Headers-Only"], true),
            (&["respond-async, wait=10, return=headers-only"], true),
            (&["handling=lenient", "wait=1,return=headers-only"], true),
            (&[], false),
            (&[""], false),
            (&["return=minimal"], false),
            (&["headers-only"], false),
            (&["noreturn=headers-only"], false),
        ] {
            let event = event(&json!({ "multiValueHeaders": { "Prefer": values } }));
            assert_eq!(event.wants_record_headers(), expected, "{values:?}");
        }
    }
}
