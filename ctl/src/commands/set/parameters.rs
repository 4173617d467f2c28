//! The parameters that a CloudFormation template declares, and the rules for their values.

use anyhow::{Context as _, Result};
use regex_lite::Regex;
use yaml_serde::Value;

use crate::usage::UsageError;

/// The declarations of a template's parameters.
pub(crate) struct Parameters(Value);

impl Parameters {
    /// The parameters of a template in YAML or JSON.
    ///
    /// # Errors
    /// If the template cannot be parsed.
    pub(crate) fn parse(template: &str) -> Result<Self> {
        let template: Value =
            yaml_serde::from_str(template).context("the stack's template cannot be parsed")?;
        Ok(Self(template["Parameters"].clone()))
    }

    /// Checks a value against the rules of its parameter. Accepts a value whose rules only
    /// CloudFormation can check, such as a `Type` of AWS.
    ///
    /// # Errors
    /// If there is no such parameter, or a rule forbids the value.
    pub(crate) fn check(&self, name: &str, value: &str) -> Result<(), UsageError> {
        let Some(parameter) = self.0.get(name) else {
            let names = self.0.as_mapping().into_iter().flatten();
            let names: Vec<_> = names.filter_map(|(name, _)| name.as_str()).collect();
            return Err(UsageError(format!(
                "the stack has no parameter {name}: use one of {}",
                names.join(", ")
            )));
        };
        let Some(rule) = violation(parameter, value) else {
            return Ok(());
        };
        let rule = text(&parameter["ConstraintDescription"]).unwrap_or(rule);
        Err(UsageError(format!(
            "invalid value {value:?} for {name}: {rule}"
        )))
    }
}

/// The first rule that a value violates, such as "must be a number".
fn violation(parameter: &Value, value: &str) -> Option<String> {
    let entries = || value.split(',').map(str::trim);
    match parameter["Type"].as_str()? {
        "String" => text_violation(parameter, value),
        "Number" => number_violation(parameter, value),
        "CommaDelimitedList" => entries().find_map(|entry| text_violation(parameter, entry)),
        "List<Number>" => entries().find_map(|entry| number_violation(parameter, entry)),
        _ => None,
    }
}

fn number_violation(parameter: &Value, value: &str) -> Option<String> {
    let range = Range::of(parameter, "MinValue", "MaxValue");
    let number = value.parse().ok().filter(|number: &f64| number.is_finite());
    match number.is_some_and(|number| range.contains(number)) {
        true => unlisted(parameter, value),
        false => Some(format!("must be a number{}", range.describe())),
    }
}

fn text_violation(parameter: &Value, value: &str) -> Option<String> {
    let length = Range::of(parameter, "MinLength", "MaxLength");
    if !length.contains(value.chars().count() as f64) {
        return Some(format!(
            "must have a number of characters{}",
            length.describe()
        ));
    }
    if let Some(pattern) = parameter["AllowedPattern"].as_str()
        // CloudFormation checks the patterns that only its engine supports.
        && let Ok(regex) = Regex::new(&format!("^(?:{pattern})$"))
        && !regex.is_match(value)
    {
        return Some(format!("must match the pattern {pattern}"));
    }
    unlisted(parameter, value)
}

/// The rule `AllowedValues`, if the value violates it.
fn unlisted(parameter: &Value, value: &str) -> Option<String> {
    let allowed = parameter["AllowedValues"].as_sequence()?;
    let allowed: Vec<_> = allowed.iter().filter_map(text).collect();
    let is_allowed = allowed.iter().any(|allowed| allowed == value);
    (!is_allowed).then(|| format!("must be one of {}", allowed.join(", ")))
}

/// The limits of a number. Either is optional.
struct Range(Option<f64>, Option<f64>);

impl Range {
    fn of(parameter: &Value, min: &str, max: &str) -> Self {
        let limit = |rule| text(&parameter[rule])?.parse().ok();
        Self(limit(min), limit(max))
    }

    fn contains(&self, number: f64) -> bool {
        self.0.is_none_or(|min| number >= min) && self.1.is_none_or(|max| number <= max)
    }

    /// The limits, as the end of a sentence.
    fn describe(&self) -> String {
        match (self.0, self.1) {
            (Some(min), Some(max)) => format!(" from {min} to {max}"),
            (Some(min), None) => format!(" of at least {min}"),
            (None, Some(max)) => format!(" of at most {max}"),
            (None, None) => String::new(),
        }
    }
}

