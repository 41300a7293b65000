//! APIService: one version of one API group, served here or by somebody else.

use std::sync::LazyLock;

use crate::kind::{Builtin, Kind, Subresource};
use crate::print::name;
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use crate::validation::Field;
use crate::validation::texts::port_number;
use apimachinery::field_error::FieldErrors;
use apimachinery::names::{dns1035_label, dns1123_subdomain, path_segment_name};
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::Value;

/// `apiservices`
pub static API_SERVICES: Builtin = LazyLock::new(|| {
    Kind::builtin(
        "apiregistration.k8s.io",
        "v1",
        "APIService",
        "apiservices",
        "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1",
    )
    .cluster_scoped()
    .etcd_key("apiregistration.k8s.io/apiservices")
    .in_categories(&["api-extensions"])
    .with(&[Subresource::Status])
    .status_resets(&["metadata", "spec"])
    .status_leaves_metadata()
    .printed(columns(), cells)
    .defaulted(|service| {
        if let Some(reference) = get_mut(service, "spec.service") {
            set_if_unset(reference, "port", 443);
        }
    })
    .governed_by(Rules { prepare_for_create, validate, validate_name: path_segment_name, ..RULES })
    .into()
});

fn columns() -> Vec<Column> {
    let service = "The reference to the service that hosts this API endpoint.";
    vec![
        Column::name(),
        Column::new("Service", "string", service),
        Column::new("Available", "string", "Whether this service is available."),
        Column::age(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let service = at(&tree, "spec.service");
    let shown = if service.is_null() {
        "Local".to_owned()
    } else {
        format!("{}/{}", text(service, "namespace"), text(service, "name"))
    };
    vec![name(object), shown.into(), available(&tree).into(), age(object, now)]
}

fn available(tree: &Value) -> String {
    let mut conditions = items(tree, "status.conditions").iter();
    match conditions.find(|condition| text(condition, "type") == "Available") {
        None => "Unknown".into(),
        Some(condition) if text(condition, "status") == "True" => "True".into(),
        Some(condition) => format!("{} ({})", text(condition, "status"), text(condition, "reason")),
    }
}

/// What is served here is available: nobody else says so.
fn prepare_for_create(service: &mut Value) {
    if is_set(service, "spec.service") {
        return;
    }
    let condition = serde_json::json!({"type": "Available", "status": "True", "reason": "Local",
        "message": "Local APIServices are always available",
        "lastTransitionTime": at(service, "metadata.creationTimestamp")});
    set(service, "status.conditions", serde_json::json!([condition]));
}

fn validate(service: &Value, errors: &mut FieldErrors) {
    let spec = Field::of(service, "spec");
    let (group, version) = (spec.child("group"), spec.child("version"));
    let wanted = format!("{}.{}", version.text(), group.text());
    let name = Field::of(service, "metadata.name");
    if name.text() != wanted {
        name.invalid(format!("must be `spec.version+\".\"+spec.group`: {wanted:?}"), errors);
    }
    // The core group is not anybody else's to serve.
    match group.text() {
        "" if version.text() == "v1" => {}
        "" => group.required("only v1 may have an empty group and it better be legacy kube", errors),
        text => group.invalid_each(dns1123_subdomain(text), errors),
    }
    version.invalid_each(dns1035_label(version.text()), errors);
    let (minimum, priority) = (spec.child("groupPriorityMinimum"), spec.child("versionPriority"));
    if !(1..=20_000).contains(&minimum.number()) {
        minimum.invalid("must be positive and less than 20000", errors);
    }
    if !(1..=1000).contains(&priority.number()) {
        priority.invalid("must be positive and less than 1000", errors);
    }
    let reference = spec.child("service");
    let skips_verification = spec.child("insecureSkipTLSVerify");
    if !reference.is_set() {
        if skips_verification.flag() {
            skips_verification.invalid("local APIServices may not have insecureSkipTLSVerify", errors);
        }
        if !spec.child("caBundle").is_zero() {
            let bundle = spec.child("caBundle");
            bundle.invalid("local APIServices may not have a caBundle", errors);
        }
        return;
    }
    for name in ["namespace", "name"].map(|name| reference.child(name)) {
        name.require(errors);
    }
    let port = reference.child("port");
    if port.is_set() && !port_number(port.number()).is_empty() {
        port.invalid("port is not valid: must be between 1 and 65535, inclusive", errors);
    }
    if skips_verification.flag() && !spec.child("caBundle").is_zero() {
        skips_verification.invalid("may not be true if caBundle is present", errors);
    }
}
