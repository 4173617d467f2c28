//! Evaluates the intrinsic functions of `template.yaml`, as CloudFormation does for given
//! parameters.

use std::collections::BTreeMap;

use workspace_local::tables::TEMPLATE;
use yaml_serde::{Mapping, Value};

/// The template with values for its parameters.
pub struct Stack {
    template: Value,
    parameters: BTreeMap<String, Value>,
}

impl Stack {
    /// A stack with the default of each parameter that is not given. Without one, anonymous callers
    /// are denied.
    pub fn new(parameters: &[(&str, &str)]) -> Self {
        let template: Value = yaml_serde::from_str(TEMPLATE).unwrap();
        let mut values = BTreeMap::new();
        values.insert("AnonymousOperations".to_owned(), Value::from("denied"));
        for (name, parameter) in template["Parameters"].as_mapping().unwrap() {
            if let Some(default) = parameter.get("Default") {
                values.insert(name.as_str().unwrap().to_owned(), default.clone());
            }
        }
        for (name, value) in parameters {
            let parameter = &template["Parameters"][*name];
            assert!(!parameter.is_null(), "no parameter {name}");
            if let Some(allowed) = parameter.get("AllowedValues").and_then(Value::as_sequence) {
                assert!(
                    allowed.iter().any(|allowed| text(allowed) == *value),
                    "{name} {value}"
                );
            }
            values.insert((*name).to_owned(), Value::from(*value));
        }
        Self {
            template,
            parameters: values,
        }
    }

    /// The resources of the stack and their properties, with all functions evaluated. A reference to
    /// a resource or a pseudo parameter is its name.
    pub fn resources(&self) -> BTreeMap<String, Resource> {
        let resources = self.template["Resources"].as_mapping().unwrap().iter();
        let exists = |resource: &Value| match &resource["Condition"] {
            Value::Null => true,
            name => self.condition(name.as_str().unwrap()),
        };
        resources
            .filter(|(_, resource)| exists(resource))
            .map(|(id, resource)| {
                let kind = resource["Type"].as_str().unwrap().to_owned();
                let properties = self.evaluate(&resource["Properties"]);
                let id = id.as_str().unwrap().to_owned();
                (id, Resource { kind, properties })
            })
            .collect()
    }

    /// The resources of a type.
    pub fn of_type(&self, kind: &str) -> BTreeMap<String, Resource> {
        let resources = self.resources().into_iter();
        resources
            .filter(|(_, resource)| resource.kind == kind)
            .collect()
    }

    fn condition(&self, name: &str) -> bool {
        let condition = &self.template["Conditions"][name];
        assert!(!condition.is_null(), "no condition {name}");
        is_true(&self.evaluate(condition))
    }

    fn reference(&self, name: &str) -> Value {
        if let Some(value) = self.parameters.get(name) {
            return value.clone();
        }
        match name {
            "AWS::NoValue" => Value::Null,
            "AWS::StackId" => {
                Value::from("arn:aws:cloudformation:us-east-1:123456789012:stack/stack/uuid")
            }
            _ => {
                let resource = name.split('.').next().unwrap();
                let exists = !self.template["Resources"][resource].is_null();
                assert!(exists || name.starts_with("AWS::"), "{name} has no value");
                Value::from(name)
            }
        }
    }

    fn evaluate(&self, value: &Value) -> Value {
        match value {
            Value::Tagged(tagged) => {
                let tag = tagged.tag.to_string();
                self.function(tag.trim_start_matches('!'), &tagged.value)
            }
            Value::Mapping(mapping) => self.mapping(mapping),
            Value::Sequence(values) => {
                let values = values.iter().map(|value| self.evaluate(value));
                Value::Sequence(values.filter(|value| !value.is_null()).collect())
            }
            value => value.clone(),
        }
    }

    fn mapping(&self, mapping: &Mapping) -> Value {
        if let (1, Some((name, argument))) = (mapping.len(), mapping.iter().next())
            && let Some(function) = name.as_str().and_then(|name| name.strip_prefix("Fn::"))
        {
            return self.function(function, argument);
        }
        let members = mapping.iter();
        let members = members.map(|(name, value)| (name.clone(), self.evaluate(value)));
        Value::Mapping(members.filter(|(_, value)| !value.is_null()).collect())
    }

