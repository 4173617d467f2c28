//! `POST /api/v1/org/{org_id}/dataStores/create`: creates a data store in an organization.

use deserr::Deserr;
use serde::{Deserialize, Serialize};

use crate::{
    auth::{Audit, Caller},
    body::Violations,
    error::{Error, Result},
    operations::Success,
    store::{Store, Table},
    values::{Description, NameWithId, escape},
};

#[derive(Debug, Deserr)]
#[deserr(error = Violations)]
pub(crate) struct CreateDataStore {
    #[deserr(rename = "dataStoreName")]
    name: NameWithId,
    #[deserr(rename = "dataStoreDescription", default)]
    description: Option<Description>,
}

// The defaults allow for stored records that lack an attribute.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct DataStore {
    org_id: String,
    /// Derived from the name.
    data_store_id: String,
    data_store_name: String,
    data_store_description: String,
    #[serde(flatten)]
    audit: Audit,
}

/// Creates a data store. Its id is derived from its name.
pub(crate) async fn create_data_store(
    store: &Store,
    caller: &Caller<'_>,
    request: CreateDataStore,
) -> Result<Success> {
    let (data_store_id, data_store_name) = request.name.into_id_and_name();
    let data_store = DataStore {
        org_id: caller.organization.as_str().to_owned(),
        data_store_id,
        data_store_name,
        data_store_description: request.description.unwrap_or_default().into_string(),
        audit: caller.audit().clone(),
    };
    let (kind, id) = ("data store", data_store.data_store_id.clone());
    match store.insert(Table::DATA_STORES, &data_store).await? {
        Some(existing) if existing.data_store_name != data_store.data_store_name => {
            Err(Error::OtherName {
                kind,
                id,
                existing_name: caller
                    .sees_stored_text()
                    .then(|| escape(&existing.data_store_name)),
            })
        }
        Some(existing) if existing.data_store_description != data_store.data_store_description => {
            Err(Error::OtherDescription { kind, id })
        }
        existing => Ok(Success::Stored {
            id: Some(id),
            is_new: existing.is_none_or(|existing| caller.created(&existing.audit)),
        }),
    }
}
