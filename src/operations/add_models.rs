//! `POST /api/v1/org/{org_id}/addModelsToOrg/{modelType}`: adds chat models to an organization.

use deserr::Deserr;
use serde::Serialize;

use crate::{
    auth::{Audit, Caller},
    body::Violations,
    error::{Error, Result, Rule, Violation},
    operations::Success,
    store::{Store, Table, Update},
    values::{Identifier, Keyed, ModelName, ModelNumber, ModelType, UniqueList},
};

#[derive(Debug, Deserr)]
#[deserr(error = Violations)]
pub(crate) struct AddModels {
    #[deserr(rename = "aIModelsSelectedToAddToOrg")]
    pub(crate) models: UniqueList<SelectedModel>,
}

#[derive(Debug, PartialEq, Deserr)]
#[deserr(error = Violations)]
pub(crate) struct SelectedModel {
    /// The number that the client gives to the model.
    #[deserr(rename = "id")]
    number: ModelNumber,
    /// The name of the model, such as `gpt-4o`.
    #[deserr(rename = "modelid")]
    name: ModelName,
}

impl Keyed for SelectedModel {
    fn key(&self) -> &str {
        self.name.as_str()
    }
}

#[derive(Serialize)]
struct Model<'a> {
    org_id: &'a Identifier,
    /// `<type>#<name>`.
    #[serde(rename = "model")]
    sort_key: String,
    model_type: &'a ModelType,
    #[serde(rename = "model_id")]
    name: &'a ModelName,
    #[serde(rename = "id")]
    number: ModelNumber,
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
    placeholders: &[],
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
        sort_key: format!("{}#{}", model_type.as_str(), selected.name.as_str()),
        model_type,
        name: &selected.name,
        number: selected.number,
        audit: caller.audit(),
    });
    let models: Vec<Model> = records.collect();
    let mut violations = Vec::new();
    for conflict in store.update(&ADD_MODEL, &models).await? {
        let mut detail = "differs from the existing model's `id`".to_owned();
        if let Some(Ok(number)) = conflict.existing.get("id").map(|id| id.as_n())
            && caller.sees_stored_text()
        {
            detail += &format!(" {number}");
        }
        let index = request.models.first_index(conflict.index);
        violations.push(Violation {
            pointer: format!("#/aIModelsSelectedToAddToOrg/{index}/id"),
            ..Violation::new(Rule::Conflict, detail)
        });
    }
    if violations.is_empty() {
        return Ok(Success::Done);
    }
    Err(Error::ModelTaken(violations))
}
