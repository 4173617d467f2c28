//! Many concurrent callers on the same records.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::future::join_all;
use serde_json::{Value, json};
use workspace_management::{operation::Operation, store::Table};

use crate::{
    operations::{Sample, Values, Write},
    support::{TestApp, iterations, key_id},
};

/// The number of concurrent callers.
const CALLERS: usize = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_additions_to_a_team_lose_no_member() {
    let rounds = iterations(10, 60);
    let app = Arc::new(TestApp::new().await);
    let key = app.issue_key("acme", |_| {}).await;
    app.insert_demo_team().await;
    let path = "/api/v1/project/acme/apollo/research-team/addUsersToTheTeam";
    let tasks = (0..CALLERS).map(|caller| {
        let (app, key) = (app.clone(), key.clone());
        tokio::spawn(async move {
            // Each round adds a user whom all callers add, and one whom only this caller adds.
            for round in 0..rounds {
                let users = [format!("all-{round}"), format!("{caller}-{round}")];
                let users = users.map(|user| json!({ "userid": user }));
                let body = json!({ "usersAddingToTeam": users });
                let client = app.with_key(&key);
                client.post_with_retries(path, body).await.assert_success();
            }
        })
    });

    for task in join_all(tasks).await {
        task.unwrap();
    }

    let members = app.records(Table::TEAM_MEMBERS).await;
    let members: BTreeSet<_> = members
        .iter()
        .map(|member| member["user_id"].as_str().unwrap().to_owned())
        .collect();
    let expected = (0..rounds).flat_map(|round| {
        let own = (0..CALLERS).map(move |caller| format!("{caller}-{round}"));
        own.chain([format!("all-{round}")])
    });
    assert_eq!(members, expected.collect());
    println!(
        "{CALLERS} callers, {rounds} rounds, {} members",
        members.len()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_callers_who_create_the_same_record_succeed_and_one_is_its_creator() {
    let app = Arc::new(TestApp::new().await);
    let mut keys = Vec::new();
    for _ in 0..CALLERS {
        keys.push(app.issue_key("acme", |_| {}).await);
    }
    for operation in Operation::ALL {
        let sample = Sample::of(*operation, &Values::example());
        if sample.write != Write::Create {
            continue;
        }
        let create = |key: &String| {
            let (app, key, sample) = (app.clone(), key.clone(), sample.clone());
            tokio::spawn(async move {
                let client = app.with_key(&key);
                client.post_with_retries(&sample.path, sample.body).await
            })
        };

        let responses = join_all(keys.iter().map(create)).await;

        for response in responses {
            response.unwrap().assert_success();
        }
        let record = app.only_record(sample.records[0].table).await;
        let is_creator = |key: &String| record["created_by"] == key_id(key);
        assert!(keys.iter().any(is_creator), "{operation:?}: {record}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_the_callers_who_add_a_model_with_different_ids_succeeds() {
    let app = Arc::new(TestApp::new().await);
    let key = app.issue_key("acme", |_| {}).await;
    let tasks = (0..CALLERS).map(|id| {
        let (app, key) = (app.clone(), key.clone());
        let shared = json!({ "modelid": "gpt", "id": id });
        let own = json!({ "modelid": format!("own-{id}"), "id": id });
        tokio::spawn(async move {
            let body = json!({ "aIModelsSelectedToAddToOrg": [shared, own] });
            let path = "/api/v1/org/acme/addModelsToOrg/chat";
            app.with_key(&key).post_with_retries(path, body).await
        })
    });

    let mut added = Vec::new();
    for (id, response) in join_all(tasks).await.into_iter().enumerate() {
        let response = response.unwrap();
        if response.status == 204 {
            added.push(id);
        } else {
            response.assert_problem(409, "model_taken");
        }
    }

    let models = app.records(Table::MODELS).await;
    assert_eq!((added.len(), models.len()), (1, 2), "{models:?}");
    let ids: Vec<&Value> = models.iter().map(|model| &model["id"]).collect();
    assert_eq!(ids, [added[0], added[0]]);
}
