//! Which containers a stage governs.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::invocation;
use crate::kuberuntime::state::is_sidecar;
use apimachinery::object::ObjectMeta;
use apis::views::pod::{Container, Pod};
use machine::{program, signals, web_servers};

/// The annotation that names stages, separated by commas.
pub(super) const STAGE_ANNOTATION: &str = "kubarium.dev/stage";

/// All that is given must hold; nothing given selects every container.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct StageSelector {
    /// The pod's annotations. `kubarium.dev/stage` is a list: one of its names must be the value.
    pub match_annotations: BTreeMap<String, String>,
    /// The pod's labels.
    pub match_labels: BTreeMap<String, String>,
    /// The pod's namespace is one of these.
    pub namespaces: Vec<String>,
    /// One of the pod's owners is of one of these kinds.
    pub owner_kinds: Vec<String>,
    /// The pod's restart policy is one of these.
    pub restart_policies: Vec<String>,
    /// The container's name is one of these.
    pub containers: Vec<String>,
    /// The container's image matches one of these; `*` stands for any text.
    pub images: Vec<String>,
    /// Whether it is an init container.
    pub init_container: Option<bool>,
    /// Whether what its command does is known (see [`program`]).
    pub command_is_known: Option<bool>,
    /// Whether it says what it does about its stop signal (see [`signals`]).
    pub stop_is_known: Option<bool>,
    /// Whether files of its volumes say whether it starts at all (see [`web_servers`]).
    pub files_configure_start: Option<bool>,
    /// Whether the pod has secrets to pull images with.
    pub pull_secrets: Option<bool>,
    /// It was restarted fewer times than this.
    pub restarts_below: Option<i64>,
}

/// What a selector looks at.
pub struct StageSubject<'a> {
    pod: &'a Pod,
    metadata: &'a ObjectMeta,
    container: &'a Container,
    restart_count: i64,
}

impl<'a> StageSubject<'a> {
    /// A container of a pod, as it is about to take a step.
    pub fn of(pod: &'a Pod, metadata: &'a ObjectMeta, container: &'a Container, restart_count: i64) -> Self {
        StageSubject { pod, metadata, container, restart_count }
    }

    /// A sidecar counts as an ordinary container: it stays.
    fn is_init_container(&self) -> bool {
        !is_sidecar(self.container)
            && self.pod.spec.init_containers.iter().any(|init| std::ptr::eq(init, self.container))
    }
}

impl StageSelector {
    /// Whether it selects `subject`.
    pub fn matches(&self, subject: &StageSubject<'_>) -> bool {
        let StageSubject { pod, metadata, container, restart_count } = subject;
        let one_of = |names: &[String], name: &str| names.is_empty() || names.iter().any(|n| n == name);
        let annotated = |(key, value): (&String, &String)| {
            pod.metadata.annotations.get(key).is_some_and(|given| is_named(key, given, value))
        };
        let labelled = |(key, value): (&String, &String)| metadata.labels.get(key) == Some(value);
        let owners = &metadata.owner_references;
        self.match_annotations.iter().all(annotated)
            && self.match_labels.iter().all(labelled)
            && one_of(&self.namespaces, &metadata.namespace)
            && (self.owner_kinds.is_empty() || owners.iter().any(|o| self.owner_kinds.contains(&o.kind)))
            && one_of(&self.restart_policies, &pod.spec.restart_policy)
            && one_of(&self.containers, &container.name)
            && (self.images.is_empty() || self.images.iter().any(|glob| is_like(glob, &container.image)))
            && self.init_container.is_none_or(|wanted| wanted == subject.is_init_container())
            && self.restarts_below.is_none_or(|bound| *restart_count < bound)
            && self
                .command_is_known
                .is_none_or(|wanted| wanted == program::is_known(&invocation::of(container)))
            && self.stop_is_known.is_none_or(|wanted| wanted == signals::is_known(&invocation::of(container)))
            && self.files_configure_start.is_none_or(|wanted| wanted == is_configured(container))
            && self.pull_secrets.is_none_or(|wanted| wanted != pod.spec.image_pull_secrets.is_empty())
    }
}

fn is_configured(container: &Container) -> bool {
    let mounts: Vec<&str> = container.volume_mounts.iter().map(|mount| mount.mount_path.as_str()).collect();
    web_servers::starts_by_files(&invocation::of(container), &mounts)
}

fn is_named(key: &str, given: &str, value: &str) -> bool {
    match key {
        STAGE_ANNOTATION => given.split(',').any(|name| name.trim() == value),
        _ => given == value,
    }
}

/// Whether `text` matches `glob`, in which `*` stands for any text.
fn is_like(glob: &str, text: &str) -> bool {
    let Some((head, rest)) = glob.split_once('*') else { return glob == text };
    let Some(mut text) = text.strip_prefix(head) else { return false };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return text.ends_with(part);
        }
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_as_in_a_shell() {
        let cases = [
            ("nginx", "nginx", true),
            ("nginx", "nginx:1", false),
            ("*:does-not-exist", "a/b:does-not-exist", true),
            ("registry.*/x:*", "registry.k8s.io/x:1", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c", false),
            ("*", "", true),
        ];
        for (glob, text, matches) in cases {
            assert_eq!(is_like(glob, text), matches, "{glob} {text}");
        }
    }
}
