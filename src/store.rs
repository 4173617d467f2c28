//! The only file that knows DynamoDB: eight tables, and what may be done to them.
//!
//! Every verb is safe to repeat: a write that was committed but whose answer was lost is found as it should be.

pub mod client;

use std::{
    collections::{HashMap, HashSet},
    error::Error as StdError,
    slice,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use aws_sdk_dynamodb::{
    Client,
    config::{
        Builder, ConfigBag, Intercept, RuntimeComponents,
        interceptors::{FinalizerInterceptorContextRef, InterceptorContext},
        retry::{ClassifyRetry, RetryAction, RetryConfig},
        timeout::TimeoutConfig,
    },
    error::{ProvideErrorMetadata, SdkError},
    operation::{
        batch_get_item::BatchGetItemError, get_item::GetItemError, put_item::PutItemError,
        transact_write_items::TransactWriteItemsError, update_item::UpdateItemError,
    },
    types::{
        AttributeValue, KeysAndAttributes, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
        Update,
    },
};
use aws_smithy_runtime_api::{
    box_error::BoxError,
    client::{
        interceptors::context::Error as OperationError, orchestrator::OrchestratorError,
        retries::RequestAttempts,
    },
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    error::{Cause, Error},
    metrics::Attempts,
};

/// How long one attempt may take, connecting included. The whole operation is bounded by the request's deadline.
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(1500);

/// How often a request is sent at most, unless the request's deadline ends it before.
const ATTEMPTS: u32 = 8;

/// How long the SDK waits before the second attempt, and at most before a later one: twice as long each time, with full
/// jitter.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// How many teams and organizations are remembered at most; then all are forgotten and read again.
const MOST_REMEMBERED: usize = 10_000;

/// A table: its logical id in `template.yaml`, the environment variable that holds its name, its primary key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Table {
    /// The logical id in `template.yaml`.
    pub logical_id: &'static str,
    /// The environment variable that holds its name.
    pub variable: &'static str,
    /// The plural name of its records.
    pub name: &'static str,
    /// The attributes of its primary key: the partition key, then the sort key if it has one.
    pub key: &'static [&'static str],
    /// The identifiers that its partition key joins with `#`.
    pub partition: &'static [&'static str],
}

const fn table(
    logical_id: &'static str,
    variable: &'static str,
    name: &'static str,
    key: &'static [&'static str],
    partition: &'static [&'static str],
) -> Table {
    Table {
        logical_id,
        variable,
        name,
        key,
        partition,
    }
}

#[rustfmt::skip]
#[allow(missing_docs, reason = "a table is named for its records")]
impl Table {
    pub const ORGANIZATIONS: Self = table("OrganizationsTable", "ORGANIZATIONS_TABLE", "organizations", &["org_id"], &["org"]);
    pub const KEYS: Self = table("KeysTable", "KEYS_TABLE", "keys", &["key_id"], &["key"]);
    pub const MODELS: Self = table("ModelsTable", "MODELS_TABLE", "models", &["org_id", "model"], &["org"]);
    pub const TEAMS: Self = table("TeamsTable", "TEAMS_TABLE", "teams", &["project", "team_id"], &["org", "project"]);
    pub const TEAM_MEMBERS: Self = table("TeamMembersTable", "TEAM_MEMBERS_TABLE", "members", &["team", "user_id"], &["org", "project", "team"]);
    pub const BOT_VOICES: Self = table("BotVoicesTable", "BOT_VOICES_TABLE", "voices", &["org_id", "bot_id"], &["org"]);
    pub const DATA_STORES: Self = table("DataStoresTable", "DATA_STORES_TABLE", "data-stores", &["org_id", "data_store_id"], &["org"]);
    pub const LOGGING_INSTANCES: Self = table("LoggingInstancesTable", "LOGGING_INSTANCES_TABLE", "logging-instances", &["org_id", "project_id"], &["org"]);

    /// Every table.
    pub const ALL: [Self; 8] = [
        Self::ORGANIZATIONS, Self::KEYS, Self::MODELS, Self::TEAMS,
        Self::TEAM_MEMBERS, Self::BOT_VOICES, Self::DATA_STORES, Self::LOGGING_INSTANCES,
    ];
}

