//! The arguments of `keys`: which key, and until when.

use std::{
    io::{self, IsTerminal as _},
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result};
use workspace_management::api_key::ApiKey;

use crate::{
    confirmation::Confirmation,
    usage::{UsageError, identifier},
};

/// In seconds.
const DAY: u64 = 86_400;

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

/// Parses a duration in seconds, hours, days or weeks. Minutes and months are left out, because `m`
/// could be either.
pub(crate) fn duration(text: &str) -> Result<Duration, &'static str> {
    const ERROR: &str = "give a duration such as 12h, 90d or 4w";
    let (number, unit) = text.split_at(text.trim_end_matches(char::is_alphabetic).len());
    let seconds = match unit {
        "s" => 1,
        "h" => 3_600,
        "d" => DAY,
        "w" => 7 * DAY,
        _ => return Err(ERROR),
    };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let count: u64 = number.parse().ok().filter(|_| is_number).ok_or(ERROR)?;
    let seconds = count.checked_mul(seconds).ok_or(ERROR)?;
    Ok(Duration::from_secs(seconds))
}

pub(crate) fn overlap(text: &str) -> Result<Duration, &'static str> {
    let overlap = duration(text)?;
    match overlap.as_secs() <= 30 * DAY {
        true => Ok(overlap),
        false => Err("a replaced key can stay valid for at most 30 days"),
    }
}

pub(crate) fn label(text: &str) -> Result<String, &'static str> {
    if text.chars().count() > 100 {
        return Err("a label has at most 100 characters");
    }
    match text.contains(char::is_control) {
        true => Err("a label must not contain control characters"),
        false => Ok(text.to_owned()),
    }
}

/// The help of an argument that names keys.
pub(super) const KEYS_HELP: &str =
    "The key, its id, or `-` to read keys and ids from standard input, one per line";

/// The keys that a command works on.
#[derive(Debug, clap::Args)]
pub(crate) struct KeySelection {
    #[arg(value_name = "KEY|ID|-", help = KEYS_HELP, required_unless_present = "all", conflicts_with = "all")]
    key: Option<String>,
    /// Use all keys of the organization in --org
    #[arg(long, requires = "org")]
    all: bool,
    /// The organization whose keys --all uses
    #[arg(long, requires = "all", value_parser = identifier)]
    org: Option<String>,
    #[command(flatten)]
    pub(crate) confirmation: Confirmation,
}

/// What a [`KeySelection`] selects.
pub(crate) enum Selected<'a> {
    /// The keys with these ids.
    Keys(Vec<String>),
    /// The keys of this organization.
    AllOf(&'a str),
}

impl KeySelection {
    /// The keys.
    ///
    /// # Errors
    /// A [`UsageError`], which never contains the argument: it may be a secret.
    pub(crate) fn selected(&self) -> Result<Selected<'_>> {
        match (&self.key, &self.org) {
            (Some(key), _) => Ok(Selected::Keys(key_ids(key)?)),
            (None, Some(org)) => {
                self.confirmation.check()?;
                Ok(Selected::AllOf(org))
            }
            (None, None) => Err(UsageError("give a key, or --all with --org".to_owned()).into()),
        }
    }
}

/// The ids of the keys in an argument or, for `-`, in standard input, without duplicates.
///
/// # Errors
/// A [`UsageError`], which never contains the argument: it may be a secret.
pub(super) fn key_ids(argument: &str) -> Result<Vec<String>> {
    if argument != "-" {
        return Ok(vec![key_id(argument)?]);
    }
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
        if !ids.contains(&id) {
            ids.push(id);
        }
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
    let is_id = text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_id {
        return Ok(text.to_owned());
    }
    let message = match text.starts_with("wsk_") {
        true => {
            "the API key is incomplete or mistyped: copy all of it, or give its id from `keys list`"
        }
        false => {
            "give an API key, or the id of one from `keys list`, which has 12 letters and digits"
        }
    };
    Err(UsageError(message.to_owned()))
}
