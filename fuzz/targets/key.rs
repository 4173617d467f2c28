//! Any text as an API key.
#![no_main]

use workspace_local::demo::DEMO_KEY;
use workspace_management::api_key::ApiKey;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Some(key) = ApiKey::parse(text) else {
        return;
    };
    assert!(text.starts_with(&format!("wsk_{}_", key.id())), "{text}");
    assert!(text.is_ascii() && text.len() == DEMO_KEY.len(), "{text}");
    let other_text = ApiKey::generate([0; 8], [[0; 16]; 2]);
    let other = ApiKey::parse(&other_text).expect("a well-formed key");
    let is_same_secret = text[17..61] == other_text[17..61];
    let matches = key.digest().matches(&other.digest());
    assert_eq!(matches, is_same_secret, "{text}");
});