    /// # Panics
    /// If the template uses a function that is not known here.
    fn function(&self, name: &str, argument: &Value) -> Value {
        let arguments = || argument.as_sequence().unwrap().iter();
        let conditions = || arguments().map(|argument| is_true(&self.evaluate(argument)));
        match name {
            "Ref" | "GetAtt" => self.reference(argument.as_str().unwrap()),
            "Sub" => match argument {
                Value::Sequence(argument) => {
                    Value::from(self.substitute(&text(&argument[0]), &self.evaluate(&argument[1])))
                }
                pattern => Value::from(self.substitute(&text(pattern), &Value::Null)),
            },
            "Condition" => Value::from(self.condition(argument.as_str().unwrap())),
            "If" => {
                let chosen = if self.condition(argument[0].as_str().unwrap()) {
                    &argument[1]
                } else {
                    &argument[2]
                };
                self.evaluate(chosen)
            }
            // Parameters are compared as strings.
            "Equals" => {
                let texts = arguments().map(|argument| text(&self.evaluate(argument)));
                let texts: Vec<_> = texts.collect();
                Value::from(texts[0] == texts[1])
            }
            "Not" => Value::from(conditions().all(|condition| !condition)),
            "And" => Value::from(conditions().all(|condition| condition)),
            "Or" => Value::from(conditions().any(|condition| condition)),
            "Split" => {
                let joined = text(&self.evaluate(&argument[1]));
                let parts = joined.split(argument[0].as_str().unwrap());
                Value::Sequence(parts.map(Value::from).collect())
            }
            "Select" => self.evaluate(&argument[1])[argument[0].as_u64().unwrap() as usize].clone(),
            _ => panic!("unknown function {name}: {argument:?}"),
        }
    }

    /// Replaces each `${name}` by one of the variables, a parameter or a resource.
    fn substitute(&self, pattern: &str, variables: &Value) -> String {
        let mut result = String::new();
        let mut rest = pattern;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after.split_once('}').unwrap();
            result += before;
            let variable = variables.get(name).cloned();
            result += &text(&variable.unwrap_or_else(|| self.reference(name)));
            rest = after;
        }
        result + rest
    }
}

/// A resource of a [`Stack`].
pub struct Resource {
    /// Such as `AWS::DynamoDB::Table`.
    pub kind: String,
    pub properties: Value,
}

impl Resource {
    /// The indexes of a table.
    pub fn indexes(&self) -> impl Iterator<Item = &Value> {
        let indexes = self.properties.get("GlobalSecondaryIndexes");
        indexes.and_then(Value::as_sequence).into_iter().flatten()
    }
}

fn is_true(value: &Value) -> bool {
    value.as_bool().expect("a condition")
}

/// A scalar as text, as CloudFormation passes it.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        value => panic!("{value:?} is not a scalar"),
    }
}

#[test]
fn functions_are_evaluated_for_the_parameters_of_a_stack() {
    let stack = Stack::new(&[("MaxWriteUnits", "7")]);
    let evaluate = |yaml: &str| stack.evaluate(&yaml_serde::from_str(yaml).unwrap());
    for (yaml, expected) in [
        ("!Ref MaxWriteUnits", "\"7\""),
        ("!Ref MemorySize", "256"),
        ("!GetAtt ModelsTable.Arn", "ModelsTable.Arn"),
        ("!Sub 'x${MaxWriteUnits}y${AWS::Region}'", "x7yAWS::Region"),
        ("!If [AnonymousCallersAllowed, 1, 2]", "2"),
        ("Fn::If: [HasCors, 1, !Ref AWS::NoValue]", "null"),
        (
            "!And [!Condition HasAlarms, !Not [!Condition HasCors]]",
            "true",
        ),
        (
            "!Or [!Condition HasCors, !Equals [!Ref MemorySize, '256']]",
            "true",
        ),
        (
            "{ a: [1, !Ref AWS::NoValue], b: !Ref AWS::NoValue }",
            "{ a: [1] }",
        ),
        ("!Split [',', 'a,b']", "[a, b]"),
        (
            "!Sub ['${A}-${MaxWriteUnits}', { A: !Select [2, !Split [/, !Ref AWS::StackId]] }]",
            "uuid-7",
        ),
    ] {
        let expected: Value = yaml_serde::from_str(expected).unwrap();
        assert_eq!(evaluate(yaml), expected, "{yaml}");
    }
    assert!(!stack.resources().contains_key("Domain"));
    let alarm = &stack.resources()["LatencyAlarm"];
    assert_eq!(alarm.kind, "AWS::CloudWatch::Alarm");
}
