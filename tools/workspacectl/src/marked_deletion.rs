//! Deletes records together with their children: teams with their members, and an organization
//! with all of its records. `tools/workspacectl/tests/protocols` checks these steps:
//!
//! 1. Mark each record: store a random id in it. Once the function has read the mark, it adds no
//!    children, and does not create the record again.
//! 2. Wait, until everything that the function cached before the marks has expired, and its last
//!    writes have ended. Every run waits, because it cannot know when an earlier run set the mark.
//! 3. Export the records and their children, if an export was asked for.
//! 4. Check the mark again, and store that the deletion begins. An export fails if a run without an
//!    export has begun to delete, because it can lack what that run has deleted.
//! 5. Delete the children, in transactions that check the mark, until none are found.
//! 6. Delete the record, if it still has the mark.
//!
//! If a run is interrupted after step 1, the next run continues its work. Several runs at the same
//! time are safe too. [`cancel`] removes the mark, so that no run can delete anything more.

mod cancel;
mod delete;
mod mark;

use std::time::SystemTime;

use anyhow::{Context as _, Result, bail};
use workspace_management::store::timestamp;
use workspace_records::kinds::HISTORY;

pub(crate) use self::mark::{ERASING, is_mark_attribute};
pub use self::{
    cancel::{Cancel, cancel},
    mark::{Mark, REMOVING},
};

use self::delete::{Deleted, Marked};

use crate::{
    context::{Run, random_id},
    deployment::Deployment,
    export::ExportWriter,
    message::print_message,
    read::{self, Scope},
    record::Record,
    text::pluralize,
    wait::WaitArgs,
    write::{LongChange, Outcome, Write, set, set_once},
};

/// A record to delete.
#[derive(Debug, Clone)]
pub struct Parent {
    /// The record as the operator saw it or, once it is marked, with the mark.
    pub record: Record,
    /// Where its children are.
    pub(crate) children: Vec<Scope>,
    /// What happened to it. `None` before that, or if the deletion failed.
    pub outcome: Option<DeletionOutcome>,
}

impl Parent {
    pub(crate) fn new(record: Record, children: Vec<Scope>) -> Self {
        Self {
            record,
            children,
            outcome: None,
        }
    }
}

/// What happened to a record that was to be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletionOutcome {
    /// This run deleted so many of its children, and this or a concurrent run deleted the record. A
    /// concurrent run may count the same children.
    Deleted(usize),
    /// The record was removed, created again or cancelled before it could be marked.
    Changed,
    /// Another operator cancelled the deletion, after this run had deleted so many children.
    Cancelled(usize),
}

/// A deletion of records of one kind.
pub(crate) struct MarkedDeletion<'a> {
    pub(crate) deployment: &'a Deployment,
    pub(crate) run: &'a Run,
    pub(crate) mark: &'static Mark,
    pub(crate) wait: WaitArgs,
    pub(crate) export: Option<ExportWriter>,
    /// The command that cancels the deletion.
    pub(crate) cancel_command: String,
}

