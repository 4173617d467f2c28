//! Any bytes as the body of an operation, which the first of them picks.
#![no_main]

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{json, value::to_raw_value};

const PATHS: [&str; 6] = [
    "/api/v1/org/acme/addModelsToOrg/chat",
    "/api/v1/org/acme/dataStores/create",
    "/api/v1/project/acme/apollo/research-team/addUsersToTheTeam",
    "/api/v1/project/acme/apollo/createNewTeamOnProject",
    "/api/v1/project/acme/apollo/createLoggingInstance",
    "/api/v1/bot/playground/bot-7/voice",
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((operation, body)) = bytes.split_first() else {
        return;
    };
    let event = json!({
        "version": "2.0",
        "rawPath": PATHS[usize::from(*operation) % PATHS.len()],
        "headers": { "authorization": fuzz::KEY },
        "requestContext": { "http": { "method": "POST" }, "requestId": "request", "stage": "$default" },
        "body": STANDARD.encode(body),
        "isBase64Encoded": true,
    });
    fuzz::send(to_raw_value(&event).expect("JSON"));
});
