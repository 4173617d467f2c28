//! Paths with encoded characters get the responses of a stack.

use test_support::server::Server;
use workspace_local::demo::DEMO_KEY;

#[test]
fn an_encoded_path_gets_the_response_of_a_stack() {
    let server = Server::start(&[]);
    let models = r#"{"aIModelsSelectedToAddToOrg":[{"id":1,"modelid":"a"}]}"#;
    let voice = r#"{"type":"alloy","enabled":true}"#;
    for (path, body, status) in [
        ("org/acme/addModelsToOrg/chat%3Fbeta", models, 204),
        ("org/acme/addModelsToOrg/chat%2Fbeta", models, 404),
        ("bot/playground/b%37/voice", voice, 204),
        ("bot/playground/b%2537/voice", voice, 204),
        ("bot/playground/b%252537/voice", voice, 400),
        ("bot/playground/b%207/voice", voice, 400),
        // No route matches, so the function gets the path as it was sent, and decodes it.
        ("bot/playground/b%37/v%6Fice", voice, 204),
        ("bot/playground/b%2537/v%6Fice", voice, 400),
    ] {
        let response = server.post(&format!("/api/v1/{path}"), Some(DEMO_KEY), body);
        assert_eq!(response.status, status, "{path}: {}", response.body);
    }
}