impl MarkedDeletion<'_> {
    /// Deletes records and their children, and sets the outcome of each. If this fails, a later run
    /// can continue.
    pub(crate) async fn execute(mut self, parents: &mut [Parent]) -> Result<()> {
        let keys: Vec<_> = parents.iter().map(|it| it.record.key.clone()).collect();
        let change = LongChange::begin(self.deployment, self.run, self.mark.verb, &keys).await?;
        let mut marked = Vec::new();
        for parent in parents {
            match self.set_mark(&change, &parent.record).await? {
                Some((id, record)) => {
                    parent.record = record;
                    let mark = self.mark;
                    marked.push(Marked { parent, mark, id });
                }
                None => {
                    let deleted = Deleted::default();
                    deleted
                        .end(&change, parent, DeletionOutcome::Changed)
                        .await?;
                }
            }
        }
        if marked.is_empty() {
            return Ok(());
        }
        if self.wait.seconds > 0 {
            self.report(&format!(
                "nothing is deleted during the wait: to cancel, press Ctrl-C and run `{}`",
                self.cancel_command
            ));
        }
        self.wait.wait(self.deployment).await;
        let exported = self.write_export(&marked).await?;
        let mut begun = Vec::new();
        for marked in marked {
            match self.begin(&change, &marked).await? {
                None => begun.push(marked),
                Some(outcome) => {
                    let deleted = Deleted::default();
                    deleted.end(&change, marked.parent, outcome).await?;
                }
            }
        }
        if let Some(export) = &mut self.export
            && !begun.is_empty()
        {
            export.persist()?;
            self.report(&format!("exported {}", pluralize(exported, "record")));
        }
        for marked in begun {
            marked.delete(self.deployment, &change).await?;
        }
        Ok(())
    }

    /// Marks a record, unless it has a mark already. Returns the id of the mark and the record, or
    /// `None` if the record has changed.
    async fn set_mark(
        &self,
        change: &LongChange<'_>,
        record: &Record,
    ) -> Result<Option<(String, Record)>> {
        let Mark {
            id, at, by, seen, ..
        } = *self.mark;
        let assignments = [
            set(id, random_id()?),
            set(at, timestamp(SystemTime::now())),
            set(by, &self.run.operator),
        ];
        let write = Write::update(record, assignments)
            .if_missing(id)
            .if_unchanged(record, seen);
        let marked = match change.transact(vec![write]).await? {
            // Reads the whole record, which others may have edited.
            Outcome::Done => read::find(self.deployment, &record.key).await?,
            // Marked by another run, or by an earlier attempt whose response was lost.
            Outcome::Refused(refusal) => refusal.existing,
        };
        let is_marked = |marked: &Record| marked.has(id) && marked.has_same(record, seen);
        let Some(marked) = marked.filter(is_marked) else {
            return Ok(None);
        };
        let stored_id = marked.text(id).map(str::to_owned);
        let stored_id = stored_id.with_context(|| format!("another program has changed {id}"))?;
        Ok(Some((stored_id, marked)))
    }

    /// Exports the records and their children, if an export was asked for. Returns how many.
    async fn write_export(&mut self, marked: &[Marked<'_>]) -> Result<usize> {
        let Some(export) = &mut self.export else {
            return Ok(0);
        };
        let mut count = marked.len();
        for Marked { parent, .. } in marked {
            export.write(parent.record.clone())?;
            for scope in parent.children.iter().filter(|it| it.table != HISTORY) {
                count += export.write_scope(self.deployment, scope).await?;
            }
        }
        Ok(count)
    }

    fn report(&self, text: &str) {
        if !self.wait.is_silent {
            print_message(&format!("{}: {text}", self.deployment));
        }
    }

    /// Checks the mark and stores that the deletion begins. Returns an outcome if there is nothing
    /// left to do. Fails if an export can be incomplete.
    async fn begin(
        &self,
        change: &LongChange<'_>,
        marked: &Marked<'_>,
    ) -> Result<Option<DeletionOutcome>> {
        let Mark {
            deleting_at,
            unexported_by,
            ..
        } = *self.mark;
        let key = &marked.parent.record.key;
        let mut assignments = vec![set_once(deleting_at, timestamp(SystemTime::now()))];
        if self.export.is_none() {
            assignments.push(set_once(unexported_by, &self.run.operator));
        }
        let record = &marked.parent.record;
        let mut write = Write::update(record, assignments).if_equal(self.mark.id, &marked.id);
        if self.export.is_some() {
            write = write.if_missing(unexported_by);
        }
        let Outcome::Refused(refusal) = change.transact(vec![write]).await? else {
            return Ok(None);
        };
        let existing = refusal.existing.as_ref();
        if let Some(existing) =
            existing.filter(|existing| existing.text(self.mark.id) == Some(&marked.id))
        {
            let operator = existing.text(unexported_by).unwrap_or("another operator");
            bail!(
                "{operator} is deleting {key} without an export, and may have deleted records before this run could export them"
            );
        }
        let outcome = marked.outcome_if_refused(&refusal, &Deleted::default());
        if self.export.is_some() && !matches!(outcome, DeletionOutcome::Cancelled(_)) {
            bail!(
                "another run has deleted {key}, and may have deleted records before this run could export them: keep the export of that run"
            );
        }
        Ok(Some(outcome))
    }
}
