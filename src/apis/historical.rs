//! Kinds that upstream has given up, and that a feature gate brings back for those who learn from old texts.

use std::sync::LazyLock;

use crate::kind::{Builtin, Kind};
use crate::rules::{RULES, Rules};
use crate::validation::Field;
use apimachinery::field_error::FieldErrors;
use apimachinery::names::dns1123_subdomain;
use serde_json::Value;

/// `initializerconfigurations` (Kubernetes 1.7 to 1.13, alpha): which objects wait for which initializers.
pub static INITIALIZER_CONFIGURATIONS: Builtin = LazyLock::new(|| {
    let group = "admissionregistration.k8s.io";
    let definition = "io.k8s.api.admissionregistration.v1alpha1";
    Kind::builtin(group, "v1alpha1", "InitializerConfiguration", "initializerconfigurations", definition)
        .cluster_scoped()
        .governed_by(Rules { validate, ..RULES })
        .into()
});

fn validate(configuration: &Value, errors: &mut FieldErrors) {
    for initializer in Field::of(configuration, "initializers").items() {
        let name = initializer.child("name");
        initializer_name(&name, errors);
        for rule in initializer.child("rules").items() {
            for list in ["apiGroups", "apiVersions", "resources"] {
                rule_list(&rule.child(list), errors);
            }
        }
    }
}

/// A name of at least three parts, so that nobody takes another's.
pub fn initializer_name(name: &Field, errors: &mut FieldErrors) {
    if name.text().is_empty() {
        return name.required("", errors);
    }
    name.invalid_each(dns1123_subdomain(name.text()), errors);
    if name.text().split('.').count() < 3 {
        name.invalid("should be a domain with at least three segments separated by dots", errors);
    }
}

fn rule_list(list: &Field, errors: &mut FieldErrors) {
    if list.items().is_empty() {
        return list.required("", errors);
    }
    let has_all = list.items().iter().any(|item| item.text() == "*");
    if has_all && list.items().len() > 1 {
        list.invalid("if '*' is present, must not specify other values", errors);
    }
    for item in list.items() {
        if item.text().contains('/') {
            item.invalid("must not specify subresources", errors);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_domains_and_rules_say_something() {
        let rule = json!({"apiGroups": ["*"], "apiVersions": ["v1"], "resources": ["pods"]});
        let cases = [
            (json!([{"name": "a.example.com", "rules": [rule]}]), ""),
            (
                json!([{"name": "example.com", "rules": [rule]}]),
                "initializers[0].name: Invalid value: \"example.com\": should be a domain with at least three \
                 segments separated by dots",
            ),
            (
                json!([{"name": "a.example.com", "rules": [{"apiGroups": ["*"], "apiVersions": ["v1"],
                    "resources": ["pods/status"]}]}]),
                "initializers[0].rules[0].resources[0]: Invalid value: \"pods/status\": must not specify \
                 subresources",
            ),
        ];
        for (initializers, expected) in cases {
            let mut errors = FieldErrors::default();
            validate(&json!({"initializers": initializers}), &mut errors);
            let shown = if errors.is_empty() { String::new() } else { errors.to_string() };
            assert_eq!(shown, expected);
        }
    }
}