/// The names that the tables have in a deployment.
#[derive(Debug, Clone)]
pub struct Tables(HashMap<Table, String>);

/// A variable that names a table is missing or empty.
#[derive(Debug, thiserror::Error)]
#[error("the environment variable {0} is not set: it must hold the name of a DynamoDB table")]
pub struct MissingTable(&'static str);

impl Tables {
    /// The names that `name` gives.
    ///
    /// # Errors
    /// If it gives none for a table.
    pub fn named(name: impl Fn(Table) -> Option<String>) -> Result<Self, MissingTable> {
        let named = |table: Table| match name(table) {
            Some(name) => Ok((table, name)),
            None => Err(MissingTable(table.variable)),
        };
        Table::ALL
            .into_iter()
            .map(named)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The name of a table.
    pub fn name(&self, table: Table) -> &str {
        &self.0[&table]
    }
}

/// What can be written: attributes, among them those of its table's key and of its creation. All of a type have the same.
pub trait Record: Serialize {
    /// Where its records are.
    const TABLE: Table;
}

/// The attributes that tell of a record's making, not what it is.
const STAMPS: [&str; 4] = ["created_at", "created_by", "request_id", "updated_at"];

type Item = HashMap<String, AttributeValue>;

/// The tables, through the SDK's client.
pub struct Store {
    client: Client,
    tables: Tables,
    seen: Mutex<HashSet<(Table, String)>>,
}

impl Store {
    /// A store over the tables, with an SDK configuration that says where they are and with which credentials.
    /// Time-outs and retries are the store's own.
    pub fn new(config: Builder, tables: Tables) -> Self {
        let timeouts = TimeoutConfig::builder()
            .operation_attempt_timeout(ATTEMPT_TIMEOUT)
            .build();
        let config = config
            .timeout_config(timeouts)
            .retry_config(
                RetryConfig::standard()
                    .with_max_attempts(ATTEMPTS)
                    .with_initial_backoff(BACKOFF.0)
                    .with_max_backoff(BACKOFF.1),
            )
            .retry_classifier(RetryPassing)
            .interceptor(NoteAttempts)
            .build();
        Self {
            client: Client::from_conf(config),
            tables,
            seen: Mutex::default(),
        }
    }

    /// Writes a record where there is none. An identical one by the same maker is left as it is. One write.
    ///
    /// # Errors
    /// [`Error::NameTaken`] if something else is there.
    pub async fn create<R: Record>(&self, record: &R) -> Result<(), Error> {
        let item = item(record)?;
        let written = self
            .client
            .put_item()
            .table_name(self.tables.name(R::TABLE))
            .set_item(Some(item.clone()))
            .condition_expression("attribute_not_exists(#key)")
            .expression_attribute_names("#key", R::TABLE.key[0])
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        match written {
            Ok(_) => Ok(()),
            Err(SdkError::ServiceError(refused)) => match refused.err() {
                PutItemError::ConditionalCheckFailedException(failed) => match failed.item() {
                    Some(present) if same(present, &item) => Ok(()),
                    _ => Err(Error::NameTaken),
                },
                _ => Err(failure(SdkError::ServiceError(refused))),
            },
            Err(error) => Err(failure(error)),
        }
    }

    /// Adds records, all or none. Those that are there already with the same content stay as they are. One write for
    /// one record; for more, one transaction of at most 100.
    ///
    /// # Errors
    /// [`Error::ModelTaken`] if one is there with another content; records without content of their own always fit.
    pub async fn add_all<R: Record>(&self, records: &[R]) -> Result<(), Error> {
        let updates = match <[Update; 1]>::try_from(self.updates(records, Change::Addition)?) {
            Ok([update]) => {
                let fitted = self.update(update).await?;
                return fitted.then_some(()).ok_or(Error::ModelTaken);
            }
            Err(updates) => updates,
        };
        let actions = updates
            .into_iter()
            .map(|update| TransactWriteItem::builder().update(update).build());
        let transaction = self
            .client
            .transact_write_items()
            .set_transact_items(Some(actions.collect()));
        match transaction.send().await {
            Ok(_) => Ok(()),
            Err(error) => Err(
                match error.as_service_error().map_or(Verdict::Other, verdict) {
                    Verdict::Condition => Error::ModelTaken,
                    Verdict::Contention => Error::Unavailable(error.into()),
                    Verdict::Other => failure(error),
                },
            ),
        }
    }

    /// Writes a record over what is there, whose creation is kept. An identical one by the same maker is left as it is,
    /// so that a repeat does not move its date. One write.
    pub async fn put<R: Record>(&self, record: &R) -> Result<(), Error> {
        for update in self.updates(slice::from_ref(record), Change::Replacement)? {
            self.update(update).await?;
        }
        Ok(())
    }

    /// Whether something is there under the key. What was seen once is remembered, since nothing deletes it; else one
    /// strongly consistent read.
    pub async fn exists(&self, table: Table, key: &[&str]) -> Result<bool, Error> {
        if self.has_seen(table, key) {
            return Ok(true);
        }
        let found = self.read(table, key).await?.is_some();
        if found {
            self.remember(table, key);
        }
        Ok(found)
    }

    /// The record under the key, if there is one. One strongly consistent read, and with it, if it is not remembered, of
    /// what [`Store::exists`] will be asked for.
    pub async fn find<T: DeserializeOwned>(
        &self,
        table: Table,
        key: &[&str],
        ahead: Option<(Table, &[&str])>,
    ) -> Result<Option<T>, Error> {
        let found = match ahead.filter(|(table, key)| !self.has_seen(*table, key)) {
            None => self.read(table, key).await?,
            Some((other, other_key)) => {
                let [found, seen] = self.read_both([(table, key), (other, other_key)]).await?;
                if seen.is_some() {
                    self.remember(other, other_key);
                }
                found
            }
        };
        let record = found.map(serde_dynamo::from_item);
        record.transpose().map_err(internal)
    }

    fn has_seen(&self, table: Table, key: &[&str]) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.contains(&(table, place(key)))
    }

    fn remember(&self, table: Table, key: &[&str]) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= MOST_REMEMBERED {
            seen.clear();
        }
        seen.insert((table, place(key)));
    }

    /// Reads from two tables in one request.
    async fn read_both(&self, places: [(Table, &[&str]); 2]) -> Result<[Option<Item>; 2], Error> {
        let mut request = self.client.batch_get_item();
        for (table, key) in places {
            let keys = KeysAndAttributes::builder().keys(attributes(table, key));
            let keys = keys.consistent_read(true).build().map_err(internal)?;
            request = request.request_items(self.tables.name(table), keys);
        }
        let found = request.send().await.map_err(failure)?;
        if found.unprocessed_keys.is_some_and(|keys| !keys.is_empty()) {
            return Err(Error::Unavailable("DynamoDB left keys unprocessed".into()));
        }
        let mut tables = found.responses.unwrap_or_default();
        Ok(places.map(|(table, _)| tables.remove(self.tables.name(table))?.pop()))
    }

    async fn read(&self, table: Table, key: &[&str]) -> Result<Option<Item>, Error> {
        let request = self
            .client
            .get_item()
            .table_name(self.tables.name(table))
            .set_key(Some(attributes(table, key)))
            .consistent_read(true);
        Ok(request.send().await.map_err(failure)?.item)
    }

    /// Carries out an update; whether its condition held.
    async fn update(&self, update: Update) -> Result<bool, Error> {
        let updated = self
            .client
            .update_item()
            .table_name(update.table_name)
            .set_key(Some(update.key))
            .update_expression(update.update_expression)
            .set_condition_expression(update.condition_expression)
            .set_expression_attribute_names(update.expression_attribute_names)
            .set_expression_attribute_values(update.expression_attribute_values)
            .send()
            .await;
        match updated {
            Ok(_) => Ok(true),
            Err(SdkError::ServiceError(refused))
                if refused.err().is_conditional_check_failed_exception() =>
            {
                Ok(false)
            }
            Err(error) => Err(failure(error)),
        }
    }

    /// Records as updates, each on the condition that it is not there, or there with content that the change allows.
    fn updates<R: Record>(&self, records: &[R], change: Change) -> Result<Vec<Update>, Error> {
        let name = self.tables.name(R::TABLE);
        let mut expressions = None;
        let updates = records.iter().map(|record| {
            let item = item(record)?;
            let Expressions {
                update,
                condition,
                names,
            } = expressions.get_or_insert_with(|| Expressions::new(R::TABLE, &item, change));
            let mut action = Update::builder()
                .table_name(name)
                .update_expression(update.as_str())
                .set_condition_expression(condition.clone())
                .set_expression_attribute_names(names.clone());
            for (name, value) in item {
                action = if R::TABLE.key.contains(&name.as_str()) {
                    action.key(name, value)
                } else {
                    action.expression_attribute_values(format!(":{name}"), value)
                };
            }
            action.build().map_err(internal)
        });
        updates.collect()
    }
}

