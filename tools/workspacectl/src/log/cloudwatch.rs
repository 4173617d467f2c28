//! The logs of a stack in CloudWatch Logs. Lines are read with `FilterLogEvents`, which costs
//! nothing.
//!
//! [Filter patterns] quote values, and a `*` in a value matches any text. No id contains a `*`, a
//! quotation mark or a backslash.
//!
//! [Filter patterns]: https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html

use std::{
    collections::HashMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::Result;
use aws_sdk_cloudwatchlogs::{
    Client, config::Builder as ConfigBuilder,
    operation::filter_log_events::builders::FilterLogEventsFluentBuilder as FilterLogEvents,
    types::FilteredLogEvent,
};
use serde_json::{Value, json};

use super::{Filter, Line, Subject, is_request_id};
use crate::{
    deployment::{Stack, retry_config},
    errors::RequestResultExt as _,
};

/// How many request ids fit into a pattern, which has at most 1,024 characters.
pub(super) const MAX_IDS: usize = 15;

/// How much the times of a request can differ in the two logs. A request takes at most 30 s.
const MAX_TIME_DIFFERENCE: Duration = Duration::from_secs(60);

pub(super) struct CloudWatch<'a> {
    client: Client,
    function_log: &'a str,
    api_log: &'a str,
}

impl<'a> CloudWatch<'a> {
    pub(super) fn of(stack: &'a Stack) -> Result<Self> {
        // An account can send only a few requests per second.
        let config = ConfigBuilder::from(&stack.sdk_config).retry_config(retry_config());
        Ok(Self {
            client: Client::from_conf(config.build()),
            function_log: stack.physical_id("LogGroup")?,
            api_log: stack.physical_id("ApiLogGroup")?,
        })
    }

    /// The pages of the function's log since a time. A single request is searched from now on back.
    pub(super) fn pages(&self, filter: &Filter, since: SystemTime) -> Pages {
        let is_newest_first = matches!(filter.subject, Subject::Request(_));
        let events = self.events(self.function_log, &pattern(filter), since);
        Pages::new(events.start_from_head(!is_newest_first))
    }

    fn events(&self, log_group: &str, pattern: &str, since: SystemTime) -> FilterLogEvents {
        self.client
            .filter_log_events()
            .log_group_name(log_group)
            .filter_pattern(pattern)
            .start_time(millis(since))
    }

    /// Adds what the API has logged about at most [`MAX_IDS`] requests, such as the addresses.
    pub(super) async fn add_api_fields(&self, lines: &mut [Line]) -> Result<()> {
        let ids = lines.iter().filter_map(request_id);
        let conditions: Vec<_> = ids.map(|id| equal("request_id", id)).collect();
        let times = lines.iter().map(|line| line.time);
        let (Some(first), Some(last), false) =
            (times.clone().min(), times.max(), conditions.is_empty())
        else {
            return Ok(());
        };
        let pattern = format!("{{ {} }}", conditions.join(" || "));
        let events = self.events(self.api_log, &pattern, first - MAX_TIME_DIFFERENCE);
        let mut pages = Pages::new(events.end_time(millis(last + MAX_TIME_DIFFERENCE)));
        let mut found = HashMap::new();
        while let Some(events) = pages.next_events().await? {
            found.extend(events.iter().filter_map(api_fields));
        }
        for line in lines {
            let fields = request_id(line).and_then(|id| found.get(id));
            for (name, value) in fields.and_then(Value::as_object).into_iter().flatten() {
                if line.fields[name].is_null() {
                    line.fields[name] = value.clone();
                }
            }
        }
        Ok(())
    }

