//! `add_team_users`.

use serde_json::{Value, json};
use workspace_management::store::Table;

use crate::support::{Sender, World, assert_made_by, key_id, refuses};

const PATH: &str = "/api/v1/project/acme/apollo/research/addUsersToTheTeam";

fn users<T: AsRef<str>>(users: &[T]) -> Value {
    let users: Vec<_> = users
        .iter()
        .map(|userid| json!({ "userid": userid.as_ref() }))
        .collect();
    json!({ "usersAddingToTeam": users })
}

/// The team that [`PATH`] names.
async fn create_team(acme: &Sender<'_>) {
    let path = "/api/v1/project/acme/apollo/createNewTeamOnProject";
    acme.post(path, json!({ "teamName": "Research" }))
        .await
        .is_success();
}

#[tokio::test]
async fn add_team_users_writes_a_record_for_each_member() {
    let world = World::new().await;
    let key = world.issue("acme", |_| {}).await;
    let acme = world.holder(&key);
    create_team(&acme).await;

    acme.post(PATH, users(&["grace", "ada lovelace"]))
        .await
        .is_success();

    let members = world.records(Table::TEAM_MEMBERS).await;
    assert_eq!(members.len(), 2);
    for (member, user) in members.iter().zip(["ada lovelace", "grace"]) {
        assert_eq!(member["team"], "acme#apollo#research");
        assert_eq!(member["user_id"], user);
        assert_made_by(member, &key_id(&key));
    }
}

#[tokio::test]
async fn add_team_users_adds_who_is_new_and_keeps_who_is_there() {
    let world = World::new().await;
    let acme = world.acme().await;
    create_team(&acme).await;
    acme.post(PATH, users(&["ada"])).await.is_success();
    let first = world.record(Table::TEAM_MEMBERS).await;

    acme.post(PATH, users(&["ada"])).await.is_success();
    world
        .acme()
        .await
        .post(PATH, users(&["grace", "ada"]))
        .await
        .is_success();

    let members = world.records(Table::TEAM_MEMBERS).await;
    assert_eq!(members.len(), 2);
    assert_eq!(members[0], first);
}

#[tokio::test]
async fn add_team_users_loses_no_one_when_many_add_at_once() {
    let world = World::new().await;
    let acme = world.acme().await;
    create_team(&acme).await;

    let names: Vec<String> = (0..16).map(|number| format!("user-{number:02}")).collect();
    let adding = names.iter().map(|name| {
        let acme = acme.clone();
        async move {
            acme.post(PATH, users(&[name.as_str(), "everyone"]))
                .await
                .is_success()
        }
    });
    futures_util::future::join_all(adding).await;

    assert_eq!(world.records(Table::TEAM_MEMBERS).await.len(), 17);
}

#[tokio::test]
async fn add_team_users_takes_100_users_of_the_longest_ids() {
    let world = World::new().await;
    let acme = world.acme().await;
    create_team(&acme).await;
    let long: Vec<_> = (0..100)
        .map(|number| format!("{number:03}{}", "𝄞".repeat(253)))
        .collect();

    acme.post(PATH, users(&long)).await.is_success();

    assert_eq!(world.records(Table::TEAM_MEMBERS).await.len(), 100);
}

#[tokio::test]
async fn add_team_users_refuses_a_team_that_is_not_there() {
    let world = World::new().await;
    let acme = world.acme().await;
    create_team(&acme).await;

    for path in [
        "/api/v1/project/acme/apollo/Research/addUsersToTheTeam",
        "/api/v1/project/acme/gemini/research/addUsersToTheTeam",
    ] {
        acme.post(path, users(&["ada"]))
            .await
            .is(404, "no_such_team");
    }

    assert!(world.records(Table::TEAM_MEMBERS).await.is_empty());
}

#[tokio::test]
async fn add_team_users_reads_key_and_team_once_and_then_remembers_them() {
    let world = World::new().await;
    create_team(&world.acme().await).await;
    let other = world.acme().await;
    world.sent.take();

    other.post(PATH, users(&["ada"])).await.is_success();
    other.post(PATH, users(&["grace"])).await.is_success();

    let actions = world.sent.take_actions();
    assert_eq!(actions, ["BatchGetItem", "UpdateItem", "UpdateItem"]);
}

#[tokio::test]
async fn add_team_users_reads_a_team_that_is_created_later() {
    let world = World::new().await;
    let acme = world.acme().await;

    acme.post(PATH, users(&["ada"]))
        .await
        .is(404, "no_such_team");
    create_team(&acme).await;

    acme.post(PATH, users(&["ada"])).await.is_success();
}

#[tokio::test]
async fn add_team_users_reads_no_team_for_a_malformed_key() {
    let world = World::new().await;
    world.sent.take();

    let stranger = world
        .anonymous()
        .with("authorization", "Bearer wsk_nonsense");
    stranger
        .post(PATH, users(&["ada"]))
        .await
        .is(401, "unauthenticated");

    assert!(world.sent.take().is_empty());
}

#[tokio::test]
async fn add_team_users_refuses_every_bad_body() {
    let field = |entries: Value| json!({ "usersAddingToTeam": entries });
    let many: Vec<_> = (0..101).map(|number| number.to_string()).collect();
    refuses(
        PATH,
        Table::TEAM_MEMBERS,
        &[
            ("nothing", json!({}), &["#/usersAddingToTeam is required"]),
            ("a string", field(json!("ada")), &["#/usersAddingToTeam must be an array, but is a string"]),
            ("no entry", field(json!([])), &["#/usersAddingToTeam must have at least 1 entry"]),
            ("101 entries", users(&many), &["#/usersAddingToTeam must have at most 100 entries, but has 101"]),
            (
                "strings for objects",
                field(json!(["ada"])),
                &["#/usersAddingToTeam/0 must be an object, but is a string"],
            ),
            (
                "the fourth of four users wrong",
                field(json!([{ "userid": "a" }, { "userid": "b" }, { "userid": "c" }, { "userid": 4 }])),
                &["#/usersAddingToTeam/3/userid must be a string, but is an integer"],
            ),
            (
                "every way at once",
                field(json!([{}, { "userid": "" }, { "userid": "x".repeat(257) }, { "userid": "\u{1b}" }])),
                &[
                    "#/usersAddingToTeam/0/userid is required",
                    "#/usersAddingToTeam/1/userid must not be empty",
                    "#/usersAddingToTeam/2/userid must have at most 256 characters, but has 257",
                    "#/usersAddingToTeam/3/userid must not hold control characters",
                ],
            ),
        ],
    )
    .await;
}
