//! The names of paths, operations and tags.

/// `/api/v1`, `/apis/apps/v1`.
pub(super) fn group_path(group: &str, version: &str) -> String {
    match group {
        "" => format!("/api/{version}"),
        group => format!("/apis/{group}/{version}"),
    }
}

/// `AppsV1`, `RbacAuthorizationV1`: what stands between verb and kind in an operation's id.
pub(super) fn group_version_id(group: &str, version: &str) -> String {
    camel(trimmed(group), true) + &camel(version, true)
}

/// `rbacAuthorization_v1`.
pub(super) fn tag(group: &str, version: &str) -> String {
    format!("{}_{}", camel(trimmed(group), false), camel(version, false))
}

/// A part of an operation's id: no punctuation, a capital after each.
pub(super) fn camel(text: &str, capital: bool) -> String {
    let mut upper = capital;
    let mut name = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '.' | '-' | '/' | '_' => upper = true,
            _ if upper => {
                name.extend(character.to_uppercase());
                upper = false;
            }
            _ => name.push(character),
        }
    }
    name
}

/// Without `.k8s.io`.
pub(super) fn trimmed(group: &str) -> &str {
    match group {
        "" => "core",
        group => group.strip_suffix(".k8s.io").unwrap_or(group),
    }
}
