//! Any JSON as Lambda's event.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // What is no JSON does not pass Lambda's runtime.
    if let Ok(event) = serde_json::from_slice(bytes) {
        fuzz::send(event);
    }
});
