//! PodSecurity: pods keep to the standard that their namespace's labels name
//! (`plugin/pkg/admission/security/podsecurity`).
//!
//! Pods are refused; of workloads, whose pods would be refused later, their author is warned. A namespace
//! whose standard becomes stricter is told which of its pods violate it.

mod checks;
mod configuration;
mod namespace;
mod policy;

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use super::config::BadAdmissionConfig;
use super::lister::AdmissionLister;
use super::{AdmissionMetrics, AdmissionPlugin, Attributes, Initializer, Operation, forbidden};
use apimachinery::status::Status;
use apis::tree::{annotation, at, is_set, items, string_map, text};
use checks::{Violation, details, evaluate};
use configuration::PodSecurityConfig;
use policy::{LevelVersion, SecurityLevel, SecurityPolicy};

/// Judges pods, workloads and changes of a namespace's labels.
pub(super) struct PodSecurity {
    configuration: PodSecurityConfig,
    namespaces: AdmissionLister,
    pods: AdmissionLister,
    metrics: Arc<AdmissionMetrics>,
}

impl PodSecurity {
    /// With its configuration.
    ///
    /// # Errors
    /// Levels and versions that are none.
    pub(super) fn new(with: &Initializer) -> Result<PodSecurity, BadAdmissionConfig> {
        Ok(PodSecurity {
            configuration: PodSecurityConfig::read(with.configuration("PodSecurity"))?,
            namespaces: AdmissionLister::new(with, "", "v1", "namespaces"),
            pods: AdmissionLister::new(with, "", "v1", "pods"),
            metrics: with.metrics.clone(),
        })
    }

    /// Whether it is nobody's concern, which the audit event tells.
    fn is_exempt(&self, attributes: &Attributes) -> bool {
        let exemptions = &self.configuration.exemptions;
        let exempt = if exemptions.namespaces.iter().any(|name| name == attributes.namespace) {
            "namespace"
        } else if exemptions.usernames.iter().any(|name| **name == *attributes.ctx.user.name) {
            "user"
        } else {
            return false;
        };
        self.exempt(attributes, exempt)
    }

    fn exempt(&self, attributes: &Attributes, by: &str) -> bool {
        attributes.ctx.annotate(EXEMPT, by);
        self.metrics.pod_security_exempt(attributes.operation, resource(attributes), attributes.subresource);
        true
    }

    fn is_exempt_pod(&self, pod: &Value) -> bool {
        let class = text(pod, "spec.runtimeClassName");
        !class.is_empty() && self.configuration.exemptions.runtime_classes.iter().any(|name| name == class)
    }

    /// What a standard says of a pod; counted.
    fn judge(
        &self,
        attributes: &Attributes,
        mode: &'static str,
        by: LevelVersion,
        pod: &Value,
    ) -> Vec<Violation> {
        let found = evaluate(by, pod);
        // Of those modes that only tell, upstream counts what they tell.
        if mode == "enforce" || !found.is_empty() {
            let decision = if found.is_empty() { "allow" } else { "deny" };
            let policy = by.to_string();
            let (level, version) = policy.split_once(':').unwrap_or_default();
            let (operation, resource) = (attributes.operation.name(), resource(attributes));
            let labels =
                [decision, mode, level, version, &operation.to_lowercase(), resource, attributes.subresource];
            self.metrics.pod_security_evaluated(labels);
        }
        found
    }

    /// Nothing where there is nothing to judge by.
    async fn policy(&self, attributes: &Attributes<'_>) -> Result<Option<SecurityPolicy>, Status> {
        let Some(namespace) = self.namespaces.get("", attributes.namespace).await? else {
            return Err(Status::failure(
                500,
                "InternalError",
                format!("failed to lookup namespace {}", attributes.namespace),
            ));
        };
        let labels = &namespace.metadata.labels;
        let (policy, errors) = SecurityPolicy::of(labels, &self.configuration.defaults);
        if !errors.is_empty() {
            attributes.ctx.annotate(ERROR, &format!("failed to parse policy: {errors}"));
        }
        Ok(Some(policy).filter(|policy| !policy.is_privileged() || !errors.is_empty()))
    }

    async fn validate_pod(
        &self,
        attributes: &Attributes<'_>,
        pod: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        if self.is_exempt(attributes) || old.is_some_and(|old| !is_significant(pod, old)) {
            return Ok(());
        }
        let Some(policy) = self.policy(attributes).await? else {
            attributes.ctx.annotate(ENFORCED, &LevelVersion::default().to_string());
            return Ok(());
        };
        if self.is_exempt_pod(pod) && self.exempt(attributes, "runtimeClass") {
            return Ok(());
        }
        let found = self.judge(attributes, "enforce", policy.enforce, pod);
        attributes.ctx.annotate(ENFORCED, &policy.enforce.to_string());
        self.note(attributes, &policy, pod);
        if !found.is_empty() {
            let why = format!("violates PodSecurity \"{}\": {}", policy.enforce, details(&found));
            return Err(forbidden(attributes, Some(pod), &why));
        }
        self.warn(attributes, &policy, pod);
        Ok(())
    }

