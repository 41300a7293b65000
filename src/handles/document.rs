//! The OpenAPI document of the handles.

use serde_json::{Map, Value, json};

use super::handle::{ClusterHandle, ROOT};

/// All operations (OpenAPI 3.0).
pub(crate) fn document(operations: &[ClusterHandle]) -> Value {
    let mut paths = Map::new();
    for operation in operations {
        let path = format!("{ROOT}{}", operation.path);
        let methods = paths.entry(path).or_insert_with(|| json!({}));
        methods[operation.method.as_str().to_lowercase()] = described(operation);
    }
    let info = json!({"title": "kubarium", "version": env!("CARGO_PKG_VERSION")});
    json!({"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": {"Status": status()}}})
}

fn described(operation: &ClusterHandle) -> Value {
    let in_path = operation
        .path_parameters()
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
    let in_query = operation.query.iter().map(|(name, description)| {
        json!({"name": name, "in": "query", "description": description, "schema": {"type": "string"}})
    });
    let failure = json!({"$ref": "#/components/schemas/Status"});
    let mut described = json!({
        "summary": operation.summary,
        "operationId": operation_id(operation),
        "parameters": in_path.chain(in_query).collect::<Vec<Value>>(),
        "responses": {
            "200": content("What was asked for.", &operation.answer),
            "default": content("Why not.", &failure),
        },
    });
    if let Some(schema) = &operation.body {
        described["requestBody"] = json!({"content": {"application/json": {"schema": schema}}});
    }
    described
}

fn content(description: &str, schema: &Value) -> Value {
    json!({"description": description, "content": {"application/json": {"schema": schema}}})
}

/// As `postTimePass`.
fn operation_id(operation: &ClusterHandle) -> String {
    let mut id = operation.method.as_str().to_lowercase();
    for word in operation.path.split(['/', '{', '}', '-', '.']).filter(|word| !word.is_empty()) {
        let (first, rest) = word.split_at(1);
        id.push_str(&first.to_uppercase());
        id.push_str(rest);
    }
    id
}

/// What is read of a `metav1.Status`.
fn status() -> Value {
    let text = json!({"type": "string"});
    json!({
        "type": "object",
        "properties": {
            "kind": text, "apiVersion": text, "status": text, "message": text, "reason": text,
            "code": {"type": "integer", "format": "int32"},
        },
    })
}
