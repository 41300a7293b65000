//! Operations and definitions as OpenAPI 3.0: one document for each group and version.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::ServedResource;
use super::definitions;
use super::operation::{Body, PathItem, PathOperation};
use super::operations::{DELETE_OPTIONS, PATCH_BODY, paths};
use super::parameters::Parameter;
use super::v2::{meaning, sorted};
use apimachinery::schema::{Presence, Schema, Schemas, Shape};

pub(super) fn document(
    group: &str,
    version: &str,
    served: &[ServedResource],
    schemas: &Schemas,
    release: &str,
) -> Value {
    let paths: Map<String, Value> =
        paths(group, version, served).into_iter().map(|item| (item.path.clone(), path_item(&item))).collect();
    let own = || served.iter().filter(|resource| resource.group == group && resource.version == version);
    let definitions = definitions::collect(own(), served, schemas, true);
    let mut document = written(paths, components(definitions, schemas), release);
    if own().all(|resource| resource.schema.is_some()) {
        // Definitions are published by a builder of their own, which knows of no credentials.
        document["info"] = json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"});
        let Value::Object(map) = &mut document else { unreachable!("it was written as an object") };
        map.remove("security");
        document["components"] = json!({"schemas": document["components"]["schemas"].take()});
    }
    document
}

/// The document of a path that is of no group and version.
pub(super) fn of_root(item: &PathItem, schemas: &Schemas, release: &str) -> Value {
    let paths = Map::from_iter([(item.path.clone(), path_item(item))]);
    let answers = item.operations.iter().map(|operation| operation.answer.clone());
    let definitions = definitions::reached(answers, schemas);
    written(paths, components(definitions, schemas), release)
}

fn components(definitions: BTreeMap<String, Value>, schemas: &Schemas) -> Map<String, Value> {
    let written = definitions.into_iter().map(|(name, definition)| {
        let schema = schemas.get(&name);
        let component = component(definition, schema.as_deref());
        (name, component)
    });
    written.collect()
}

fn written(paths: Map<String, Value>, components: Map<String, Value>, release: &str) -> Value {
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": release},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"BearerToken": {
                "description": "Bearer Token authentication", "type": "apiKey", "name": "authorization",
                "in": "header",
            }},
        },
        "security": [{"BearerToken": []}],
    })
}

fn path_item(item: &PathItem) -> Value {
    let mut value: Map<String, Value> =
        item.operations.iter().map(|own| (own.method.to_owned(), operation(item, own))).collect();
    let placeholders = item.placeholders.iter().map(|(name, description)| {
        json!({
            "name": name, "in": "path", "required": true, "description": description,
            "schema": {"type": "string", "uniqueItems": true},
        })
    });
    let parameters = sorted(placeholders.chain(item.common().into_iter().map(query)));
    if !parameters.is_empty() {
        value.insert("parameters".into(), parameters.into());
    }
    Value::Object(value)
}

fn operation(item: &PathItem, operation: &PathOperation) -> Value {
    let mut value = json!({
        "description": operation.description,
        "operationId": operation.id,
        "responses": responses(operation),
        "tags": [operation.tag],
    });
    let parameters = item.own(operation);
    if !parameters.is_empty() {
        value["parameters"] = parameters.into_iter().map(query).collect();
    }
    if let Some(body) = &operation.body {
        value["requestBody"] = request_body(body, &operation.consumes());
    }
    if let Some([group, version, kind]) = &operation.kind {
        value["x-kubernetes-action"] = operation.action.into();
        value["x-kubernetes-group-version-kind"] = json!({"group": group, "kind": kind, "version": version});
    }
    value
}

fn request_body(body: &Body, types: &[&str]) -> Value {
    match body {
        Body::Object(definition) => {
            json!({"content": content(types, reference(definition)), "required": true})
        }
        Body::DeleteOptions => json!({"content": content(types, reference(DELETE_OPTIONS))}),
        Body::Patch { .. } => {
            json!({"content": content(types, reference(PATCH_BODY)), "required": true})
        }
    }
}

