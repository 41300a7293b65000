//! What the checks share: a pod as they see it, what they find, its containers, who set something bad, and
//! how lists are worded.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::policy::PolicyVersion;
use apis::tree::{at, flag, is_set, items, text};

/// What a check sees: a pod, or the template of one.
#[derive(Clone, Copy)]
pub(super) struct CheckedPod<'a> {
    /// With `metadata.annotations` and `spec`.
    pub tree: &'a Value,
    /// As of which release it is judged.
    pub version: PolicyVersion,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// As `host namespaces`.
    pub reason: String,
    /// As `hostNetwork=true`.
    pub detail: String,
}

impl<'a> CheckedPod<'a> {
    /// What is at a path of its spec.
    pub(super) fn spec(&self, path: &str) -> &'a Value {
        at(&self.tree["spec"], path)
    }

    /// All containers, in upstream's order.
    pub(super) fn containers(&self) -> impl Iterator<Item = &'a Value> + use<'a> {
        let spec = &self.tree["spec"];
        ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(|list| items(spec, list))
    }

    /// The names of the containers that `is_bad`.
    pub(super) fn bad_containers(&self, is_bad: impl Fn(&Value) -> bool) -> Vec<&'a str> {
        self.containers()
            .filter(|container| is_bad(container))
            .map(|container| text(container, "name"))
            .collect()
    }

    /// Whether it runs on Windows, where much of this means nothing.
    pub(super) fn is_windows(&self) -> bool {
        self.spec("os.name") == "windows"
    }

    /// Whether its root is nobody's root outside.
    pub(super) fn has_user_namespace(&self) -> bool {
        is_set(&self.tree["spec"], "hostUsers") && !flag(&self.tree["spec"], "hostUsers")
    }
}

/// Who set something bad: the pod as a whole, and containers.
pub(super) fn setters(pod_is_bad: bool, containers: &[&str]) -> Option<String> {
    let containers = (!containers.is_empty()).then(|| named_containers(containers));
    let all: Vec<String> = pod_is_bad.then(|| "pod".to_owned()).into_iter().chain(containers).collect();
    (!all.is_empty()).then(|| all.join(" and "))
}

/// `container "a"`, `containers "a", "b"`
pub(super) fn named_containers(names: &[&str]) -> String {
    format!("{} {}", plural(names.len(), "container", "containers"), quoted(names.iter().copied()))
}

/// `"a", "b"`, as Go joins them, without escaping.
pub(super) fn quoted<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    texts.into_iter().map(|text| format!("\"{text}\"")).collect::<Vec<_>>().join(", ")
}

/// The form for one, or for others.
pub(super) fn plural<'a>(count: usize, one: &'a str, several: &'a str) -> &'a str {
    if count == 1 { one } else { several }
}

/// The values at a path of the pod's and the containers' security contexts that `is_bad`, and who set them.
pub(super) fn bad_values<'a>(
    pod: &CheckedPod<'a>,
    path: &str,
    is_bad: impl Fn(&str) -> bool,
) -> Option<(String, BTreeSet<&'a str>)> {
    let own = text(at(&pod.tree["spec"], "securityContext"), path);
    let of = |container: &'a Value| text(at(container, "securityContext"), path);
    let bad = |value: &str| !value.is_empty() && is_bad(value);
    let containers = pod.bad_containers(|container| bad(text(at(container, "securityContext"), path)));
    let values = pod.containers().map(of).chain([own]).filter(|value| bad(value)).collect();
    setters(bad(own), &containers).map(|setters| (setters, values))
}

/// A finding.
pub(super) fn violation(reason: &str, detail: impl Into<String>) -> Option<Violation> {
    Some(Violation { reason: reason.into(), detail: detail.into() })
}
