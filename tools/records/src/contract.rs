//! The operations that `openapi.yaml` describes, and the requests in its examples.

use std::sync::LazyLock;

use workspace_management::operations::Operation;
use yaml_serde::Value;

/// `openapi.yaml` at the time of the build.
pub const OPENAPI: &str = include_str!("../../../openapi.yaml");

/// The content of `openapi.yaml`. Objects keep the order of their fields.
///
/// # Panics
/// If `openapi.yaml` is not valid YAML.
pub fn contract() -> &'static Value {
    static PARSED: LazyLock<Value> =
        LazyLock::new(|| yaml_serde::from_str(OPENAPI).expect("openapi.yaml is valid YAML"));
    &PARSED
}

/// The target of a `$ref`, or the value itself.
pub fn resolve(value: &'static Value) -> &'static Value {
    match value["$ref"].as_str() {
        Some(reference) => {
            let names = reference.split('/').skip(1);
            resolve(names.fold(contract(), |parent, name| &parent[name]))
        }
        None => value,
    }
}

/// An operation in the contract.
#[derive(Debug, Clone, Copy)]
pub struct Description {
    /// The path, such as `/api/v1/org/{org_id}/dataStores/create`.
    pub path: &'static str,
    /// The OpenAPI object that describes the operation.
    pub object: &'static Value,
}

impl Description {
    /// The description of an operation. `None` if the contract lacks the operation.
    pub fn find(operation: Operation) -> Option<Self> {
        let mut paths = contract()["paths"].as_mapping()?.iter();
        let is_path = |item: &Value| item["post"]["operationId"] == operation.name();
        let (path, item) = paths.find(|(_, item)| is_path(item))?;
        let (path, object) = (path.as_str()?, &item["post"]);
        Some(Self { path, object })
    }

    /// The description of an operation.
    ///
    /// # Panics
    /// If the contract lacks the operation.
    pub fn of(operation: Operation) -> Self {
        let name = operation.name();
        Self::find(operation).unwrap_or_else(|| panic!("openapi.yaml has no operationId {name}"))
    }

    /// The path parameters, in their order in the path.
    pub fn path_parameters(self) -> Vec<&'static Value> {
        let parameters = self.object["parameters"].as_sequence();
        let mut parameters: Vec<_> = parameters.into_iter().flatten().map(resolve).collect();
        parameters.retain(|parameter| parameter["in"] == "path");
        parameters
    }

    /// The path in which each path parameter has the value that `value_of` returns.
    pub fn path_with(self, value_of: impl Fn(&'static Value) -> String) -> String {
        let mut path = self.path.to_owned();
        for parameter in self.path_parameters() {
            let name = parameter["name"].as_str().unwrap_or_default();
            path = path.replace(&format!("{{{name}}}"), &value_of(parameter));
        }
        path
    }

    /// The schema of the body and its example.
    pub fn body(self) -> &'static Value {
        &self.object["requestBody"]["content"]["application/json"]
    }
}

/// A request for an operation.
#[derive(Debug)]
pub struct Request {
    /// The path with the names of its path parameters.
    pub route: &'static str,
    /// The path with the values of its path parameters.
    pub path: String,
    /// The body, as JSON.
    pub body: String,
}

/// The request in the example of an operation. `replacement` returns the value of the path parameter
/// with this name, or `None` for the value in the example.
///
/// # Panics
/// If the contract lacks the operation or a part of its example.
pub fn example<'a>(operation: Operation, replacement: impl Fn(&str) -> Option<&'a str>) -> Request {
    let description = Description::of(operation);
    let path = description.path_with(|parameter| {
        let name = parameter["name"].as_str().unwrap_or_default();
        let value = replacement(name).or(parameter["example"].as_str());
        let value = value.unwrap_or_else(|| panic!("openapi.yaml has no example of {name}"));
        value.to_owned()
    });
    let name = operation.name();
    let body = description.body().get("example");
    let body = body.unwrap_or_else(|| panic!("openapi.yaml has no example of a body of {name}"));
    Request {
        route: description.path,
        path,
        body: serde_json::to_string(body).expect("the example is JSON"),
    }
}
