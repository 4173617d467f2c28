//! The attributes that mark a record.

/// The names of the attributes of a mark.
pub struct Mark {
    pub(super) id: &'static str,
    pub(super) at: &'static str,
    pub(super) by: &'static str,
    /// When a run began to delete.
    pub(super) deleting_at: &'static str,
    /// Who began to delete without an export.
    pub(super) unexported_by: &'static str,
    /// The attributes that identify the record that the operator saw. The mark is set only if they
    /// have not changed. A cancel changes one of them, so that a late retry cannot set the mark again.
    pub(super) seen: &'static [&'static str],
    /// What a cancel sets, besides removing the mark: a time and the operator.
    pub(super) cancelled: [&'static str; 2],
    /// The words for the history and messages.
    pub(super) verb: &'static str,
    pub(super) cancel_verb: &'static str,
    pub(super) participle: &'static str,
    pub(super) children: &'static str,
}

/// The mark of a team that is being removed.
pub static REMOVING: Mark = Mark {
    id: "removing_id",
    at: "removing_at",
    by: "removing_by",
    deleting_at: "removing_deleting_at",
    unexported_by: "removing_unexported_by",
    seen: &["created_at", "request_id", "removal_cancelled_at"],
    cancelled: ["removal_cancelled_at", "removal_cancelled_by"],
    verb: "remove",
    cancel_verb: "cancel removal of",
    participle: "removed",
    children: "members",
};

/// The mark of an organization that is being erased. After a cancel, it is disabled.
pub(crate) static ERASING: Mark = Mark {
    id: "erasing_id",
    at: "erasing_at",
    by: "erasing_by",
    deleting_at: "erasing_deleting_at",
    unexported_by: "erasing_unexported_by",
    seen: &["request_id", "disabled_at"],
    cancelled: ["disabled_at", "disabled_by"],
    verb: "erase",
    cancel_verb: "cancel erasure of",
    participle: "erased",
    children: "records",
};

impl Mark {
    pub(super) fn attributes(&self) -> [&'static str; 5] {
        [
            self.id,
            self.at,
            self.by,
            self.deleting_at,
            self.unexported_by,
        ]
    }
}

/// Whether an attribute with this name belongs to a mark.
pub(crate) fn is_mark_attribute(name: &str) -> bool {
    let mut marks = [&REMOVING, &ERASING].into_iter();
    marks.any(|mark| mark.attributes().contains(&name))
}
