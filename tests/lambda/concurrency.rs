//! Concurrent events, as Lambda Managed Instances send them.

use workspace_management::store::Table;

use crate::{
    function::{Function, create_data_store},
    support::TestApp,
};

#[tokio::test]
async fn the_function_handles_64_concurrent_events() {
    const REQUESTS: u16 = 640;
    let app = TestApp::new().await;
    let mut function = Function::start(&app, &[("AWS_LAMBDA_MAX_CONCURRENCY", "64")]).await;

    for number in 0..REQUESTS {
        let event = create_data_store(&format!("Papers {number}"), &app.anonymous());
        function.send(&number.to_string(), event);
    }
    let mut request_ids = Vec::new();
    for _ in 0..REQUESTS {
        let (request_id, response) = function.response().await;
        assert_eq!(response["statusCode"], 204, "{response}");
        request_ids.push(request_id.parse::<u16>().unwrap());
    }

    request_ids.sort_unstable();
    assert_eq!(request_ids, (0..REQUESTS).collect::<Vec<_>>());
    let data_stores = app.records(Table::DATA_STORES).await;
    assert_eq!(data_stores.len(), usize::from(REQUESTS));
}