    async fn validate_workload(&self, attributes: &Attributes<'_>, template: &Value) -> Result<(), Status> {
        if self.is_exempt(attributes) || template.is_null() {
            return Ok(());
        }
        let Some(policy) = self.policy(attributes).await? else { return Ok(()) };
        let is_judged =
            [policy.warn, policy.audit].iter().any(|mode| mode.level != SecurityLevel::Privileged);
        if !is_judged || self.is_exempt_pod(template) && self.exempt(attributes, "runtimeClass") {
            return Ok(());
        }
        self.note(attributes, &policy, template);
        self.warn(attributes, &policy, template);
        Ok(())
    }

    fn note(&self, attributes: &Attributes<'_>, policy: &SecurityPolicy, pod: &Value) {
        let found = self.judge(attributes, "audit", policy.audit, pod);
        if !found.is_empty() {
            let text = format!("would violate PodSecurity \"{}\": {}", policy.audit, details(&found));
            attributes.ctx.annotate(VIOLATIONS, &text);
        }
    }

    fn warn(&self, attributes: &Attributes<'_>, policy: &SecurityPolicy, pod: &Value) {
        let found = self.judge(attributes, "warn", policy.warn, pod);
        if !found.is_empty() {
            let text = format!("would violate PodSecurity \"{}\": {}", policy.warn, details(&found));
            attributes.ctx.warn(text);
        }
    }
}

/// Under these keys the audit event tells of it.
const ENFORCED: &str = "pod-security.kubernetes.io/enforce-policy";
const VIOLATIONS: &str = "pod-security.kubernetes.io/audit-violations";
const EXEMPT: &str = "pod-security.kubernetes.io/exempt";
const ERROR: &str = "pod-security.kubernetes.io/error";

/// As the metrics call it.
fn resource(attributes: &Attributes) -> &'static str {
    match &*attributes.kind.plural {
        "pods" => "pod",
        "namespaces" => "namespace",
        _ => "controller",
    }
}

impl AdmissionPlugin for PodSecurity {
    fn handles(&self, attributes: &Attributes) -> bool {
        let is_write = matches!(attributes.operation, Operation::Create | Operation::Update);
        let is_pod = is_core(attributes, "pods");
        let is_spec = matches!(attributes.subresource, "" | "ephemeralcontainers" | "resize");
        let is_other = is_core(attributes, "namespaces") || template_path(attributes).is_some();
        is_write && (is_pod && is_spec || is_other && attributes.subresource.is_empty())
    }

    fn changes(&self) -> bool {
        false
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let Some(object) = object else { return Ok(()) };
            if is_core(attributes, "pods") {
                return self.validate_pod(attributes, object, old).await;
            }
            match template_path(attributes) {
                Some(path) => self.validate_workload(attributes, at(object, path)).await,
                None => self.validate_namespace(attributes, object, old).await,
            }
        })
    }
}

fn is_core(attributes: &Attributes, plural: &str) -> bool {
    attributes.kind.group_version.group.is_empty() && &*attributes.kind.plural == plural
}

/// Where a workload has its pod.
fn template_path(attributes: &Attributes) -> Option<&'static str> {
    match (&*attributes.kind.group_version.group, &*attributes.kind.plural) {
        ("", "podtemplates") => Some("template"),
        ("", "replicationcontrollers")
        | ("apps", "replicasets" | "deployments" | "statefulsets" | "daemonsets")
        | ("batch", "jobs") => Some("spec.template"),
        ("batch", "cronjobs") => Some("spec.jobTemplate.spec.template"),
        _ => None,
    }
}

/// Whether an update changes what is judged: images, seccomp annotations, containers that are new.
fn is_significant(new: &Value, old: &Value) -> bool {
    const POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
    let profile = |pod: &Value, name: &str| {
        annotation(pod, &format!("container.seccomp.security.alpha.kubernetes.io/{name}")).to_owned()
    };
    let lists = ["spec.initContainers", "spec.containers", "spec.ephemeralContainers"];
    let changed = lists.iter().any(|list| {
        let before = items(old, list);
        items(new, list).iter().any(|container| {
            let name = text(container, "name");
            let found = before.iter().find(|old| text(old, "name") == name);
            found.is_none_or(|found| found["image"] != container["image"])
                || profile(new, name) != profile(old, name)
        })
    });
    changed || annotation(new, POD) != annotation(old, POD) || is_set(new, "spec") != is_set(old, "spec")
}

/// The labels of a tree.
fn labels(tree: &Value) -> std::collections::BTreeMap<String, String> {
    string_map(tree, "metadata.labels")
}
