//! A deployment: the names of its tables, and the clients that access it.

mod aws;
mod stack;

use std::{fmt, time::Duration};

use anyhow::{Context as _, Result, anyhow};
use aws_config::{Region, SdkConfig};
use aws_sdk_dynamodb::{
    Client,
    config::{Builder as ConfigBuilder, retry::RetryConfig},
};
use workspace_management::{
    config::{self, read_variable},
    records::Table,
    store::{AdditionalRetryClassifier, TableNames},
};
use workspace_records::{
    kinds::{ALL_TABLES, HISTORY},
    local,
};

pub(crate) use self::stack::{Stack, output_value};

use self::aws::{check_endpoints, endpoint_url, load_sdk_config};
use crate::{errors::UsageError, http::Http};

/// The maximum number of attempts per request. Large removals run into throttling and conflicts.
const MAX_ATTEMPTS: u32 = 10;

/// The upper bound of the random wait before the second attempt. The bound doubles each time.
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);

/// The pause before an index on AWS is read again. The index usually needs less than a second to
/// catch up.
pub const INDEX_PAUSE: Duration = Duration::from_secs(2);

/// The variable that makes the SDK ignore endpoint URLs in the environment and in files.
const IGNORE_ENDPOINT_URLS: &str = "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS";

/// The variable for how many days entries of the history are kept.
const HISTORY_DAYS: &str = "HISTORY_DAYS";

/// As in template.yaml.
const DEFAULT_HISTORY_DAYS: u32 = 400;

/// The variable that names a file with root certificates.
const CA_BUNDLE: &str = "AWS_CA_BUNDLE";

/// What a command operates on. `Display` names it in messages.
pub struct Deployment {
    /// The DynamoDB client.
    pub dynamodb: Client,
    pub(crate) table_names: TableNames,
    /// The table of the history. `None` if the deployment has none.
    history_table: Option<String>,
    pub(crate) place: Place,
    /// The pause before an index is read again: [`INDEX_PAUSE`], or zero for the local service,
    /// whose indexes do not lag.
    pub index_pause: Duration,
    pub(crate) http: Http,
}

/// Where the tables are.
pub(crate) enum Place {
    /// The tables of the stack that the operator named.
    Stack(Stack),
    /// The tables that variables name.
    NamedTables {
        sdk_config: SdkConfig,
        /// The URL of DynamoDB, which is assumed to be a local one. `None` on AWS.
        dynamodb_url: Option<String>,
    },
    /// The tables of `cargo serve`.
    LocalService { dynamodb_url: String },
}

impl fmt::Display for Deployment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Stack(stack) => write!(f, "stack {}", stack.name),
            Place::NamedTables {
                sdk_config,
                dynamodb_url,
            } => {
                let region = sdk_config.region().map_or("", Region::as_ref);
                let location = dynamodb_url.as_deref().unwrap_or(region);
                // Any table's name would do.
                let table_name = self.table_name(Table::ORGANIZATIONS);
                write!(f, "{table_name} in {location}")
            }
            Place::LocalService { dynamodb_url } => write!(f, "local DynamoDB at {dynamodb_url}"),
        }
    }
}

impl Deployment {
    /// Resolves the deployment to work on, as the help of [`crate::Cli`] describes. Fails if the
    /// configuration of AWS or an endpoint URL is invalid, the stack is unreadable or incomplete,
    /// or only some table variables are set. The local service needs no configuration of AWS.
    pub(crate) async fn resolve(stack_name: Option<&str>) -> Result<Self> {
        let is_set = |table: &Table| read_variable(table.env_variable).is_some();
        if stack_name.is_none() && !ALL_TABLES.iter().any(is_set) {
            return Self::local_service(&local_service_url()?);
        }
        let (sdk_config, http) = load_sdk_config().await?;
        let dynamodb_url = endpoint_url(&sdk_config, "DynamoDB")?;
        let config = ConfigBuilder::from(&sdk_config)
            .retry_config(retry_config())
            // Also retries what the function retries, such as transaction conflicts.
            .retry_classifier(AdditionalRetryClassifier);
        let (table_names, history_table, place) = match stack_name {
            Some(name) => {
                check_endpoints(&sdk_config, dynamodb_url.as_deref())?;
                let stack = Stack::read(name, sdk_config).await?;
                let name_of = |table: Table| stack.physical_id(table.logical_id).map(str::to_owned);
                let history_table = name_of(HISTORY).ok();
                (
                    TableNames::new(name_of)?,
                    history_table,
                    Place::Stack(stack),
                )
            }
            None => {
                let name_of = |table: Table| {
                    read_variable(table.env_variable)
                        .with_context(|| format!("{} is not set", table.env_variable))
                };
                let place = Place::NamedTables {
                    sdk_config,
                    dynamodb_url,
                };
                let history_table = read_variable(HISTORY.env_variable);
                (TableNames::new(name_of)?, history_table, place)
            }
        };
        Ok(Self {
            dynamodb: Client::from_conf(config.build()),
            table_names,
            history_table,
            place,
            index_pause: INDEX_PAUSE,
            http,
        })
    }