/// What all updates of one kind of record have in common.
struct Expressions {
    update: String,
    condition: Option<String>,
    names: Option<HashMap<String, String>>,
}

impl Expressions {
    fn new(table: Table, item: &Item, change: Change) -> Self {
        let (mut sets, mut allowed, mut names) = (Vec::new(), Vec::new(), HashMap::new());
        for name in item.keys() {
            if table.key.contains(&name.as_str()) {
                continue;
            }
            let path = path(name, &mut names);
            sets.push(match (change, name.as_str()) {
                (Change::Addition, _) | (_, "created_at" | "created_by") => {
                    format!("{path} = if_not_exists({path}, :{name})")
                }
                _ => format!("{path} = :{name}"),
            });
            if !STAMPS.contains(&name.as_str()) {
                allowed.push(match change {
                    Change::Addition => format!("{path} = :{name}"),
                    Change::Replacement => format!("{path} <> :{name}"),
                });
            }
        }
        let allowed = match change {
            Change::Addition => allowed.join(" AND "),
            Change::Replacement => allowed.join(" OR "),
        };
        let condition = (!allowed.is_empty()).then(|| {
            let key = path(table.key[0], &mut names);
            format!("attribute_not_exists({key}) OR ({allowed})")
        });
        Self {
            update: format!("SET {}", sets.join(", ")),
            condition,
            names: Some(names).filter(|names| !names.is_empty()),
        }
    }
}

