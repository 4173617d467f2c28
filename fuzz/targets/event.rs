//! Any JSON as Lambda's event.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // Lambda's runtime rejects an event that is not JSON before the service sees it.
    if let Ok(event) = serde_json::from_slice(bytes) {
        fuzz::send(event);
    }
});
