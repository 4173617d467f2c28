//! How many requests an operation sends to DynamoDB: a figure that no machine changes.

use serde_json::Value;
use workspace_local::events;

use crate::support::{Setting, World, service};

#[tokio::test]
async fn every_operation_takes_two_requests_at_first_and_then_one() {
    let world = World::new().await;
    world.know_the_demo_key().await;
    let mut counts = Vec::new();

    for (operation, text) in events::all() {
        let event: Value = serde_json::from_str(text).unwrap();
        let config = crate::support::config(&world.endpoint);
        let fresh = service(
            config.interceptor(world.sent.clone()),
            world.tables.clone(),
            &Setting::default(),
        );
        for _ in 0..3 {
            let answer =
                crate::support::send(&fresh, event.clone(), std::time::Duration::from_secs(10))
                    .await;
            assert_eq!(answer["statusCode"], 204, "{operation}: {answer}");
            counts.push((operation, world.sent.take().len()));
        }
    }

    let expected =
        events::all().flat_map(|(operation, _)| [2, 1, 1].map(|count| (operation, count)));
    assert_eq!(counts, expected.collect::<Vec<_>>());
}
