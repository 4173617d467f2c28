//! `doctor`: whether a deployment is well, as far as can be seen without changing it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use aws_sdk_dynamodb::{
    config::http::HttpRequest,
    types::{BillingMode, KeySchemaElement, TableDescription, TableStatus},
};
use aws_smithy_http_client::{
    Connector,
    tls::{Provider, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::client::http::{HttpConnector as _, SharedHttpConnector};
use aws_smithy_types::{body::SdkBody, byte_stream::ByteStream};
use serde_json::{Value, json};
use tokio::time::timeout;
use workspace_local::tables::{Declaration, Key};
use workspace_management::store::Table;

use crate::{
    deployment::Deployment,
    output::{print_records, span},
};

/// How long the API may take to answer, a cold start included.
const PATIENCE: Duration = Duration::from_secs(15);

/// What to look at besides the tables.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The API's address; without it, the stack's, or that of `serve`
    #[arg(long)]
    url: Option<String>,
}

/// Looks at the tables and the API, and prints what it sees.
///
/// # Errors
/// If anything is wrong.
pub(crate) async fn run(options: Options, deployment: &Deployment, json: bool) -> Result<()> {
    let mut findings = Vec::new();
    for table in Table::ALL {
        let found = look_at(table, deployment).await;
        findings.push((
            format!("{} {}", table.logical_id, deployment.tables.name(table)),
            found,
        ));
    }
    let url = match options.url {
        Some(url) => Some(url),
        None => deployment.api_url().await?,
    };
    match url {
        Some(url) => findings.push((format!("API {url}"), ask(&url).await)),
        None => eprintln!("the API was not looked at: give its address with --url"),
    }
    let wrong = findings.iter().filter(|(_, found)| found.is_err()).count();
    let shown: Vec<Value> = findings
        .into_iter()
        .map(|(looked_at, found)| {
            let (state, detail) = match found {
                Ok(detail) => ("well", detail),
                Err(error) => ("wrong", format!("{error:#}")),
            };
            json!({ "state": state, "looked_at": looked_at, "detail": detail })
        })
        .collect();
    print_records(&shown, &["state", "looked_at", "detail"], json)?;
    if wrong > 0 {
        bail!("{wrong} of {} are wrong", shown.len());
    }
    Ok(())
}

/// Whether a table is as the template declares it.
async fn look_at(table: Table, deployment: &Deployment) -> Result<String> {
    let name = deployment.tables.name(table);
    let described = deployment
        .client
        .describe_table()
        .table_name(name)
        .send()
        .await;
    let described = described
        .context("it cannot be reached")?
        .table
        .context("it has no description")?;
    let mut differences = differences(&Declaration::of(table)?, &described);
    if deployment.is_on_aws {
        if described.deletion_protection_enabled != Some(true) {
            differences.push("it can be deleted: DeletionProtection is off".to_owned());
        }
        let backups = deployment
            .client
            .describe_continuous_backups()
            .table_name(name)
            .send()
            .await;
        let backups = backups.context("its backups cannot be looked at")?;
        let recovery = backups
            .continuous_backups_description
            .and_then(|backups| backups.point_in_time_recovery_description)
            .and_then(|recovery| recovery.point_in_time_recovery_status);
        if recovery.is_none_or(|status| status.as_str() != "ENABLED") {
            differences.push("point-in-time recovery is off".to_owned());
        }
    }
    if differences.is_empty() {
        Ok(format!(
            "about {} records",
            described.item_count.unwrap_or_default()
        ))
    } else {
        bail!(differences.join("; "))
    }
}

/// In what a table is not as declared.
fn differences(declaration: &Declaration, table: &TableDescription) -> Vec<String> {
    let mut differences = Vec::new();
    let mut expect = |holds: bool, difference: String| {
        if !holds {
            differences.push(difference);
        }
    };
    let status = table
        .table_status
        .as_ref()
        .map_or("unknown", TableStatus::as_str);
    expect(status == "ACTIVE", format!("its status is {status}"));
    let has_keys = |declared: &[Key], present: &[KeySchemaElement]| {
        declared.len() == present.len()
            && declared.iter().zip(present).all(|(declared, present)| {
                declared.attribute_name == present.attribute_name
                    && declared.key_type == present.key_type.as_str()
            })
    };
    let is_keyed = has_keys(&declaration.key_schema, table.key_schema());
    expect(
        is_keyed,
        "its key is another than the template's".to_owned(),
    );
    let types = declaration.attribute_definitions.iter().all(|declared| {
        let mut present = table.attribute_definitions().iter();
        present.any(|present| {
            present.attribute_name == declared.attribute_name
                && present.attribute_type.as_str() == declared.attribute_type
        })
    });
    expect(
        types,
        "its key's attributes have other types than the template's".to_owned(),
    );
    let billing = table
        .billing_mode_summary()
        .and_then(|billing| billing.billing_mode.clone());
    let is_on_demand = billing == Some(BillingMode::PayPerRequest);
    expect(is_on_demand, "it is not billed by request".to_owned());
    for declared in &declaration.global_secondary_indexes {
        let mut indexes = table.global_secondary_indexes().iter();
        let present = indexes.any(|index| {
            index.index_name.as_ref() == Some(&declared.index_name)
                && has_keys(&declared.key_schema, index.key_schema())
        });
        expect(present, format!("it has no index {}", declared.index_name));
    }
    differences
}

/// Whether the service answers at an address: a request without a key is refused as only this service does.
async fn ask(url: &str) -> Result<String> {
    let connector = Connector::builder()
        .tls_provider(Provider::rustls(CryptoMode::Ring))
        .build();
    let mut request = HttpRequest::new(SdkBody::from("{}"));
    request.set_method("POST")?;
    let path = "/api/v1/bot/playground/doctor/voice";
    request.set_uri(format!("{}{path}", url.trim_end_matches('/')))?;
    request
        .headers_mut()
        .insert("content-type", "application/json");
    let started = Instant::now();
    let answered = async {
        let response = SharedHttpConnector::new(connector)
            .call(request)
            .await
            .context("it cannot be reached")?;
        let status = response.status().as_u16();
        let id = response.headers().get("x-request-id").map(str::to_owned);
        let body = ByteStream::new(response.into_body())
            .collect()
            .await?
            .into_bytes();
        anyhow::Ok((status, id, body))
    };
    let (status, id, body) = timeout(PATIENCE, answered)
        .await
        .with_context(|| format!("it does not answer within {}", span(PATIENCE)))??;
    let code = serde_json::from_slice::<Value>(&body).unwrap_or_default()["code"].clone();
    match (status, id, code.as_str()) {
        (401, Some(_), Some("unauthenticated")) => {
            Ok(format!("answers, in {} ms", started.elapsed().as_millis()))
        }
        (500.., Some(id), _) => {
            bail!("answers {status}: look for the request id {id} in the function's log")
        }
        _ => bail!("something else than this service answers: {status}"),
    }
}
