//! `AdmissionRequest`: what a webhook is sent, and what expressions see as `request`
//! (`plugin/webhook/request`).

use serde_json::{Map, Value, json};

use super::versions::{Versions, group_version_kind};
use crate::admission::{Attributes, Operation};
use apis::kind::Kind;

/// The request without uid and objects; `kind` is the version in which the object is wanted.
pub(crate) fn admission_request(
    attributes: &Attributes,
    kind: &Kind,
    object: Option<&Value>,
) -> Map<String, Value> {
    let name = match attributes.name {
        "" => object.and_then(|object| object["metadata"]["name"].as_str()).unwrap_or_default(),
        name => name,
    };
    let own = attributes.kind;
    let is_new_namespace = attributes.operation == Operation::Create && &*own.plural == "namespaces";
    let namespace = if is_new_namespace { name } else { attributes.namespace };
    let fields = [
        ("kind", kind_tree(kind, attributes.subresource)),
        ("resource", resource_tree(kind)),
        ("subResource", json!(attributes.subresource)),
        ("requestKind", kind_tree(own, attributes.subresource)),
        ("requestResource", resource_tree(own)),
        ("requestSubResource", json!(attributes.subresource)),
        ("name", json!(name)),
        ("namespace", json!(namespace)),
        ("operation", json!(attributes.operation.name())),
        ("userInfo", attributes.ctx.user.to_value()),
        ("dryRun", json!(attributes.ctx.dry_run)),
        ("options", options(attributes)),
    ];
    let is_there = |(_, value): &(&str, Value)| value.as_str() != Some("");
    fields.into_iter().filter(is_there).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The whole review.
pub(super) fn review(version: &str, uid: &str, mut request: Map<String, Value>, objects: &Versions) -> Value {
    request.insert("uid".into(), uid.into());
    request.insert("object".into(), objects.object.clone());
    request.insert("oldObject".into(), objects.old_object.clone());
    let api_version = format!("admission.k8s.io/{version}");
    json!({"kind": "AdmissionReview", "apiVersion": api_version, "request": request})
}

fn kind_tree(kind: &Kind, subresource: &str) -> Value {
    let (version, name) = group_version_kind(kind, subresource);
    json!({"group": &*version.group, "version": &*version.version, "kind": &*name})
}

fn resource_tree(kind: &Kind) -> Value {
    let version = &kind.group_version;
    json!({"group": &*version.group, "version": &*version.version, "resource": &*kind.plural})
}

/// `CreateOptions`, `UpdateOptions` or `DeleteOptions`, as the client gave them; those of a patch are what it
/// comes to.
fn options(attributes: &Attributes) -> Value {
    let ctx = attributes.ctx;
    let kind = match attributes.operation {
        Operation::Connect => return Value::Null,
        Operation::Delete => "DeleteOptions",
        Operation::Update => "UpdateOptions",
        Operation::Create => "CreateOptions",
    };
    let mut options = match &ctx.delete_options {
        Some(options) if kind == "DeleteOptions" => serde_json::to_value(options).unwrap_or_default(),
        _ => json!({}),
    };
    options["kind"] = kind.into();
    options["apiVersion"] = "meta.k8s.io/v1".into();
    if ctx.dry_run {
        options["dryRun"] = json!(["All"]);
    }
    if kind != "DeleteOptions" {
        for (name, value) in
            [("fieldManager", &*ctx.field_manager), ("fieldValidation", &*ctx.field_validation)]
        {
            if !value.is_empty() {
                options[name] = value.into();
            }
        }
    }
    options
}
