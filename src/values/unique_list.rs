//! A list in which no entry occurs twice.

use deserr::{Deserr, IntoValue, Sequence, Value, ValueKind, ValuePointerRef};

use crate::{
    body::{Violations, type_mismatch},
    error::{Rule, Violation},
};

/// 1 to 100 entries of an array. Repeated entries are dropped; different entries with the same key
/// are a violation. DynamoDB allows 100 actions in a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UniqueList<T> {
    /// Each entry, with the index in the array at which it occurs first.
    entries: Vec<(usize, T)>,
}

/// An entry of a [`UniqueList`]. Two entries with the same key must be equal.
pub(crate) trait Keyed: PartialEq {
    fn key(&self) -> &str;
}

impl<T: Keyed> UniqueList<T> {
    const MAX: usize = 100;

    /// The entries in the order in which they were sent.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &T> {
        self.entries.iter().map(|(_, entry)| entry)
    }

    /// Where in the array the entry at an index of this list occurs first.
    pub(crate) fn first_index(&self, index: usize) -> usize {
        self.entries[index].0
    }
}

impl<T: Deserr<Violations> + Keyed> Deserr<Violations> for UniqueList<T> {
    fn deserialize_from_value<V: IntoValue>(
        value: Value<V>,
        at: ValuePointerRef,
    ) -> Result<Self, Violations> {
        let Value::Sequence(sequence) = value else {
            return Err(type_mismatch(&value, ValueKind::Sequence, at));
        };
        let (length, max) = (sequence.len(), Self::MAX);
        if length == 0 {
            let empty = Violation::new(Rule::MinItems, "must have at least 1 entry").with_limit(1);
            return Err(Violations::new(at, [empty]));
        }
        if length > max {
            let detail = format!("must have at most {max} entries, but has {length}");
            let too_long = Violation::new(Rule::MaxItems, detail).with_limit(max as i64);
            return Err(Violations::new(at, [too_long]));
        }
        let mut entries: Vec<(usize, T)> = Vec::with_capacity(length);
        let mut violations = Vec::new();
        for (index, value) in sequence.into_iter().enumerate() {
            let place = at.push_index(index);
            let entry = match T::deserialize_from_value(value.into_value(), place) {
                Ok(entry) => entry,
                Err(found) => {
                    violations.push(found);
                    continue;
                }
            };
            let mut earlier = entries.iter();
            match earlier.find(|(_, other)| other.key() == entry.key()) {
                None => entries.push((index, entry)),
                Some((_, same)) if *same == entry => {}
                Some((first, _)) => {
                    let detail = format!("conflicts with the entry at index {first}");
                    let violation = Violation::new(Rule::Conflict, detail);
                    violations.push(Violations::new(place, [violation]));
                }
            }
        }
        match violations.into_iter().reduce(Violations::and) {
            Some(violations) => Err(violations),
            None => Ok(Self { entries }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{body, error::Error};

    #[derive(Debug, PartialEq, Deserr)]
    #[deserr(error = Violations)]
    struct Entry {
        key: String,
        value: bool,
    }

    impl Keyed for Entry {
        fn key(&self) -> &str {
            &self.key
        }
    }

    fn entry(key: &str, value: bool) -> String {
        format!(r#"{{"key": "{key}", "value": {value}}}"#)
    }

    /// The keys of the list, or its violations.
    fn parse(entries: &[String]) -> Result<Vec<String>, Vec<String>> {
        let body = format!("[{}]", entries.join(","));
        match body::parse::<UniqueList<Entry>>(body.as_bytes()) {
            Ok(list) => Ok(list.iter().map(|entry| entry.key.clone()).collect()),
            Err(Error::InvalidBody(violations)) => {
                let text =
                    |violation: &Violation| format!("{} {}", violation.pointer, violation.detail);
                Err(violations.iter().map(text).collect())
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn equal_entries_are_collapsed_and_the_order_is_kept() {
        let entries = [
            entry("b", true),
            entry("a", true),
            entry("b", true),
            entry("c", false),
        ];
        assert_eq!(parse(&entries).unwrap(), ["b", "a", "c"]);
    }

    #[test]
    fn each_entry_has_the_index_at_which_it_was_sent_first() {
        let entries = ["b", "a", "b", "c"].map(|key| entry(key, true)).join(",");
        let list: UniqueList<Entry> = body::parse(format!("[{entries}]").as_bytes()).unwrap();
        assert_eq!([0, 1, 2].map(|index| list.first_index(index)), [0, 1, 3]);
    }

    #[test]
    fn a_list_has_1_to_100_entries() {
        let entries: Vec<_> = (0..101)
            .map(|number| entry(&number.to_string(), true))
            .collect();
        assert_eq!(parse(&entries[..100]).unwrap().len(), 100);
        assert_eq!(
            parse(&entries).unwrap_err(),
            ["# must have at most 100 entries, but has 101"]
        );
        assert_eq!(parse(&[]).unwrap_err(), ["# must have at least 1 entry"]);
    }

    #[test]
    fn every_invalid_entry_is_reported_with_its_index_as_sent() {
        let entries = [
            entry("a", true),
            entry("a", true),
            "{}".to_owned(),
            entry("a", false),
            entry("b", true),
            entry("b", false),
        ];
        assert_eq!(
            parse(&entries).unwrap_err(),
            [
                "#/2/key is required",
                "#/2/value is required",
                "#/3 conflicts with the entry at index 0",
                "#/5 conflicts with the entry at index 4",
            ]
        );
    }
}
