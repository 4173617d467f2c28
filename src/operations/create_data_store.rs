//! `POST /api/v1/org/{org_id}/dataStores/create`: creates a data store in an organization.

use deserr::Deserr;

use crate::{
    auth::Caller,
    body::Violations,
    error::{Error, Result},
    operations::{Input, Success},
    records::{DataStore, Table},
    store::Store,
    values::{Description, NameWithId},
};

#[derive(Debug, Deserr)]
#[deserr(error = Violations, deny_unknown_fields)]
pub(crate) struct CreateDataStoreInput {
    #[deserr(rename = "dataStoreName")]
    name: NameWithId,
    #[deserr(rename = "dataStoreDescription", default)]
    description: Option<Description>,
}

impl Input for CreateDataStoreInput {}

/// Creates a data store. Its id is derived from its name.
pub(crate) async fn create_data_store(
    store: &Store,
    caller: &Caller,
    input: CreateDataStoreInput,
) -> Result<Success> {
    let (data_store_name, data_store_id) = input.name.into_name_and_id();
    let data_store = DataStore {
        org_id: caller.org_id.as_str().to_owned(),
        data_store_id,
        data_store_name,
        data_store_description: input.description.unwrap_or_default().into_string(),
        creation: caller.creation_attributes().clone(),
    };
    let resource_kind = "data store";
    let id = data_store.data_store_id.clone();
    let mut is_new = true;
    if let Some(existing) = store
        .insert_if_absent(Table::DATA_STORES, &data_store)
        .await?
    {
        if existing.data_store_name != data_store.data_store_name {
            return Err(Error::DifferentName {
                resource_kind,
                id,
                existing_name: caller.text_for_response(&existing.data_store_name),
            });
        }
        if existing.data_store_description != data_store.data_store_description {
            return Err(Error::DifferentDescription {
                resource_kind,
                id,
                existing_description: caller.text_for_response(&existing.data_store_description),
            });
        }
        is_new = caller.created_in_this_request(&existing.creation);
    }
    Ok(Success::CreatedOrFound {
        id: Some(id),
        is_new,
    })
}
