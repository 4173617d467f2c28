//! The logs of a stack in CloudWatch Logs. Lines are read with `FilterLogEvents`, which costs
//! nothing. Uses are counted with Logs Insights, so that not every line has to be read.
//!
//! [Filter patterns] quote values, and a `*` in a value matches any text. No id contains a `*`, a
//! quotation mark or a backslash.
//!
//! [Filter patterns]: https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result, bail};
use aws_sdk_cloudwatchlogs::{
    Client,
    config::Builder as ConfigBuilder,
    operation::filter_log_events::builders::FilterLogEventsFluentBuilder as FilterLogEvents,
    types::{FilteredLogEvent, QueryStatus, ResultField},
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Filter, KeyUse, Line, Subject, is_request_id};
use crate::{
    deployment::{Stack, retry_config},
    errors::RequestResultExt as _,
    message::print_message,
};

/// How many request ids fit into a pattern, which has at most 1,024 characters.
pub(super) const MAX_IDS: usize = 15;

/// How much the times of a request can differ in the two logs. A request takes at most 30 s.
const MAX_TIME_DIFFERENCE: Duration = Duration::from_secs(60);

const QUERY_INTERVAL: Duration = Duration::from_secs(1);

/// The maximum number of rows of a query.
const MAX_ROWS: usize = 10_000;

/// Counts the requests by key and address. The first `stats` joins the lines of both logs.
const KEY_USES: &str = "fields floor(status / 400) as failed, toMillis(@timestamp) as logged_at \
    | stats max(key_id) as used_key, max(ip) as address, max(failed) as is_error, max(logged_at) as ended_at by request_id \
    | filter ispresent(used_key) \
    | stats count(*) as requests, sum(is_error) as errors, max(ended_at) as last_at by used_key, address \
    | sort requests desc | limit 10000";

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

    /// The use of all API keys since a time.
    pub(super) async fn key_uses(&self, since: SystemTime) -> Result<BTreeMap<String, KeyUse>> {
        let rows = self.query(KEY_USES, since).await?;
        if rows.len() == MAX_ROWS {
            print_message(&format!(
                "note: only the {MAX_ROWS} pairs of key and address with most requests are counted"
            ));
        }
        let mut uses = BTreeMap::<_, KeyUse>::new();
        for row in rows {
            let text = |name: &str| {
                let field = row.iter().find(|field| field.field() == Some(name));
                field.and_then(ResultField::value).unwrap_or_default()
            };
            // A number can have a fraction or an exponent.
            let number = |name: &str| text(name).parse::<f64>().unwrap_or_default() as u64;
            let last_request_at = UNIX_EPOCH + Duration::from_millis(number("last_at"));
            let key_use = uses.entry(text("used_key").to_owned()).or_default();
            let (requests, errors) = (number("requests"), number("errors"));
            key_use.add(requests, errors, last_request_at, text("address"));
        }
        Ok(uses)
    }

    /// Runs a query of Logs Insights on both logs.
    async fn query(&self, query: &str, since: SystemTime) -> Result<Vec<Vec<ResultField>>> {
        let query = self
            .client
            .start_query()
            .log_group_names(self.function_log)
            .log_group_names(self.api_log)
            .start_time(millis(since) / 1000)
            .end_time(millis(SystemTime::now()) / 1000)
            .query_string(query);
        let query = query.send().await.aws_context("cannot query the log")?;
        let id = query
            .query_id
            .context("CloudWatch Logs returned no query")?;
        loop {
            let results = self.client.get_query_results().query_id(&id).send().await;
            let results = results.aws_context("cannot query the log")?;
            match results.status {
                Some(QueryStatus::Scheduled | QueryStatus::Running) => sleep(QUERY_INTERVAL).await,
                Some(QueryStatus::Complete) => return Ok(results.results.unwrap_or_default()),
                status => {
                    bail!("the query of the log has ended as {status:?}: run the command again")
                }
            }
        }
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
