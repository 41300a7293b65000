//! The claims for devices that a pod makes, and those of them that its containers use
//! (`validatePodResourceClaims`, `validateResourceClaimNames`).

use serde_json::json;

use crate::apimachinery::field_error::{ErrorType, FieldErrors};
use crate::apimachinery::names::{dns1123_label, dns1123_subdomain};
use crate::apis::validation::{Field, push};

/// The claims of a pod; the names that are given.
pub fn claims<'a>(spec: &Field<'a>, errors: &mut FieldErrors) -> Vec<&'a str> {
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

/// The claims that a container uses: each once, and each one of the pod's.
pub fn used(claims: &Field, names: &[&str], errors: &mut FieldErrors) {
    let all = claims.items();
    for (at, claim) in all.iter().enumerate() {
        let of = |claim: &Field| ["name", "request"].map(|name| claim.child(name).value.clone());
        let name = claim.child("name").text();
        if name.is_empty() {
            claim.required("", errors);
            continue;
        }
        if all[..at].iter().any(|earlier| of(earlier) == of(claim)) {
            errors.duplicate(claim.path.as_str(), &json!(name));
        }
        if !names.contains(&name) {
            let mut sorted = names.to_vec();
            sorted.sort_unstable();
            let known = match sorted.is_empty() {
                true => " which is empty".to_owned(),
                false => format!(": {}", sorted.join(", ")),
            };
            let words = format!("must be one of the names in pod.spec.resourceClaims{known}");
            push(errors, &claim.path, ErrorType::NotFound, name, &words);
        }
    }
}
