//! Stacks.

use std::collections::HashMap;

use anyhow::{Context as _, Result};
use aws_config::SdkConfig;
use aws_sdk_cloudformation::types::Stack as StackDescription;

use crate::errors::RequestResultExt as _;

/// A CloudFormation stack and its resources.
pub(crate) struct Stack {
    pub(crate) name: String,
    /// The configuration for clients of other AWS services.
    pub(crate) sdk_config: SdkConfig,
    /// The physical id of each resource, by its logical id.
    resources: HashMap<String, String>,
}

impl Stack {
    /// Reads the resources of a stack.
    pub(super) async fn read(name: &str, sdk_config: SdkConfig) -> Result<Self> {
        let mut resource_summaries = aws_sdk_cloudformation::Client::new(&sdk_config)
            .list_stack_resources()
            .stack_name(name)
            .into_paginator()
            .items()
            .send();
        let mut resources = HashMap::new();
        while let Some(resource) = resource_summaries.next().await {
            let resource = resource.aws_context(format!("cannot read the stack {name}"))?;
            if let (Some(logical_id), Some(physical_id)) =
                (resource.logical_resource_id, resource.physical_resource_id)
            {
                resources.insert(logical_id, physical_id);
            }
        }
        Ok(Self {
            name: name.to_owned(),
            sdk_config,
            resources,
        })
    }

    /// The physical id of a resource, such as the name of a table.
    pub(crate) fn physical_id(&self, logical_id: &str) -> Result<&str> {
        let physical_id = self.resources.get(logical_id).map(String::as_str);
        physical_id.with_context(|| {
            let name = &self.name;
            format!("the stack {name} has no {logical_id}: check that it was deployed from template.yaml")
        })
    }

    /// Reads the outputs and settings of the stack.
    pub(crate) async fn describe(&self) -> Result<StackDescription> {
        let client = aws_sdk_cloudformation::Client::new(&self.sdk_config);
        let result = client.describe_stacks().stack_name(&self.name).send().await;
        let response = result.aws_context(format!("cannot read the stack {}", self.name))?;
        let stack = response.stacks.unwrap_or_default().into_iter().next();
        stack.context("CloudFormation returned no stack")
    }
}

/// The value of an output of a stack.
pub(crate) fn output_value(description: &StackDescription, key: &str) -> Option<String> {
    let output = description
        .outputs()
        .iter()
        .find(|output| output.output_key() == Some(key))?;
    output.output_value.clone()
}
