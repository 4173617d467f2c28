//! A list without duplicate entries.

use deserr::{Deserr, IntoValue, Sequence, Value, ValueKind, ValuePointerRef};

use crate::{
    body::{Violations, type_mismatch},
    error::{Rule, Violation},
};

/// The distinct entries of an array of 1 to 100 entries. Repeated entries are dropped, but two
/// different entries with the same `key` are a violation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UniqueList<T> {
    /// Each distinct entry, with the index of its first occurrence in the array.
    entries: Vec<(usize, T)>,
}

/// An entry of a [`UniqueList`], identified by its `key`.
pub(crate) trait Keyed: PartialEq {
    fn key(&self) -> &str;
}

impl<T: Keyed> UniqueList<T> {
    /// The maximum length. One DynamoDB transaction, which can have at most 100 actions, writes
    /// all entries.
    const MAX_ENTRIES: usize = 100;

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The distinct entries, in the order of their first occurrences.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, entry)| entry)
    }

    /// Converts the index of an entry in this list to its index in the client's array.
    pub(crate) fn index_in_array(&self, index: usize) -> usize {
        self.entries[index].0
    }
}

impl<T: Deserr<Violations> + Keyed> Deserr<Violations> for UniqueList<T> {
    fn deserialize_from_value<V: IntoValue>(
        value: Value<V>,
        location: ValuePointerRef,
    ) -> Result<Self, Violations> {
        let Value::Sequence(sequence) = value else {
            return Err(type_mismatch(&value, ValueKind::Sequence, location));
        };
        let length = sequence.len();
        if length == 0 {
            let empty = Violation::new(Rule::MinItems, "must have at least 1 entry").with_limit(1);
            return Err(Violations::new(location, [empty]));
        }
        let max = Self::MAX_ENTRIES;
        if length > max {
            let detail = format!("must have at most {max} entries, but has {length}");
            let too_long = Violation::new(Rule::MaxItems, detail).with_limit(max as i64);
            return Err(Violations::new(location, [too_long]));
        }
        let mut entries: Vec<(usize, T)> = Vec::with_capacity(length);
        let mut entry_violations = Vec::new();
        for (index, value) in sequence.into_iter().enumerate() {
            let entry_location = location.push_index(index);
            let entry = match T::deserialize_from_value(value.into_value(), entry_location) {
                Ok(entry) => entry,
                Err(violations) => {
                    entry_violations.push(violations);
                    continue;
                }
            };
            let mut earlier_entries = entries.iter();
            let duplicate = earlier_entries.find(|(_, earlier)| earlier.key() == entry.key());
            match duplicate {
                None => entries.push((index, entry)),
                Some((_, earlier)) if *earlier == entry => {}
                Some((earlier_index, _)) => {
                    let detail = format!("conflicts with the entry at index {earlier_index}");
                    let violation = Violation::new(Rule::Conflict, detail);
                    entry_violations.push(Violations::new(entry_location, [violation]));
                }
            }
        }
        match entry_violations.into_iter().reduce(Violations::merged_with) {
            Some(violations) => Err(violations),
            None => Ok(Self { entries }),
        }
    }
}
