//! `POST /api/v1/bot/playground/{id}/voice`: sets the voice of a bot.

use deserr::Deserr;
use serde::Serialize;

use crate::{
    auth::{Caller, CreationAttributes},
    body::Violations,
    error::Result,
    operations::{Input, Success},
    store::{Store, Table, UpsertSpec},
    values::{Identifier, VoiceType},
};

#[derive(Debug, Deserr)]
#[deserr(error = Violations, deny_unknown_fields)]
pub(crate) struct SetBotVoiceInput {
    #[deserr(rename = "type")]
    voice_type: VoiceType,
    enabled: bool,
}

impl Input for SetBotVoiceInput {}

#[derive(Serialize)]
struct BotVoice<'a> {
    org_id: &'a Identifier,
    bot_id: &'a Identifier,
    #[serde(rename = "type")]
    voice_type: VoiceType,
    enabled: bool,
    /// The `updated_*` attributes describe the last change.
    updated_at: &'a str,
    updated_by: &'a str,
    updated_request_id: &'a str,
    #[serde(flatten)]
    creation: &'a CreationAttributes,
}

/// Sets a voice. The condition fails if the existing voice is the same, so that a retry does not
/// change `updated_at`.
const SET_VOICE: UpsertSpec = UpsertSpec {
    table: Table::BOT_VOICES,
    expression: "SET #type = :type, enabled = :enabled, updated_at = :updated_at, \
        updated_by = :updated_by, updated_request_id = :updated_request_id, \
        request_id = if_not_exists(request_id, :request_id), \
        created_at = if_not_exists(created_at, :created_at), \
        created_by = if_not_exists(created_by, :created_by)",
    condition: Some("attribute_not_exists(org_id) OR #type <> :type OR enabled <> :enabled"),
    name_placeholders: &[("#type", "type")],
};

/// Sets the voice of a bot in the caller's organization. Bots are not registered, so any bot id is
/// valid. If requests race, the last write wins.
pub(crate) async fn set_bot_voice(
    store: &Store,
    caller: &Caller,
    bot_id: &Identifier,
    input: SetBotVoiceInput,
) -> Result<Success> {
    let creation = caller.creation_attributes();
    let voice = BotVoice {
        org_id: &caller.org_id,
        bot_id,
        voice_type: input.voice_type,
        enabled: input.enabled,
        // These describe this request, which is the last change. The expression keeps the creation
        // attributes of an existing record.
        updated_at: &creation.created_at,
        updated_by: &creation.created_by,
        updated_request_id: &creation.request_id,
        creation,
    };
    // Ignores a failed condition, which means that the voice is already as requested.
    store.upsert(&SET_VOICE, &[voice]).await?;
    Ok(Success::Written)
}
