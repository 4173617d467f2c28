//! `POST /api/v1/org/{org_id}/addModelsToOrg/{modelType}`: adds chat models to an organization.

use std::borrow::Cow;

use deserr::Deserr;

use crate::{
    auth::Caller,
    body::Violations,
    error::{Error, Result, Rule, Violation},
    operations::{Input, Success},
    records::{Model, Table},
    store::{Store, UpsertSpec},
    values::{Keyed, ModelId, ModelNumber, ModelType, UniqueList},
};

#[derive(Debug, Deserr)]
#[deserr(error = Violations, deny_unknown_fields)]
pub(crate) struct AddModelsInput {
    #[deserr(rename = "aIModelsSelectedToAddToOrg")]
    pub(crate) models: UniqueList<ModelEntry>,
}

impl Input for AddModelsInput {
    fn distinct_entry_count(&self) -> Option<usize> {
        Some(self.models.len())
    }
}

#[derive(Debug, PartialEq, Deserr)]
#[deserr(error = Violations, deny_unknown_fields)]
pub(crate) struct ModelEntry {
    #[deserr(rename = "id")]
    number: ModelNumber,
    #[deserr(rename = "modelid")]
    model_id: ModelId,
}

impl Keyed for ModelEntry {
    fn key(&self) -> &str {
        self.model_id.as_str()
    }
}

/// Adds a model. If the model exists with the same number (`id`), nothing changes. If it has a
/// different number, the condition fails.
const ADD_MODEL: UpsertSpec = UpsertSpec {
    table: Table::MODELS,
    expression: "SET id = :id, model_type = :model_type, model_id = :model_id, \
        created_at = if_not_exists(created_at, :created_at), \
        created_by = if_not_exists(created_by, :created_by), \
        request_id = if_not_exists(request_id, :request_id)",
    condition: Some("attribute_not_exists(org_id) OR id = :id"),
    name_placeholders: &[],
};

/// Adds all models of the input, or none if a model exists with a different `id`.
pub(crate) async fn add_models(
    store: &Store,
    caller: &Caller,
    model_type: &ModelType,
    input: AddModelsInput,
) -> Result<Success> {
    let mut records = Vec::with_capacity(input.models.len());
    for entry in input.models.iter() {
        records.push(Model {
            org_id: caller.org_id.as_str().into(),
            sort_key: Model::sort_key(model_type.as_str(), entry.model_id.as_str()),
            model_type: model_type.as_str().into(),
            model_id: entry.model_id.as_str().into(),
            number: entry.number.get(),
            creation: Cow::Borrowed(caller.creation_attributes()),
        });
    }
    let failed_conditions = store.upsert(&ADD_MODEL, &records).await?;
    let mut violations = Vec::new();
    for failed in failed_conditions {
        let mut detail = "differs from the existing model's `id`".to_owned();
        if caller.may_see_stored_values()
            && let Ok(Model { number, .. }) = serde_dynamo::from_item(failed.existing)
        {
            detail += &format!(" {number}");
        }
        let original_index = input.models.index_in_array(failed.index);
        let pointer = format!("#/aIModelsSelectedToAddToOrg/{original_index}/id");
        violations.push(Violation::new(Rule::Conflict, detail).at(pointer));
    }
    if violations.is_empty() {
        return Ok(Success::Written);
    }
    Err(Error::DifferentModelNumbers(violations))
}
