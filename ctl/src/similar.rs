//! Ids of users that people can take for the same one.

use std::collections::BTreeSet;

use anyhow::Result;
use unicode_normalization::UnicodeNormalization as _;
use workspace_management::{store::Table, values::is_visible};

use crate::{
    deployment::Deployment,
    output::escape,
    query::{Query, Scope},
};

/// Names the ids of the teams' members that differ from a user's id only in case, Unicode form, white
/// space or invisible characters. They can be of the same person, so a command prints nothing after it.
/// The teams are partition keys.
pub(crate) async fn report(
    deployment: &Deployment,
    teams: Vec<String>,
    user: &str,
    was_member: bool,
) -> Result<()> {
    let mut query = Query::new(Table::TEAM_MEMBERS, Scope::Partitions("team", teams));
    let (folded_user, mut ids) = (folded(user), BTreeSet::new());
    while let Some(members) = query.next(deployment).await? {
        for member in members {
            if let Some(Ok(id)) = member.get("user_id").map(|id| id.as_s())
                && id != user
                && folded(id) == folded_user
            {
                // `Debug` also escapes combining characters, and white space other than spaces.
                ids.insert(escape(&format!("{id:?}")));
            }
        }
    }
    let ids = ids.into_iter().collect::<Vec<_>>().join(", ");
    match (ids.as_str(), was_member) {
        ("", _) => {}
        (_, true) => eprintln!("note: there are other members with similar ids: {ids}"),
        _ => eprintln!(
            "warning: no member has the id {}, but there are members with similar ids: {ids}",
            escape(&format!("{user:?}"))
        ),
    }
    Ok(())
}

/// An id without the differences that people do not see: nearly NFKC_Casefold of Unicode, and without
/// white space.
fn folded(id: &str) -> String {
    let visible = id.nfkd().filter(|character| is_visible(*character));
    // The lower case of `ẞ` is `ß`, and the upper case of `ß` is `SS`.
    let folded = visible
        .flat_map(char::to_lowercase)
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase);
    // The lower case of the Turkish `İ` is `i` with a dot above.
    folded.nfkd().collect::<String>().replace("i\u{307}", "i")
}
