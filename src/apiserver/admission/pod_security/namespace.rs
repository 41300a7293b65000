//! PodSecurity and namespaces: labels must be right, and a stricter standard is tried on the pods that are
//! there already.

use std::collections::BTreeMap;

use serde_json::Value;

use super::checks::{evaluate, reasons};
use super::policy::{LevelVersion, SecurityLevel, SecurityPolicy};
use super::{PodSecurity, labels};
use crate::admission::Attributes;
use apimachinery::status::Status;
use apis::tree::text;

/// So many pods are looked at.
const MAX_PODS: usize = 3000;

impl PodSecurity {
    /// Refuses wrong labels, unless they were as wrong before; warns of pods that violate a new standard.
    pub(super) async fn validate_namespace(
        &self,
        attributes: &Attributes<'_>,
        new: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let defaults = &self.configuration.defaults;
        let (policy, errors) = SecurityPolicy::of(&labels(new), defaults);
        let before = old.map(|old| SecurityPolicy::of(&labels(old), defaults));
        let were = before.as_ref().map(|(_, errors)| errors.to_string()).unwrap_or_default();
        if !errors.is_empty() && errors.to_string() != were {
            return Err(Status::invalid(&attributes.kind.gvk(), text(new, "metadata.name"), &errors));
        }
        let Some((before, _)) = before else { return Ok(()) };
        let enforce = policy.enforce;
        let was = before.enforce;
        let is_relaxed = enforce.version == was.version && enforce.level <= was.level;
        let name = text(new, "metadata.name");
        let is_exempt = self.configuration.exemptions.namespaces.iter().any(|exempt| exempt == name);
        if enforce == was || enforce.level == SecurityLevel::Privileged || is_relaxed || is_exempt {
            return Ok(());
        }
        for warning in self.try_on(name, enforce).await? {
            attributes.ctx.warn(warning);
        }
        Ok(())
    }

    /// What a standard would say of the pods of a namespace.
    async fn try_on(&self, namespace: &str, enforce: LevelVersion) -> Result<Vec<String>, Status> {
        let pods = self.pods.list(namespace).await?;
        // By what is wrong: the first pod by name, and how many.
        let mut found: BTreeMap<String, (String, usize)> = BTreeMap::new();
        for pod in pods.iter().take(MAX_PODS) {
            let tree = pod.to_value();
            let violations = if self.is_exempt_pod(&tree) { vec![] } else { evaluate(enforce, &tree) };
            if violations.is_empty() {
                continue;
            }
            let name = &pod.metadata.name;
            let (first, count) = found.entry(reasons(&violations)).or_insert_with(|| (name.clone(), 0));
            *count += 1;
            if name < first {
                first.clone_from(name);
            }
        }
        Ok(warnings(namespace, enforce, pods.len(), &found))
    }
}

fn warnings(
    namespace: &str,
    enforce: LevelVersion,
    total: usize,
    found: &BTreeMap<String, (String, usize)>,
) -> Vec<String> {
    let mut warnings = Vec::new();
    if total > MAX_PODS {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {MAX_PODS} of {total} existing pods"
        ));
    }
    if !found.is_empty() {
        warnings.push(format!(
            "existing pods in namespace {namespace:?} violate the new PodSecurity enforce level \"{enforce}\""
        ));
    }
    let mut by_pod: Vec<String> = found
        .iter()
        .map(|(reasons, (first, count))| match count {
            1 => format!("{first}: {reasons}"),
            2 => format!("{first} (and 1 other pod): {reasons}"),
            _ => format!("{first} (and {} other pods): {reasons}", count - 1),
        })
        .collect();
    by_pod.sort();
    warnings.extend(by_pod);
    warnings
}

#[cfg(test)]
mod tests {
    use super::super::policy::PolicyVersion;
    use super::*;

    #[test]
    fn warnings_name_the_first_pod_and_count_the_others() {
        let enforce = LevelVersion { level: SecurityLevel::Baseline, version: PolicyVersion::Latest };
        let found = BTreeMap::from([
            ("privileged".to_owned(), ("b".to_owned(), 3)),
            ("hostPort".to_owned(), ("c".to_owned(), 1)),
            ("host namespaces, hostPort".to_owned(), ("a".to_owned(), 2)),
        ]);
        let expected = [
            "existing pods in namespace \"n\" violate the new PodSecurity enforce level \"baseline:latest\"",
            "a (and 1 other pod): host namespaces, hostPort",
            "b (and 2 other pods): privileged",
            "c: hostPort",
        ];
        assert_eq!(warnings("n", enforce, 6, &found), expected);
        assert!(warnings("n", enforce, 6, &BTreeMap::new()).is_empty());
    }
}
