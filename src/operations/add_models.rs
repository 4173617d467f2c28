//! `POST /api/v1/org/{org_id}/addModelsToOrg/{modelType}`: adds chat models to an organization.

use deserr::Deserr;
use serde::Serialize;

use crate::{
    body::Violations,
    caller::{Caller, Creation},
    error::Error,
    store::{Record, Store, Table},
    values::{Entries, Entry, Identifier, ModelId, ModelNumber, ModelType},
};

/// The models to add.
#[derive(Debug, Deserr)]
#[deserr(error = Violations)]
pub struct AddModels {
    #[deserr(rename = "aIModelsSelectedToAddToOrg")]
    models: Entries<ModelSelection>,
}

#[derive(Debug, PartialEq, Deserr)]
#[deserr(error = Violations)]
struct ModelSelection {
    id: ModelNumber,
    modelid: ModelId,
}

impl Entry for ModelSelection {
    fn key(&self) -> &str {
        self.modelid.as_str()
    }
}

#[derive(Serialize)]
struct Model<'a> {
    org_id: &'a Identifier,
    model: String,
    id: ModelNumber,
    #[serde(flatten)]
    creation: &'a Creation,
}

impl Record for Model<'_> {
    const TABLE: Table = Table::MODELS;
}

/// Adds all of the models or, if one is in the organization under another `id`, none.
pub async fn add_models(
    store: &Store,
    caller: &Caller,
    model_type: &ModelType,
    request: AddModels,
) -> Result<(), Error> {
    let creation = caller.creation();
    let models: Vec<_> = request
        .models
        .iter()
        .map(|selection| Model {
            org_id: caller.organization(),
            model: format!("{}#{}", model_type.as_str(), selection.modelid.as_str()),
            id: selection.id,
            creation: &creation,
        })
        .collect();
    store.add_all(&models).await
}
