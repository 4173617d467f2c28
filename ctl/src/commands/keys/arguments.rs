//! The arguments of `keys`: which key, and until when.

use std::{
    collections::HashSet,
    io::{self, IsTerminal as _},
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result};
use workspace_management::api_key::ApiKey;

use crate::usage::UsageError;

/// How long a replaced key can stay valid: 30 days.
const MAX_OVERLAP: Duration = Duration::from_secs(30 * 86_400);

/// The end of the year 9999, the last one in RFC 3339.
const END_OF_TIME: Duration = Duration::from_secs(253_402_300_800);

/// When a key expires.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expiry {
    Never,
    After(Duration),
    At(SystemTime),
}

impl Expiry {
    /// The time of an expiry, as seen from a key that is created now. `None` means never.
    ///
    /// # Errors
    /// If it is in the past, or after the year 9999.
    pub(crate) fn time(self, now: SystemTime) -> Result<Option<SystemTime>, UsageError> {
        let at = match self {
            Self::Never => return Ok(None),
            Self::After(duration) => now.checked_add(duration),
            Self::At(time) => Some(time),
        };
        let is_before_end = |at: &SystemTime| *at < SystemTime::UNIX_EPOCH + END_OF_TIME;
        let at = at.filter(is_before_end).ok_or_else(|| {
            UsageError(
                "the key would expire after the year 9999: use a shorter duration".to_owned(),
            )
        })?;
        if at <= now {
            let message = "the key would be expired already: give a time in the future";
            return Err(UsageError(message.to_owned()));
        }
        Ok(Some(at))
    }
}

/// Parses `never`, a duration such as `90d`, or a date or time such as `2027-01-31`.
pub(crate) fn expiry(text: &str) -> Result<Expiry, &'static str> {
    if text == "never" {
        return Ok(Expiry::Never);
    }
    if let Ok(duration) = duration(text) {
        return Ok(Expiry::After(duration));
    }
    // A date is the start of the day, in UTC.
    let time = humantime::parse_rfc3339(text)
        .or_else(|_| humantime::parse_rfc3339(&format!("{text}T00:00:00Z")));
    time.map(Expiry::At)
        .map_err(|_| "give a duration such as 90d or 12h, a date such as 2027-01-31, or `never`")
}

/// Parses a duration, such as `12h`. Minutes and months are left out, because `m` could be either.
pub(crate) fn duration(text: &str) -> Result<Duration, &'static str> {
    let duration = humantime::parse_duration(text).ok();
    duration
        .filter(|_| !text.contains(['m', 'M']))
        .ok_or("give a duration such as 12h, 90d or 4w")
}

pub(crate) fn overlap(text: &str) -> Result<Duration, &'static str> {
    let overlap = duration(text)?;
    if overlap > MAX_OVERLAP {
        return Err("a replaced key can stay valid for at most 30 days");
    }
    Ok(overlap)
}

pub(crate) fn label(text: &str) -> Result<String, &'static str> {
    if text.chars().count() > 100 {
        return Err("a label has at most 100 characters");
    }
    if text.contains(char::is_control) {
        return Err("a label must not contain control characters");
    }
    Ok(text.to_owned())
}

/// The keys that a command works on.
#[derive(Debug, clap::Args)]
pub(crate) struct Keys {
    /// Keys or their ids, or `-` to read them from standard input, one per line
    #[arg(value_name = "KEY|ID|-", required = true)]
    pub(super) keys: Vec<String>,
}

/// The ids of the keys in arguments and, for `-`, in standard input, without duplicates.
///
/// # Errors
/// A [`UsageError`], which never contains the argument: it may be a secret.
pub(super) fn key_ids(arguments: &[String]) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for argument in arguments {
        if argument == "-" {
            ids.extend(read_key_ids()?);
        } else {
            ids.push(key_id(argument)?);
        }
    }
    let mut seen = HashSet::new();
    ids.retain(|id| seen.insert(id.clone()));
    Ok(ids)
}

fn read_key_ids() -> Result<Vec<String>> {
    if io::stdin().is_terminal() {
        eprintln!("enter keys or their ids, one per line, and then press Ctrl-D");
    }
    let text = io::read_to_string(io::stdin()).context("cannot read standard input")?;
    let mut ids = Vec::new();
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.is_empty() {
            continue;
        }
        let id = key_id(line).map_err(|UsageError(message)| {
            UsageError(format!("line {number} of standard input: {message}"))
        })?;
        ids.push(id);
    }
    if ids.is_empty() {
        return Err(UsageError("standard input contains no key".to_owned()).into());
    }
    Ok(ids)
}

fn key_id(text: &str) -> Result<String, UsageError> {
    if let Some(key) = ApiKey::parse(text) {
        return Ok(key.id.to_owned());
    }
    if text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(text.to_owned());
    }
    let message = if text.starts_with("wsk_") {
        "the API key is incomplete or mistyped: copy all of it, or give its id from `keys list`"
    } else {
        "give an API key, or the id of one from `keys list`, which has 12 letters and digits"
    };
    Err(UsageError(message.to_owned()))
}
