//! The claims for devices that a pod makes, and those of them that its containers use
//! (`validatePodResourceClaims`, `validateResourceClaimNames`).

use std::collections::BTreeSet;

use serde_json::json;

use crate::validation::{Field, push};
use apimachinery::field_error::{ErrorType, FieldErrors};
use apimachinery::names::{dns1123_label, dns1123_subdomain};

/// The claims of a pod; the names that are given.
pub(super) fn claims<'a>(spec: &Field<'a>, errors: &mut FieldErrors) -> Vec<&'a str> {
    let mut names: Vec<&str> = vec![];
    for claim in spec.each("resourceClaims") {
        let name = claim.child("name");
        if names.contains(&name.text()) {
            name.duplicate(errors);
        } else {
            name.must_follow(dns1123_label, errors);
            names.extend(Some(name.text()).filter(|name| !name.is_empty()));
        }
        let sources = ["resourceClaimName", "resourceClaimTemplateName"].map(|field| claim.child(field));
        match sources.iter().filter(|source| source.is_set()).count() {
            0 => {
                claim.invalid("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`", errors)
            }
            1 => {}
            _ => claim.invalid(
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
                errors,
            ),
        }
        for source in sources.iter().filter(|source| source.is_set()) {
            source.invalid_each(dns1123_subdomain(source.text()), errors);
        }
    }
    names
}

/// The claims that a container uses: each once, whole or some requests of it, and each one of the pod's.
pub(super) fn used(claims: &Field, names: &[&str], errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for claim in claims.items() {
        let (name, request) = (claim.child("name").text(), claim.child("request"));
        if name.is_empty() {
            claim.required("", errors);
            continue;
        }
        request.follows(dns1123_label, errors);
        let key = match request.text() {
            "" => name.to_owned(),
            request => format!("{name}/{request}"),
        };
        let is_part = |other: &String| other.split_once('/').is_some_and(|(of, _)| of == name);
        if seen.contains(name) {
            errors.duplicate(claim.path.as_str(), &json!(name));
        } else if seen.contains(&key) || request.is_zero() && seen.iter().any(is_part) {
            errors.duplicate(claim.path.as_str(), &json!(key));
        }
        seen.insert(key);
        if !names.contains(&name) {
            unknown(&claim, name, names, errors);
        }
    }
}

fn unknown(claim: &Field, name: &str, names: &[&str], errors: &mut FieldErrors) {
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    let known =
        if sorted.is_empty() { " which is empty".to_owned() } else { format!(": {}", sorted.join(", ")) };
    let words = format!("must be one of the names in pod.spec.resourceClaims{known}");
    push(errors, &claim.path, ErrorType::NotFound, name, &words);
}
