//! `POST /api/v1/org/{org_id}/addModelsToOrg/{modelType}`: adds chat models to an organization.

use aws_sdk_dynamodb::types::AttributeValue;
use deserr::Deserr;
use serde::Serialize;

use crate::{
    auth::{Audit, Caller},
    body::Violations,
    error::{Error, Result, Rule, Violation},
    operation::Success,
    store::{Store, Table, Update},
    values::{Identifier, Keyed, ModelId, ModelNumber, ModelType, UniqueList},
};

#[derive(Debug, Deserr)]
#[deserr(error = Violations)]
pub(crate) struct AddModels {
    // Spelled as in the contract.
    #[deserr(rename = "aIModelsSelectedToAddToOrg")]
    pub(crate) models: UniqueList<SelectedModel>,
}

#[derive(Debug, PartialEq, Deserr)]
#[deserr(error = Violations)]
pub(crate) struct SelectedModel {
    /// The number that the client gives to the model.
    id: ModelNumber,
    /// The name of the model, such as `gpt-4o`.
    modelid: ModelId,
}

impl Keyed for SelectedModel {
    fn key(&self) -> &str {
        self.modelid.as_str()
    }
}

#[derive(Serialize)]
struct Model<'a> {
    org_id: &'a Identifier,
    /// The sort key: `<model type>#<modelid>`.
    model: String,
    model_type: &'a ModelType,
    model_id: &'a ModelId,
    id: ModelNumber,
    #[serde(flatten)]
    audit: &'a Audit,
}

/// Adds a model. If it exists with the same `id`, nothing changes. If it exists with another `id`,
/// the condition fails.
const ADD_MODEL: Update = Update {
    table: Table::MODELS,
    expression: "SET id = :id, model_type = :model_type, model_id = :model_id, \
        created_at = if_not_exists(created_at, :created_at), \
        created_by = if_not_exists(created_by, :created_by), \
        request_id = if_not_exists(request_id, :request_id)",
    condition: Some("attribute_not_exists(org_id) OR id = :id"),
    reserved_names: &[],
};

/// Adds all models, or none if one of them exists with a different `id`.
pub(crate) async fn add_models(
    store: &Store,
    caller: &Caller<'_>,
    model_type: &ModelType,
    request: AddModels,
) -> Result<Success> {
    let records = request.models.iter().map(|selected| Model {
        org_id: &caller.organization,
        model: format!("{}#{}", model_type.as_str(), selected.modelid.as_str()),
        model_type,
        model_id: &selected.modelid,
        id: selected.id,
        audit: caller.audit(),
    });
    let models: Vec<Model> = records.collect();
    let conflicts = store.update(&ADD_MODEL, &models).await?;
    if conflicts.is_empty() {
        return Ok(Success::Done);
    }
    // `models` has no duplicates, but every entry that was sent for a conflicting model is
    // reported.
    let taken = |model| conflicts.iter().find(|conflict| conflict.index == model);
    let sent = request.models.indexes().iter().enumerate();
    let violation = |(index, model): (usize, &usize)| {
        let mut detail = "differs from the existing model's `id`".to_owned();
        if let Some(AttributeValue::N(id)) = taken(*model)?.existing.get("id")
            && caller.may_see_stored_text()
        {
            detail += &format!(" {id}");
        }
        Some(Violation {
            pointer: format!("#/aIModelsSelectedToAddToOrg/{index}/id"),
            ..Violation::new(Rule::Conflict, detail)
        })
    };
    Err(Error::ModelTaken {
        count: conflicts.len(),
        violations: sent.filter_map(violation).collect(),
    })
}