fn responses(operation: &PathOperation) -> Value {
    let schema = match operation.answer.as_str() {
        "" => json!({"type": "string"}),
        definition => reference(definition),
    };
    let content = content(&operation.produces(), schema);
    let mut responses: Map<String, Value> = operation
        .codes
        .iter()
        .map(|code| ((*code).to_owned(), json!({"description": meaning(code), "content": content})))
        .collect();
    responses.insert("401".into(), json!({"description": meaning("401")}));
    Value::Object(responses)
}

fn content(media_types: &[&str], schema: Value) -> Value {
    media_types.iter().map(|own| ((*own).to_owned(), json!({"schema": schema}))).collect::<Map<_, _>>().into()
}

fn query(parameter: &Parameter) -> Value {
    json!({
        "name": parameter.name, "in": "query", "description": parameter.description,
        "schema": {"type": parameter.kind, "uniqueItems": true},
    })
}

fn reference(definition: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{definition}")})
}

/// A v2 definition as a v3 component. With the schema that decodes it at hand, it also tells the zero
/// values that upstream's types write: `default: {}` of a struct, `default: ""` of a plain string.
pub(super) fn component(mut definition: Value, schema: Option<&Schema>) -> Value {
    match schema.map(|schema| &schema.resolve().shape) {
        Some(Shape::IntOrString) if definition.get("$ref").is_none() => {
            one_of(&mut definition, [json!({"type": "integer"}), json!({"type": "string"})]);
        }
        Some(Shape::Quantity) if definition.get("$ref").is_none() => {
            one_of(&mut definition, [json!({"type": "string"}), json!({"type": "number"})]);
        }
        _ => {}
    }
    let Value::Object(map) = &mut definition else { return definition };
    for (name, property) in map.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        let field = schema.and_then(|schema| schema.property(name));
        *property = component(property.take(), field);
        if let Some(field) = field.filter(|field| field.presence == Presence::Always) {
            zero_default(property, field);
        }
    }
    let items = schema.and_then(Schema::items);
    let values = schema.and_then(|schema| match &schema.resolve().shape {
        Shape::Map(values) => Some(&**values),
        _ => None,
    });
    for (key, held) in [("items", items), ("additionalProperties", values)] {
        let Some(nested) = map.get_mut(key).filter(|nested| nested.is_object()) else { continue };
        *nested = component(nested.take(), held);
        if let Some(held) = held {
            zero_default(nested, held);
        }
    }
    if let Some(reference) = map.remove("$ref") {
        return referring(reference, definition);
    }
    definition
}

/// A reference may have no neighbours in OpenAPI 3.0, so those go around it.
fn referring(reference: Value, mut definition: Value) -> Value {
    let reference = reference.as_str().unwrap_or_default().replace("#/definitions/", "#/components/schemas/");
    let reference = json!({"$ref": reference});
    match definition.as_object() {
        Some(rest) if rest.is_empty() => reference,
        _ => {
            definition["allOf"] = json!([reference]);
            definition
        }
    }
}

fn zero_default(property: &mut Value, field: &Schema) {
    let zero = match (&field.shape, &field.resolve().shape) {
        (Shape::Reference(_), Shape::Object(_)) => json!({}),
        (Shape::String, _) => json!(""),
        (Shape::Integer32 | Shape::Integer64 | Shape::Number, _) => json!(0),
        (Shape::Boolean, _) => json!(false),
        _ => return,
    };
    if property.get("default").is_some() {
        return;
    }
    let bare = property.as_object().is_some_and(|map| map.len() == 1).then(|| property.get("$ref").cloned());
    if let Some(Some(reference)) = bare {
        *property = json!({"allOf": [{"$ref": reference}]});
    }
    property["default"] = zero;
}

fn one_of(definition: &mut Value, types: [Value; 2]) {
    if let Value::Object(map) = definition {
        map.remove("type");
        map.insert("oneOf".into(), Value::Array(types.into()));
    }
}
