//! Arguments of `keys`: which keys, and when they expire.

use std::{
    collections::HashSet,
    io,
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result};
use aws_smithy_types::{DateTime, date_time::Format};
use workspace_management::{
    api_key::{API_KEY_PREFIX, ApiKey},
    values::trim,
};

use crate::{arguments::stdin, errors::UsageError, key_record::is_id};

/// The maximum overlap, which is how long a replaced key can stay valid: 30 days.
const MAX_OVERLAP: Duration = Duration::from_secs(30 * 86_400);

/// The time from the Unix epoch to the end of the year 9999, the last year in RFC 3339.
const END_OF_YEAR_9999: Duration = Duration::from_secs(253_402_300_800);

/// When a key expires.
#[derive(Debug, Clone, Copy)]
pub enum Expiry {
    /// The key never expires.
    Never,
    /// The key expires this long after it was created.
    After(Duration),
    /// The key expires at this time.
    At(SystemTime),
}

impl Expiry {
    /// When a key that is created at `now` expires. `None` means never.
    /// Fails if the time is in the past, or after the year 9999.
    pub(super) fn resolve(self, now: SystemTime) -> Result<Option<SystemTime>, &'static str> {
        let at = match self {
            Self::Never => return Ok(None),
            Self::After(duration) => now.checked_add(duration),
            Self::At(time) => Some(time),
        };
        let Some(at) = at.filter(|at| *at < SystemTime::UNIX_EPOCH + END_OF_YEAR_9999) else {
            return Err("the key would expire after the year 9999: choose an earlier expiry");
        };
        if at <= now {
            return Err("the key would already have expired: give a time in the future");
        }
        Ok(Some(at))
    }
}

/// Parses `never`, a duration such as `90d`, or a future date or time such as `2027-01-31`.
pub(super) fn parse_expiry(text: &str) -> Result<Expiry, &'static str> {
    const ADVICE: &str = "give a duration such as 90d or 12h, a date such as 2027-01-31, \
        a time such as 2027-01-31T18:00+01:00 or 2027-01-31T17:00Z, or `never`";
    let expiry = if text == "never" {
        Expiry::Never
    } else if let Ok(duration) = parse_duration(text) {
        Expiry::After(duration)
    } else {
        Expiry::At(parse_time(text).ok_or(ADVICE)?)
    };
    expiry.resolve(SystemTime::now())?;
    Ok(expiry)
}

/// Parses a time of RFC 3339, also without seconds. A date means the end of that day, in UTC.
fn parse_time(text: &str) -> Option<SystemTime> {
    const DATE_AND_MINUTES: usize = "2027-01-31T18:00".len();
    let text = match text.split_at_checked(DATE_AND_MINUTES) {
        None => format!("{text}T23:59:59Z"),
        Some((start, end)) if !end.starts_with(':') => format!("{start}:00{end}"),
        Some(_) => text.to_owned(),
    };
    let time = DateTime::from_str(&text, Format::DateTimeWithOffset).ok()?;
    SystemTime::try_from(time).ok()
}

/// Parses a duration such as `12h`. Rejects minutes and months, because `m` could mean either.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, &'static str> {
    match humantime::parse_duration(text) {
        Ok(duration) if !text.contains(['m', 'M']) => Ok(duration),
        _ => Err("give a duration such as 12h, 90d or 4w: minutes and months are not accepted"),
    }
}

pub(crate) fn parse_overlap(text: &str) -> Result<Duration, &'static str> {
    let overlap = parse_duration(text)?;
    if overlap > MAX_OVERLAP {
        return Err("a replaced key can stay valid for at most 30 days");
    }
    Ok(overlap)
}

pub(crate) fn parse_label(text: &str) -> Result<String, &'static str> {
    if text.chars().count() > 100 || text.contains(char::is_control) {
        return Err("a label has at most 100 characters, and no control characters");
    }
    Ok(text.to_owned())
}

/// The keys that a command works on.
#[derive(Debug, clap::Args)]
pub(crate) struct KeyArgs {
    /// Keys or their ids, or `-` to read them from standard input, one per line
    #[arg(value_name = "KEY|ID|-", required = true)]
    pub(super) keys_or_ids: Vec<String>,
}

/// Reads the distinct ids of the keys in the arguments and, if an argument is `-`, in standard
/// input. Fails if a key or an id is invalid. The error never repeats it, because it may be a
/// secret.
pub(crate) fn read_key_ids(keys_or_ids: &[String]) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for argument in keys_or_ids {
        if argument == "-" {
            ids.extend(read_key_ids_from_stdin()?);
        } else {
            ids.push(parse_key_id(trim(argument))?);
        }
    }
    let mut seen = HashSet::new();
    ids.retain(|id| seen.insert(id.clone()));
    Ok(ids)
}

fn read_key_ids_from_stdin() -> Result<Vec<String>> {
    let input = stdin("keys or their ids, one per line");
    let text = io::read_to_string(input).context("cannot read standard input")?;
    let mut ids = Vec::new();
    for (number, line) in (1..).zip(text.lines().map(trim)) {
        if line.is_empty() {
            continue;
        }
        let id = parse_key_id(line)
            .map_err(|error| UsageError(format!("line {number} of standard input: {error}")))?;
        ids.push(id);
    }
    if ids.is_empty() {
        return Err(UsageError("standard input contains no key".to_owned()).into());
    }
    Ok(ids)
}

fn parse_key_id(text: &str) -> Result<String, UsageError> {
    if let Some(key) = ApiKey::parse(text) {
        return Ok(key.id.to_owned());
    }
    if is_id(text) {
        return Ok(text.to_owned());
    }
    let message = if text.starts_with(API_KEY_PREFIX) {
        "the API key is incomplete or mistyped: copy all of it, or give its id from `keys list`"
    } else {
        "give an API key, or its id of 12 letters and digits from `keys list`"
    };
    Err(UsageError(message.to_owned()))
}
