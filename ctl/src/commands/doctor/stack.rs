//! Checks what only a stack has.

use anyhow::{Context as _, Result, bail};
use aws_sdk_cloudformation::types::Stack as Description;
use workspace_management::store::{Table, TableNames};

use crate::deployment::Stack;

/// An output of a stack.
pub(super) fn output(description: &Description, key: &str) -> Option<String> {
    let mut outputs = description.outputs().iter();
    let output = outputs.find(|output| output.output_key() == Some(key))?;
    output.output_value.clone()
}

/// Checks that the function uses the tables of its stack. A request shows this only for the tables
/// that it reads, and only if the others do not exist.
pub(super) async fn check_function(stack: &Stack, tables: &TableNames) -> Result<String> {
    let configuration = aws_sdk_lambda::Client::new(&stack.config)
        .get_function_configuration()
        .function_name(stack.resource("Function")?)
        .send()
        .await
        .context("cannot read the configuration of the function")?;
    let environment = configuration.environment;
    let variables = environment.and_then(|environment| environment.variables);
    let variables = variables.unwrap_or_default();
    let mut problems = Vec::new();
    for table in Table::ALL {
        let (variable, expected) = (table.variable, tables.name(*table));
        match variables.get(variable) {
            Some(name) if name == expected => {}
            Some(name) => problems.push(format!("{variable} is {name} instead of {expected}")),
            None => problems.push(format!("{variable} is not set: it must be {expected}")),
        }
    }
    if !problems.is_empty() {
        bail!("{}. Deploy the stack again", problems.join("; "));
    }
    Ok(format!("uses the {} tables of the stack", Table::ALL.len()))
}
