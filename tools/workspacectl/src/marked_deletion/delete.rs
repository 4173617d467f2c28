//! Deletes a record that has a mark, and its children.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use workspace_management::records::Table;
use workspace_records::kinds::{HISTORY, Kind};

use super::{DeletionOutcome, Mark, Parent};
use crate::{
    deployment::Deployment,
    record::{CREATION, Record},
    write::{Ending, LongChange, MAX_WRITES, Outcome, Refusal, Write},
};

/// A record that has a mark with this id.
pub(super) struct Marked<'a> {
    pub(super) parent: &'a mut Parent,
    pub(super) mark: &'static Mark,
    pub(super) id: String,
}

/// Which children of a record a run has deleted.
#[derive(Debug, Default)]
pub(super) struct Deleted {
    /// By kind. Does not count entries of the history.
    counts: BTreeMap<&'static str, usize>,
    /// The ids of API keys, including those that earlier runs and erasures have deleted.
    key_ids: BTreeSet<String>,
}

impl Deleted {
    fn add(&mut self, table: Table, children: &[Record]) {
        if table == Table::API_KEYS {
            let ids = children.iter().map(|child| child.key.id());
            self.key_ids.extend(ids);
        }
        if table == HISTORY {
            self.key_ids.extend(children.iter().flat_map(key_ids_in));
        } else {
            *self.counts.entry(Kind::of(table).plural).or_default() += children.len();
        }
    }

    fn total(&self) -> usize {
        self.counts.values().sum()
    }

    /// Stores the entry of the end, and sets the outcome.
    pub(super) async fn end(
        &self,
        change: &LongChange<'_>,
        parent: &mut Parent,
        outcome: DeletionOutcome,
    ) -> Result<()> {
        let ending = self.ending(&parent.record, outcome);
        change.end(None, ending).await?.done()?;
        parent.outcome = Some(outcome);
        Ok(())
    }

    fn ending<'a>(&'a self, record: &'a Record, outcome: DeletionOutcome) -> Ending<'a> {
        Ending {
            record,
            result: match outcome {
                DeletionOutcome::Deleted(_) => "done",
                DeletionOutcome::Changed => "changed",
                DeletionOutcome::Cancelled(_) => "cancelled",
            },
            counts: self.counts.clone(),
            key_ids: &self.key_ids,
        }
    }
}

/// The ids of the API keys that an entry of the history is about.
fn key_ids_in(entry: &Record) -> impl Iterator<Item = String> {
    let attribute = |name| entry.item.get(name);
    let key = attribute("key").and_then(|key| key.as_m().ok()?.get("key_id"));
    let erased = attribute("erased_keys").and_then(|keys| keys.as_l().ok());
    let ids = key.into_iter().chain(erased.into_iter().flatten());
    ids.filter_map(|id| id.as_s().ok().cloned())
}

impl Marked<'_> {
    /// Reads and deletes the children, repeatedly, until fresh reads find none. Then deletes the
    /// record. Sets the outcome.
    pub(super) async fn delete(
        self,
        deployment: &Deployment,
        change: &LongChange<'_>,
    ) -> Result<()> {
        let mut deleted = Deleted::default();
        loop {
            let mut found = 0;
            for scope in &self.parent.children {
                let mut pages = scope.pages(deployment, None);
                while let Some(page) = pages.next().await? {
                    found += page.len();
                    // One write is the check.
                    for children in page.chunks(MAX_WRITES - 1) {
                        let mut writes =
                            vec![self.if_marked(Write::check(&self.parent.record.key))];
                        for child in children {
                            writes.push(Write::delete(child));
                        }
                        if let Outcome::Refused(refusal) = change.transact(writes).await? {
                            let outcome = self.outcome_if_refused(&refusal, &deleted);
                            return deleted.end(change, self.parent, outcome).await;
                        }
                        deleted.add(scope.table, children);
                    }
                }
            }
            if found == 0 {
                break;
            }
        }
        let delete = self.if_marked(Write::delete(&self.parent.record));
        let outcome = DeletionOutcome::Deleted(deleted.total());
        let ending = deleted.ending(&self.parent.record, outcome);
        match change.end(Some(delete), ending).await? {
            Outcome::Done => self.parent.outcome = Some(outcome),
            Outcome::Refused(refusal) => {
                let outcome = self.outcome_if_refused(&refusal, &deleted);
                deleted.end(change, self.parent, outcome).await?;
            }
        }
        Ok(())
    }

    fn if_marked(&self, write: Write) -> Write {
        write.if_equal(self.mark.id, &self.id)
    }

    /// The outcome if a write was refused because the record has lost its mark.
    pub(super) fn outcome_if_refused(
        &self,
        refusal: &Refusal,
        deleted: &Deleted,
    ) -> DeletionOutcome {
        let count = deleted.total();
        match &refusal.existing {
            Some(existing) if existing.has_same(&self.parent.record, &CREATION) => {
                DeletionOutcome::Cancelled(count)
            }
            // Another run has finished. Since then, the record may have been created again.
            _ => DeletionOutcome::Deleted(count),
        }
    }
}
