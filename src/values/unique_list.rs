//! A list without duplicate entries.

use deserr::{Deserr, IntoValue, Sequence, Value, ValueKind, ValuePointerRef};

use crate::{
    body::{Violations, type_mismatch},
    error::{Rule, Violation},
};

/// The distinct entries of an array of 1 to 100 entries. Two different entries with the same key are a
/// violation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UniqueList<T> {
    /// Each distinct entry, with the index of its first occurrence in the array.
    entries: Vec<(usize, T)>,
}

/// An entry of a [`UniqueList`], identified by its key.
pub(crate) trait Keyed: PartialEq {
    fn key(&self) -> &str;
}

impl<T: Keyed> UniqueList<T> {
    /// The maximum length: the entries are written in one DynamoDB transaction of at most 100 actions.
    const MAX: usize = 100;

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The distinct entries, in the order of their first occurrences.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, entry)| entry)
    }

    /// Where an entry of this list occurs first in the sent array.
    pub(crate) fn sent_index(&self, unique_index: usize) -> usize {
        self.entries[unique_index].0
    }
}

impl<T: Deserr<Violations> + Keyed> Deserr<Violations> for UniqueList<T> {
    fn deserialize_from_value<V: IntoValue>(
        value: Value<V>,
        place: ValuePointerRef,
    ) -> Result<Self, Violations> {
        let Value::Sequence(sequence) = value else {
            return Err(type_mismatch(&value, ValueKind::Sequence, place));
        };
        let length = sequence.len();
        if length == 0 {
            let empty = Violation::new(Rule::MinItems, "must have at least 1 entry").with_limit(1);
            return Err(Violations::new(place, [empty]));
        }
        if length > Self::MAX {
            let detail = format!("must have at most {} entries, but has {length}", Self::MAX);
            let too_long = Violation::new(Rule::MaxItems, detail).with_limit(Self::MAX as i64);
            return Err(Violations::new(place, [too_long]));
        }
        let mut entries: Vec<(usize, T)> = Vec::with_capacity(length);
        let mut violations = Vec::new();
        for (index, value) in sequence.into_iter().enumerate() {
            let entry_place = place.push_index(index);
            let entry = match T::deserialize_from_value(value.into_value(), entry_place) {
                Ok(entry) => entry,
                Err(found) => {
                    violations.push(found);
                    continue;
                }
            };
            match entries
                .iter()
                .find(|(_, earlier)| earlier.key() == entry.key())
            {
                None => entries.push((index, entry)),
                Some((_, earlier)) if *earlier == entry => {}
                Some((earlier_index, _)) => {
                    let detail = format!("conflicts with the entry at index {earlier_index}");
                    let violation = Violation::new(Rule::Conflict, detail);
                    violations.push(Violations::new(entry_place, [violation]));
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
            Err(Error::InvalidBody(violations)) => Err(violations
                .iter()
                .map(|violation| format!("{} {}", violation.pointer, violation.detail))
                .collect()),
            Err(error) => panic!("{error:?}"),
        }
    }

    #[test]
    fn duplicate_entries_are_dropped_and_the_order_is_kept() {
        let entries = ["b", "a", "b", "c"].map(|key| entry(key, true));
        assert_eq!(parse(&entries).unwrap(), ["b", "a", "c"]);
    }

    #[test]
    fn the_sent_index_of_an_entry_is_that_of_its_first_occurrence() {
        let entries = ["b", "a", "b", "c"].map(|key| entry(key, true)).join(",");
        let list: UniqueList<Entry> = body::parse(format!("[{entries}]").as_bytes()).unwrap();
        assert_eq!([0, 1, 2].map(|index| list.sent_index(index)), [0, 1, 3]);
    }

    #[test]
    fn a_list_has_1_to_100_entries() {
        let entries: Vec<_> = (0..101)
            .map(|number| entry(&number.to_string(), true))
            .collect();
        assert_eq!(parse(&entries[..100]).unwrap().len(), 100);
        let details = parse(&entries).unwrap_err();
        assert_eq!(details, ["# must have at most 100 entries, but has 101"]);
        assert_eq!(parse(&[]).unwrap_err(), ["# must have at least 1 entry"]);
    }

    #[test]
    fn every_invalid_entry_is_reported_with_its_index_in_the_sent_array() {
        let [a, b] = ["a", "b"].map(|key| entry(key, true));
        let [different_a, different_b] = ["a", "b"].map(|key| entry(key, false));
        let entries = [a.clone(), a, "{}".to_owned(), different_a, b, different_b];
        let expected = [
            "#/2/key is required",
            "#/2/value is required",
            "#/3 conflicts with the entry at index 0",
            "#/5 conflicts with the entry at index 4",
        ];
        assert_eq!(parse(&entries).unwrap_err(), expected);
    }
}
