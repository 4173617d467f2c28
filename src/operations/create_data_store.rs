//! `POST /api/v1/org/{org_id}/dataStores/create`: creates a data store in an organization.

use deserr::Deserr;
use serde::Serialize;

use crate::{
    body::Violations,
    caller::{Caller, Creation},
    error::Error,
    store::{Record, Store, Table},
    values::{Description, Identifier, Name, SluggedName},
};

/// The data store to create.
#[derive(Debug, Deserr)]
#[deserr(error = Violations)]
pub struct CreateDataStore {
    #[deserr(rename = "dataStoreName")]
    name: SluggedName,
    #[deserr(rename = "dataStoreDescription", default)]
    description: Option<Description>,
}

#[derive(Serialize)]
struct DataStore<'a> {
    org_id: &'a Identifier,
    data_store_id: &'a str,
    data_store_name: &'a Name,
    data_store_description: Description,
    #[serde(flatten)]
    creation: Creation,
}

impl Record for DataStore<'_> {
    const TABLE: Table = Table::DATA_STORES;
}

/// Creates the data store under the slug of its name.
pub async fn create_data_store(
    store: &Store,
    caller: &Caller,
    request: CreateDataStore,
) -> Result<(), Error> {
    let data_store = DataStore {
        org_id: caller.organization(),
        data_store_id: request.name.slug(),
        data_store_name: request.name.name(),
        data_store_description: request.description.unwrap_or_default(),
        creation: caller.creation(),
    };
    store.create(&data_store).await
}