/// A scalar as text. CloudFormation compares values as text, and templates quote them or not.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(boolean) => Some(boolean.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use workspace_local::tables::TEMPLATE;

    use super::*;

    /// A template with one parameter, in JSON.
    fn declared(parameter: &str) -> Parameters {
        Parameters::parse(&format!("{{\n\t\"Parameters\": {{\"P\": {parameter}}}}}")).unwrap()
    }

    #[track_caller]
    fn assert_rejected(parameters: &Parameters, name: &str, value: &str, rule: &str) {
        let error = parameters.check(name, value).unwrap_err().to_string();
        assert_eq!(error, format!("invalid value {value:?} for {name}: {rule}"));
    }

    #[test]
    fn every_default_of_the_template_is_accepted() {
        let parameters = Parameters::parse(TEMPLATE).unwrap();
        let declarations = parameters.0.as_mapping().unwrap();
        assert!(declarations.contains_key("MemorySize"));
        for (name, declaration) in declarations {
            let (name, default) = (name.as_str().unwrap(), text(&declaration["Default"]));
            let Some(default) = default else { continue };
            let checked = parameters.check(name, &default);
            assert!(checked.is_ok(), "{name}: {checked:?}");
        }
    }

    #[test]
    fn values_within_the_rules_of_the_template_are_accepted() {
        let parameters = Parameters::parse(TEMPLATE).unwrap();
        for (name, value) in [
            ("MemorySize", "128"),
            ("MemorySize", "10240"),
            ("KeyCacheSeconds", "0"),
            ("LogRetentionDays", "3653"),
            ("AnonymousOperations", "denied"),
            ("ReservedConcurrency", "1000"),
            ("Dashboard", "false"),
            ("AlarmTopic", "arn:aws:sns:us-east-1:123456789012:alarms"),
            (
                "CertificateArn",
                "arn:aws:acm:us-east-1:123456789012:certificate/1",
            ),
            (
                "CorsAllowOrigins",
                "https://a.example.com,https://b.example.com",
            ),
        ] {
            let checked = parameters.check(name, value);
            assert!(checked.is_ok(), "{name}={value}: {checked:?}");
        }
    }

    #[test]
    fn values_outside_the_rules_of_the_template_are_rejected() {
        let parameters = Parameters::parse(TEMPLATE).unwrap();
        let days = "must be one of 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, \
            1096, 1827, 2192, 2557, 2922, 3288, 3653";
        let topic = "must be the ARN of an SNS topic, or empty";
        for (name, value, rule) in [
            ("MemorySize", "127", "must be a number from 128 to 10240"),
            ("MemorySize", "10241", "must be a number from 128 to 10240"),
            ("MemorySize", "256MB", "must be a number from 128 to 10240"),
            ("MemorySize", "", "must be a number from 128 to 10240"),
            ("MemorySize", "NaN", "must be a number from 128 to 10240"),
            ("KeyCacheSeconds", "-1", "must be a number from 0 to 3600"),
            (
                "ReservedConcurrency",
                "-2",
                "must be a number of at least -1",
            ),
            (
                "ReservedConcurrency",
                "inf",
                "must be a number of at least -1",
            ),
            ("LogRetentionDays", "2", days),
            ("Architecture", "ARM64", "must be one of x86_64, arm64"),
            ("Dashboard", "yes", "must be one of true, false"),
            ("AnonymousOperations", "", "must be one of allowed, denied"),
            ("AlarmTopic", "alarms", topic),
            ("AlarmTopic", "arn:aws:sns:us-east-1:1234:alarms", topic),
            (
                "AlarmTopic",
                " arn:aws:sns:us-east-1:123456789012:alarms",
                topic,
            ),
            (
                "CertificateArn",
                "arn:aws:iam::1:role/a",
                "must be the ARN of an ACM certificate, or empty",
            ),
        ] {
            assert_rejected(&parameters, name, value, rule);
        }
    }

    #[test]
    fn an_unknown_name_lists_the_parameters() {
        let parameters = Parameters::parse(TEMPLATE).unwrap();
        let error = parameters.check("Memory", "256").unwrap_err().to_string();
        assert!(
            error.starts_with("the stack has no parameter Memory: use one of Architecture, ")
                && error.contains(", MemorySize, "),
            "{error}"
        );
    }

    #[test]
    fn rules_that_the_template_does_not_use_are_checked() {
        let length = r#"{"Type": "String", "MinLength": "2", "MaxLength": 3}"#;
        let max = r#"{"Type": "Number", "MaxValue": 5}"#;
        let pattern = r#"{"Type": "String", "AllowedPattern": "[a-z]|[0-9]"}"#;
        let list = r#"{"Type": "CommaDelimitedList", "AllowedValues": ["a", "b"]}"#;
        let numbers = r#"{"Type": "List<Number>"}"#;
        for (parameter, accepted, rejected, rule) in [
            (
                length,
                "éé",
                "é",
                "must have a number of characters from 2 to 3",
            ),
            (
                length,
                "abc",
                "abcd",
                "must have a number of characters from 2 to 3",
            ),
            (max, "5", "5.5", "must be a number of at most 5"),
            // The whole value has to match.
            (pattern, "a", "ab", "must match the pattern [a-z]|[0-9]"),
            (list, "a, b", "a,c", "must be one of a, b"),
            (numbers, "1,2", "1,x", "must be a number"),
        ] {
            let parameters = declared(parameter);
            let checked = parameters.check("P", accepted);
            assert!(checked.is_ok(), "{parameter} {accepted}: {checked:?}");
            assert_rejected(&parameters, "P", rejected, rule);
        }
    }

    #[test]
    fn rules_that_only_cloudformation_can_check_are_accepted() {
        for parameter in [
            r#"{"Type": "AWS::EC2::VPC::Id", "AllowedValues": ["vpc-1"]}"#,
            r#"{"Type": "String", "AllowedPattern": "(?!aws).*"}"#,
        ] {
            let checked = declared(parameter).check("P", "aws");
            assert!(checked.is_ok(), "{parameter}: {checked:?}");
        }
    }
}