/// An attribute's name as an expression can have it: by a placeholder if DynamoDB might have reserved the word. Of its 573
/// words none holds an underscore.
fn path(name: &str, names: &mut HashMap<String, String>) -> String {
    if name.contains('_') {
        return name.to_owned();
    }
    let placeholder = format!("#{name}");
    names.insert(placeholder.clone(), name.to_owned());
    placeholder
}

/// How an update treats what is there.
#[derive(Clone, Copy)]
enum Change {
    /// Keeps it, and must find its content to be the same.
    Addition,
    /// Keeps its creation alone, and must find its content to differ.
    Replacement,
}

fn item<R: Record>(record: &R) -> Result<Item, Error> {
    serde_dynamo::to_item(record).map_err(internal)
}

/// A key's values as the attributes of a table's key.
fn attributes(table: Table, key: &[&str]) -> Item {
    let text = |value: &&str| AttributeValue::S((*value).to_owned());
    let names = table.key.iter().map(|name| (*name).to_owned());
    names.zip(key.iter().map(text)).collect()
}

/// A key's values as one text. No identifier holds a `#`.
fn place(key: &[&str]) -> String {
    key.join("#")
}

/// Whether two records are the same but for when and in which request they were made.
fn same(one: &Item, other: &Item) -> bool {
    let differs = |name: &&String| {
        !["created_at", "request_id"].contains(&name.as_str()) && one.get(*name) != other.get(*name)
    };
    !one.keys().chain(other.keys()).any(|name| differs(&name))
}

/// Why a transaction was cancelled.
#[derive(PartialEq)]
enum Verdict {
    Condition,
    Contention,
    Other,
}

/// A failed condition decides; only where there is none is it worth to wait for another writer.
fn verdict(error: &TransactWriteItemsError) -> Verdict {
    let TransactWriteItemsError::TransactionCanceledException(cancelled) = error else {
        return Verdict::Other;
    };
    let mut verdict = Verdict::Other;
    for reason in cancelled.cancellation_reasons() {
        match reason.code() {
            Some("ConditionalCheckFailed") => return Verdict::Condition,
            Some("TransactionConflict") => verdict = Verdict::Contention,
            Some(code) if THROTTLED_REASONS.contains(&code) => verdict = Verdict::Contention,
            _ => {}
        }
    }
    verdict
}

