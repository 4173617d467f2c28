//! Any bytes as the body of an operation. The first byte selects the operation.
#![no_main]

use std::sync::LazyLock;

use serde_json::{Value, value::to_raw_value};
use workspace_local::{demo::DEMO_KEY, events, gateway::http_event};

/// The path of each operation, sorted by the operation's name. The seeds in `ci/fuzz` use this
/// order.
static PATHS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut events: Vec<_> = events::all().collect();
    events.sort_by_key(|(operation, _)| operation.name());
    let path = |(_, event): (_, &str)| {
        let event: Value = serde_json::from_str(event).expect("JSON");
        event["rawPath"].as_str().expect("a path").to_owned()
    };
    events.into_iter().map(path).collect()
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((operation, body)) = bytes.split_first() else {
        return;
    };
    let path = &PATHS[usize::from(*operation) % PATHS.len()];
    let headers = [("authorization".to_owned(), DEMO_KEY.to_owned())].into();
    let event = http_event("POST", path, &headers, Some(body));
    fuzz::send(to_raw_value(&event).expect("JSON"));
});
