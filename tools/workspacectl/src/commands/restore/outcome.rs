//! What happened to the records of a restore.

use std::collections::BTreeMap;

/// The outcome of copying a record.
pub(super) enum CopyOutcome {
    Copied,
    /// The record exists with the same content.
    Exists,
    /// The existing record has different values of these attributes and is kept.
    Differs(String),
    /// The record was not copied, for this reason.
    Skipped(&'static str),
}

/// The number of records by outcome.
#[derive(Default, Clone, Copy)]
pub(super) struct Counts {
    pub(super) copied: usize,
    pub(super) existing: usize,
    pub(super) different: usize,
    pub(super) skipped: usize,
}

impl Counts {
    pub(super) fn add(&mut self, outcome: &CopyOutcome) {
        match outcome {
            CopyOutcome::Copied => self.copied += 1,
            CopyOutcome::Exists => self.existing += 1,
            CopyOutcome::Differs(_) => self.different += 1,
            CopyOutcome::Skipped(_) => self.skipped += 1,
        }
    }

    pub(super) fn total<'a>(counts: impl IntoIterator<Item = &'a Self>) -> Self {
        counts.into_iter().fold(Self::default(), |sum, it| Self {
            copied: sum.copied + it.copied,
            existing: sum.existing + it.existing,
            different: sum.different + it.different,
            skipped: sum.skipped + it.skipped,
        })
    }

    /// The counts for the history.
    pub(super) fn to_map(self) -> BTreeMap<&'static str, usize> {
        BTreeMap::from([
            ("copied", self.copied),
            ("existing", self.existing),
            ("different", self.different),
            ("skipped", self.skipped),
        ])
    }
}
