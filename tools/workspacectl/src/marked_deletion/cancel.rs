//! Cancels deletions.

use std::time::SystemTime;

use anyhow::{Result, bail};
use workspace_management::store::timestamp;

use super::Mark;
use crate::{
    context::Run,
    deployment::Deployment,
    record::Record,
    write::{Outcome, Write, change, remove, set},
};

/// The result of a cancel.
pub enum Cancel {
    /// The record has no mark.
    NotMarked,
    /// The mark was removed before anything was deleted.
    Cancelled,
    /// The mark was removed after a run had begun to delete children.
    CancelledHalfway {
        /// When the first run began.
        deleting_at: String,
        /// Whether each run that had begun has exported what it deletes.
        is_exported: bool,
    },
    /// The record was deleted first.
    TooLate,
}

impl Cancel {
    /// Describes a cancel of the deletion of `name`, such as `the team docs`, with the right words.
    /// Fails if the cancel came too late.
    pub(crate) fn describe(self, name: &str, mark: &Mark) -> Result<String> {
        let Mark {
            participle,
            children,
            ..
        } = mark;
        match self {
            Self::NotMarked => Ok(format!("{name} is not being {participle}")),
            Self::Cancelled => Ok(format!(
                "{name} is no longer being {participle}. Nothing was deleted"
            )),
            Self::CancelledHalfway {
                deleting_at,
                is_exported,
            } => {
                let advice = if is_exported {
                    "`restore` can copy them back from the export"
                } else {
                    "they were not exported"
                };
                Ok(format!(
                    "{name} is no longer being {participle}. Since {deleting_at}, {children} may have been deleted: {advice}"
                ))
            }
            Self::TooLate => bail!("{name} was already {participle}"),
        }
    }
}

/// Cancels the deletion of a record: removes its mark, so that no run deletes anything more. What
/// was deleted before stays deleted.
pub async fn cancel(
    deployment: &Deployment,
    run: &Run,
    mark: &Mark,
    record: &Record,
) -> Result<Cancel> {
    let mut record = record.clone();
    loop {
        if !record.has(mark.id) {
            return Ok(Cancel::NotMarked);
        }
        let [at, by] = mark.cancelled;
        let mut assignments = vec![
            set(at, timestamp(SystemTime::now())),
            set(by, &run.operator),
        ];
        for attribute in mark.attributes() {
            assignments.push(remove(attribute));
        }
        let write =
            Write::update(&record, assignments).if_unchanged(&record, &[mark.id, mark.deleting_at]);
        let refusal = match change(deployment, run, mark.cancel_verb, vec![write]).await? {
            Outcome::Done => {
                return Ok(match record.text(mark.deleting_at) {
                    None => Cancel::Cancelled,
                    Some(deleting_at) => Cancel::CancelledHalfway {
                        deleting_at: deleting_at.to_owned(),
                        is_exported: !record.has(mark.unexported_by),
                    },
                });
            }
            Outcome::Refused(refusal) => refusal,
        };
        match refusal.existing {
            Some(existing) => record = existing,
            None => return Ok(Cancel::TooLate),
        }
    }
}
