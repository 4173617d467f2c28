//! `POST /api/v1/bot/playground/{id}/voice`: sets the voice of a bot.

use std::borrow::Cow;

use deserr::Deserr;

use crate::{
    auth::Caller,
    body::Violations,
    error::Result,
    operations::{Input, Success},
    records::{BotVoice, Table},
    store::{Store, UpsertSpec},
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
        org_id: caller.org_id.as_str().into(),
        bot_id: bot_id.as_str().into(),
        voice_type: input.voice_type.as_str().into(),
        enabled: input.enabled,
        // These describe this request, which is the last change. The expression keeps the creation
        // attributes of an existing record.
        updated_at: creation.created_at.as_str().into(),
        updated_by: creation.created_by.as_str().into(),
        updated_request_id: creation.request_id.as_str().into(),
        creation: Cow::Borrowed(creation),
    };
    // Ignores a failed condition, which means that the voice is already as requested.
    store.upsert(&SET_VOICE, &[voice]).await?;
    Ok(Success::Written)
}