    /// The local service whose DynamoDB is at this URL. Requests are not retried, so that they fail
    /// at once if nothing is listening. Fails if the file with root certificates is invalid.
    pub fn local_service(dynamodb_url: &str) -> Result<Self> {
        let http = Http::new(read_variable(CA_BUNDLE));
        let config = local::sdk_config(dynamodb_url)
            .http_client(http.client(dynamodb_url)?)
            .retry_config(RetryConfig::disabled());
        Ok(Self {
            dynamodb: Client::from_conf(config.build()),
            table_names: local::table_names(),
            history_table: Some(HISTORY.logical_id.to_owned()),
            place: Place::LocalService {
                dynamodb_url: dynamodb_url.to_owned(),
            },
            index_pause: Duration::ZERO,
            http,
        })
    }

    pub(crate) fn table_name(&self, table: Table) -> &str {
        match &self.history_table {
            Some(name) if table == HISTORY => name,
            None if table == HISTORY => HISTORY.logical_id,
            _ => self.table_names.get(table),
        }
    }

    /// The tables with their names. Lacks the history if there is no table for it.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (Table, &str)> {
        let tables = Table::ALL.iter();
        let tables = tables.map(|table| (*table, self.table_names.get(*table)));
        let history_table = self.history_table.as_deref();
        tables.chain(history_table.map(|name| (HISTORY, name)))
    }

    /// Fails if there is no table for the history.
    pub(crate) fn require_history(&self) -> Result<()> {
        if self.history_table.is_some() {
            return Ok(());
        }
        Err(match &self.place {
            Place::Stack(stack) => anyhow!(
                "the stack {} has no {}, in which each change is recorded: deploy it again with the current template.yaml",
                stack.name,
                HISTORY.logical_id
            ),
            _ => UsageError(format!(
                "{} is not set: it must be the name of the table in which each change is recorded",
                HISTORY.env_variable
            ))
            .into(),
        })
    }

    /// For how many days entries of the history are kept. Fails if there is no table for them.
    pub(crate) async fn history_days(&self) -> Result<u32> {
        self.require_history()?;
        let (days, source) = match &self.place {
            Place::LocalService { .. } => (None, ""),
            Place::NamedTables { .. } => (read_variable(HISTORY_DAYS), HISTORY_DAYS),
            Place::Stack(stack) => {
                let description = stack.describe().await?;
                let days = output_value(&description, "HistoryDays");
                (days, "the output HistoryDays of the stack")
            }
        };
        let Some(days) = days else {
            return Ok(DEFAULT_HISTORY_DAYS);
        };
        let days = days.parse().ok().filter(|days| *days > 0);
        days.with_context(|| format!("{source} must be a number of days"))
    }

    /// The configuration for other services of AWS. `None` unless the tables are on AWS, and should
    /// therefore have backups and deletion protection.
    pub(crate) fn aws_config(&self) -> Option<&SdkConfig> {
        match &self.place {
            Place::Stack(stack) => Some(&stack.sdk_config),
            Place::NamedTables {
                sdk_config,
                dynamodb_url: None,
            } => Some(sdk_config),
            Place::NamedTables { .. } | Place::LocalService { .. } => None,
        }
    }

    /// A command line for this deployment, as far as options can name it.
    pub(crate) fn command_line(&self, arguments: &str) -> String {
        match &self.place {
            Place::Stack(stack) => format!("workspacectl --stack {} {arguments}", stack.name),
            Place::NamedTables { .. } | Place::LocalService { .. } => {
                format!("workspacectl {arguments}")
            }
        }
    }

    pub(crate) fn is_on_aws(&self) -> bool {
        self.aws_config().is_some()
    }
}

/// For requests that are likely to be throttled.
pub(crate) fn retry_config() -> RetryConfig {
    RetryConfig::standard()
        .with_max_attempts(MAX_ATTEMPTS)
        .with_initial_backoff(INITIAL_BACKOFF)
}

/// The URL of the local service's DynamoDB. Fails if the environment has an invalid URL, or one
/// that it tells to ignore.
fn local_service_url() -> Result<String, UsageError> {
    let url =
        config::endpoint_url(&read_variable).map_err(|error| UsageError(error.to_string()))?;
    let ignored = read_variable(IGNORE_ENDPOINT_URLS);
    if url.is_some() && ignored.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Err(UsageError(format!(
            "{IGNORE_ENDPOINT_URLS} excludes AWS_ENDPOINT_URL_DYNAMODB and AWS_ENDPOINT_URL: unset one of them, or use a stack"
        )));
    }
    Ok(url.unwrap_or_else(|| local::DYNAMODB_URL.to_owned()))
}
