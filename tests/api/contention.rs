//! Many callers at one place.

use std::{collections::BTreeSet, env, sync::Arc};

use futures_util::future::join_all;
use serde_json::{Value, json};
use workspace_management::store::Table;

use crate::support::{World, trials};

/// 64 callers; 8 on another engine on this machine: moto copies all of its tables for each transaction, and where 64 wait for it, it
/// never comes to an end within the time of an attempt.
fn crowd() -> usize {
    match env::var("TEST_DYNAMODB_ENDPOINT") {
        Ok(endpoint) if endpoint.starts_with("http:") => 8,
        _ => 64,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_who_add_to_one_team_lose_no_member() {
    let rounds = trials(10, 200);
    let world = Arc::new(World::new().await);
    let key = world.issue("acme", |_| {}).await;
    let team = json!({ "project": "acme#apollo", "team_id": "red" });
    world.put(Table::TEAMS, team).await;
    let callers = (0..crowd()).map(|caller| {
        let (world, key) = (world.clone(), key.clone());
        tokio::spawn(async move {
            // In each round, one that all add and one of the caller's own, in a transaction.
            for round in 0..rounds {
                let users = json!([{ "userid": format!("all-{round}") }, { "userid": format!("{caller}-{round}") }]);
                let answer = world
                    .holder(&key)
                    .post_until_answered("/api/v1/project/acme/apollo/red/addUsersToTheTeam", json!({ "usersAddingToTeam": users }))
                    .await;
                answer.is_success();
            }
        })
    });

    for caller in join_all(callers).await {
        caller.unwrap();
    }

    let members = world.records(Table::TEAM_MEMBERS).await;
    let members: BTreeSet<_> = members
        .iter()
        .map(|member| member["user_id"].as_str().unwrap().to_owned())
        .collect();
    let expected = (0..rounds).flat_map(|round| {
        let own = (0..crowd()).map(move |caller| format!("{caller}-{round}"));
        own.chain([format!("all-{round}")])
    });
    assert_eq!(members, expected.collect());
    println!(
        "{} callers, {rounds} rounds, {} members, none lost",
        crowd(),
        members.len()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_callers_who_create_the_same_exactly_one_wins() {
    let rows = [
        (
            "/api/v1/project/acme/apollo/createNewTeamOnProject",
            "teamName",
            Table::TEAMS,
        ),
        (
            "/api/v1/org/acme/dataStores/create",
            "dataStoreName",
            Table::DATA_STORES,
        ),
        (
            "/api/v1/project/acme/apollo/createLoggingInstance",
            "projectName",
            Table::LOGGING_INSTANCES,
        ),
    ];
    let world = Arc::new(World::new().await);
    let mut keys = Vec::new();
    for _ in 0..crowd() {
        keys.push(world.issue("acme", |_| {}).await);
    }
    for (path, name, table) in rows {
        let create = |key: &String| {
            let (world, key) = (world.clone(), key.clone());
            tokio::spawn(async move {
                world
                    .holder(&key)
                    .post_until_answered(path, json!({ name: "Red" }))
                    .await
            })
        };

        let mut winners = Vec::new();
        for (answer, key) in join_all(keys.iter().map(create)).await.iter().zip(&keys) {
            let answer = answer.as_ref().unwrap();
            if answer.status == 204 {
                winners.push(key);
            } else {
                answer.is(409, "name_taken");
            }
        }

        assert_eq!(winners.len(), 1, "{path}");
        let record = world.record(table).await;
        assert_eq!(record["created_by"], crate::support::key_id(winners[0]));
        create(winners[0]).await.unwrap().is_success();
        assert_eq!(world.record(table).await, record);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_callers_who_add_a_model_under_different_ids_exactly_one_wins() {
    let world = Arc::new(World::new().await);
    let key = world.issue("acme", |_| {}).await;
    let callers = (0..crowd()).map(|id| {
        let (world, key) = (world.clone(), key.clone());
        let models =
            json!([{ "modelid": "gpt", "id": id }, { "modelid": format!("own-{id}"), "id": id }]);
        tokio::spawn(async move {
            let body = json!({ "aIModelsSelectedToAddToOrg": models });
            world
                .holder(&key)
                .post_until_answered("/api/v1/org/acme/addModelsToOrg/chat", body)
                .await
        })
    });

    let mut winners = Vec::new();
    for (id, answer) in join_all(callers).await.into_iter().enumerate() {
        let answer = answer.unwrap();
        if answer.status == 204 {
            winners.push(id);
        } else {
            answer.is(409, "model_taken");
        }
    }

    let models = world.records(Table::MODELS).await;
    assert_eq!((winners.len(), models.len()), (1, 2), "{models:?}");
    let ids: Vec<&Value> = models.iter().map(|model| &model["id"]).collect();
    assert_eq!(ids, [winners[0], winners[0]]);
}