/// Has the SDK retry what lost against another writer, as it does what was throttled, and what cannot have come from
/// DynamoDB: by itself it does neither.
#[derive(Debug)]
struct RetryPassing;

impl ClassifyRetry for RetryPassing {
    fn classify_retry(&self, context: &InterceptorContext) -> RetryAction {
        let failed = context.output_or_error().and_then(Result::err);
        let error = failed.and_then(OrchestratorError::as_operation_error);
        let is_contention = error.is_some_and(|error| {
            if let Some(error) = error.downcast_ref::<TransactWriteItemsError>() {
                verdict(error) == Verdict::Contention
            } else if let Some(error) = error.downcast_ref::<UpdateItemError>() {
                error.is_transaction_conflict_exception()
            } else if let Some(error) = error.downcast_ref::<PutItemError>() {
                error.is_transaction_conflict_exception()
            } else {
                false
            }
        });
        let response = context.response().map(|response| response.status());
        let is_unreadable = error.is_some() && response.is_some_and(|status| status.is_success());
        if is_contention || is_unreadable {
            RetryAction::transient_error()
        } else {
            RetryAction::NoActionIndicated
        }
    }

    fn name(&self) -> &'static str {
        "passing"
    }
}

/// Notes each attempt for the request's metrics.
#[derive(Debug)]
struct NoteAttempts;

impl Intercept for NoteAttempts {
    fn name(&self) -> &'static str {
        "note attempts"
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let is_retry = config
            .load::<RequestAttempts>()
            .is_some_and(|made| made.attempts() > 1);
        let failed = context.output_or_error().and_then(Result::err);
        let error = failed.and_then(OrchestratorError::as_operation_error);
        Attempts::note(is_retry, error.is_some_and(is_throttled));
        Ok(())
    }
}

/// Whether DynamoDB refused an attempt because there were too many.
fn is_throttled(error: &OperationError) -> bool {
    fn code<E: StdError + ProvideErrorMetadata + Send + Sync + 'static>(
        error: &OperationError,
    ) -> Option<&str> {
        error.downcast_ref::<E>()?.code()
    }
    if let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) =
        error.downcast_ref()
    {
        let reasons = cancelled.cancellation_reasons().iter();
        let mut codes = reasons.filter_map(|reason| reason.code());
        return codes.any(|code| THROTTLED_REASONS.contains(&code));
    }
    let code = code::<PutItemError>(error)
        .or_else(|| code::<UpdateItemError>(error))
        .or_else(|| code::<TransactWriteItemsError>(error))
        .or_else(|| code::<GetItemError>(error))
        .or_else(|| code::<BatchGetItemError>(error));
    code.is_some_and(|code| THROTTLES.contains(&code))
}

/// DynamoDB's codes for too many requests.
const THROTTLES: [&str; 3] = [
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ThrottlingException",
];

/// The same as the reason for which it cancelled a transaction.
const THROTTLED_REASONS: [&str; 2] = ["ProvisionedThroughputExceeded", "ThrottlingError"];

/// What a failed request to DynamoDB means for the caller.
fn failure<E>(error: SdkError<E>) -> Error
where
    E: StdError + ProvideErrorMetadata + Send + Sync + 'static,
{
    let SdkError::ServiceError(refused) = &error else {
        return match error {
            SdkError::ConstructionFailure(_) => internal(error),
            // Not the network, but what should have been sent: no credentials, no valid address.
            SdkError::DispatchFailure(ref reason) if !reason.is_io() && !reason.is_timeout() => {
                internal(error)
            }
            _ => Error::Unavailable(error.into()),
        };
    };
    let passing = match refused.err().code() {
        Some(
            "ExpiredTokenException"
            | "TransactionConflictException"
            | "TransactionInProgressException",
        ) => true,
        Some(code) if THROTTLES.contains(&code) => true,
        // An answer that says success, but not as DynamoDB does, was made by something in between.
        _ => {
            let status = refused.raw().status();
            status.is_server_error() || status.is_success()
        }
    };
    if passing {
        Error::Unavailable(error.into())
    } else {
        internal(error)
    }
}

fn internal(cause: impl Into<Cause>) -> Error {
    Error::Internal(cause.into())
}