    /// What the API has logged about a request.
    pub(super) async fn api_line(&self, id: &str, since: SystemTime) -> Result<Option<Line>> {
        let pattern = format!("{{ {} }}", equal("request_id", id));
        let events = self.events(self.api_log, &pattern, since);
        let mut pages = Pages::new(events.start_from_head(false));
        while let Some(events) = pages.next_events().await? {
            for event in &events {
                let time =
                    UNIX_EPOCH + Duration::from_millis(event.timestamp().unwrap_or(0) as u64);
                if let Some((_, fields)) = api_fields(event) {
                    return Ok(Some(Line::new(time, fields)));
                }
            }
        }
        Ok(None)
    }
}

/// The pages of a log. A page can be empty although more pages follow.
pub(super) struct Pages {
    /// The request for the next page. `None` after the last page.
    next: Option<FilterLogEvents>,
}

impl Pages {
    fn new(events: FilterLogEvents) -> Self {
        let next = Some(events);
        Self { next }
    }

    /// The requests in the next page. `None` after the last page.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Line>>> {
        let events = self.next_events().await?;
        let parse = |event: &FilteredLogEvent| Line::parse(event.message()?);
        Ok(events.map(|events| events.iter().filter_map(parse).collect()))
    }

    async fn next_events(&mut self) -> Result<Option<Vec<FilteredLogEvent>>> {
        let Some(request) = self.next.take() else {
            return Ok(None);
        };
        let page = request
            .clone()
            .send()
            .await
            .aws_context("cannot read the log")?;
        self.next = page.next_token.map(|token| request.next_token(token));
        Ok(Some(page.events.unwrap_or_default()))
    }
}

/// The pattern of the lines that a filter selects in the function's log, and of a few others.
fn pattern(filter: &Filter) -> String {
    let mut pattern = match &filter.subject {
        Subject::Request(id) => equal("request_id", id),
        Subject::Key(id) => equal("key_id", id),
        Subject::Organization { org, .. } => format!(
            "{} || {} || ({} && ($.status = 401))",
            equal("caller_org_id", org),
            equal("org_id", org),
            equal("operation", "set_bot_voice"),
        ),
    };
    if let Some(class) = filter.status_class {
        let (min, end) = (class * 100, class * 100 + 100);
        pattern = format!("({pattern}) && ($.status >= {min}) && ($.status < {end})");
    }
    format!("{{ {pattern} }}")
}

fn equal(field: &str, value: &str) -> String {
    format!("($.{field} = \"{value}\")")
}

/// The id of a request, unless it could be anything else in a pattern.
fn request_id(line: &Line) -> Option<&str> {
    let id = line.fields["request_id"].as_str()?;
    is_request_id(id).then_some(id)
}

/// The request id and the fields of a line of the API's log. A field without a value is `-`.
fn api_fields(event: &FilteredLogEvent) -> Option<(String, Value)> {
    let mut fields: Value = serde_json::from_str(event.message()?).ok()?;
    fields.as_object_mut()?.retain(|_, value| value != "-");
    // `template.yaml` declares strings, because a field without a value is not JSON.
    if let Some(Ok(status)) = fields["status"].as_str().map(str::parse::<u64>) {
        fields["status"] = json!(status);
    }
    Some((fields["request_id"].as_str()?.to_owned(), fields))
}

fn millis(time: SystemTime) -> i64 {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since_epoch.as_millis() as i64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{super::MAX_REQUEST_ID, *};

    #[test]
    fn a_pattern_groups_its_conditions_and_is_not_too_long() {
        let subject = Subject::Organization {
            org: "acme".to_owned(),
            key_ids: BTreeSet::new(),
        };
        let status_class = Some(4);
        let expected = "{ (($.caller_org_id = \"acme\") || ($.org_id = \"acme\") || \
            (($.operation = \"set_bot_voice\") && ($.status = 401))) && \
            ($.status >= 400) && ($.status < 500) }";
        let filter = Filter {
            subject,
            status_class,
        };
        assert_eq!(pattern(&filter), expected);

        let longest = vec![equal("request_id", &"x".repeat(MAX_REQUEST_ID)); MAX_IDS];
        assert!(longest.join(" || ").len() < 1000);
    }
}
