//! Any text as a key.
#![no_main]

use workspace_management::key::ApiKey;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Some(key) = ApiKey::parse(text) {
        assert!(text.starts_with(&format!("wsk_{}_", key.id())), "{text}");
        assert!(text.is_ascii() && text.len() == fuzz::KEY.len(), "{text}");
        assert!(key.digest().matches(&key.digest()));
    }
});
