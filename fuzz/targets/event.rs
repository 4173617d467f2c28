//! Any JSON as Lambda's event.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // The Lambda runtime rejects an event that is not JSON before it calls the service.
    if let Ok(event) = serde_json::from_slice(bytes) {
        fuzz::send(event);
    }
});
