//! `POST /api/v1/bot/playground/{id}/voice`: sets the audio settings of a bot on the playground.

use deserr::Deserr;
use serde::Serialize;

use crate::{
    body::Violations,
    caller::{Caller, Creation},
    error::Error,
    store::{Record, Store, Table},
    values::{Identifier, VoiceType},
};

/// The voice that the bot shall have.
#[derive(Debug, Deserr)]
#[deserr(error = Violations)]
pub struct SetBotVoice {
    #[deserr(rename = "type")]
    voice_type: VoiceType,
    enabled: bool,
}

#[derive(Serialize)]
struct BotVoice<'a> {
    org_id: &'a Identifier,
    bot_id: &'a Identifier,
    #[serde(rename = "type")]
    voice_type: VoiceType,
    enabled: bool,
    updated_at: String,
    updated_by: String,
    #[serde(flatten)]
    creation: Creation,
}

impl Record for BotVoice<'_> {
    const TABLE: Table = Table::BOT_VOICES;
}

/// Sets the voice of a bot; the last write wins. The path names no organization, so a bot is its caller's own.
pub async fn set_bot_voice(
    store: &Store,
    caller: &Caller,
    bot: &Identifier,
    request: SetBotVoice,
) -> Result<(), Error> {
    let creation = caller.creation();
    let voice = BotVoice {
        org_id: caller.organization(),
        bot_id: bot,
        voice_type: request.voice_type,
        enabled: request.enabled,
        updated_at: creation.created_at.clone(),
        updated_by: creation.created_by.clone(),
        creation,
    };
    store.put(&voice).await
}
