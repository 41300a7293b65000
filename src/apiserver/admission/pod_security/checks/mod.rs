//! The checks of the pod security standards (`k8s.io/pod-security-admission/policy`): which there are at a
//! level and version, and what they find.

mod baseline;
mod fields;
mod restricted;

use serde_json::Value;

use super::policy::{LevelVersion, PolicyVersion, SecurityLevel};
use fields::CheckedPod;

pub(super) use fields::Violation;

type Find = fn(CheckedPod) -> Option<Violation>;

struct SecurityCheck {
    /// The first release that has it.
    since: u32,
    /// The release from which on a check of the restricted level looks at the same and more.
    overridden_since: Option<u32>,
    find: Find,
}

const fn since(since: u32, find: Find) -> SecurityCheck {
    SecurityCheck { since, overridden_since: None, find }
}

const fn overridden(overridden_since: u32, find: Find) -> SecurityCheck {
    SecurityCheck { since: 0, overridden_since: Some(overridden_since), find }
}

/// In the order in which their findings are told.
const BASELINE: &[SecurityCheck] = &[
    since(0, baseline::app_armor_profile),
    overridden(22, baseline::capabilities),
    since(0, baseline::host_namespaces),
    overridden(0, baseline::host_path_volumes),
    since(0, baseline::host_ports),
    since(34, baseline::host_probes_and_lifecycle),
    since(0, baseline::privileged),
    since(0, baseline::proc_mount),
    since(0, baseline::selinux_options),
    overridden(19, baseline::seccomp_profile),
    since(0, baseline::sysctls),
    since(0, baseline::windows_host_process),
];

const RESTRICTED: &[SecurityCheck] = &[
    since(8, restricted::allow_privilege_escalation),
    since(22, restricted::capabilities),
    since(0, restricted::volumes),
    since(0, restricted::run_as_non_root),
    since(23, restricted::run_as_user),
    since(19, restricted::seccomp_profile),
];

/// What is wrong with a pod.
pub(super) fn evaluate(policy: LevelVersion, tree: &Value) -> Vec<Violation> {
    let pod = CheckedPod { tree, version: policy.version };
    let has = |minor: u32| PolicyVersion::Minor(minor) <= policy.version;
    let is_restricted = policy.level == SecurityLevel::Restricted;
    let stays = |check: &&SecurityCheck| !(is_restricted && check.overridden_since.is_some_and(has));
    let baseline = BASELINE.iter().filter(|_| policy.level >= SecurityLevel::Baseline).filter(stays);
    let restricted = RESTRICTED.iter().filter(|_| is_restricted);
    let checks = baseline.chain(restricted).filter(|check| has(check.since));
    checks.filter_map(|check| (check.find)(pod)).collect()
}

/// `reason (detail), reason (detail)`
pub(super) fn details(violations: &[Violation]) -> String {
    let shown = |violation: &Violation| format!("{} ({})", violation.reason, violation.detail);
    violations.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// `reason, reason`
pub(super) fn reasons(violations: &[Violation]) -> String {
    violations.iter().map(|violation| &*violation.reason).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Upstream's cases and texts: `level`, `version`, the pod, and what is said of it.
    #[test]
    fn pods_are_judged_as_upstream_judges_them() {
        let cases: Vec<Value> = serde_yaml::from_str(include_str!("../testdata/pods.yaml")).unwrap();
        for case in cases {
            let level = SecurityLevel::parse(case["level"].as_str().unwrap_or("baseline")).unwrap();
            let version = PolicyVersion::parse(case["version"].as_str().unwrap_or("latest")).unwrap();
            let found = evaluate(LevelVersion { level, version }, &case["pod"]);
            assert_eq!(details(&found), case["found"].as_str().unwrap_or_default(), "{case}");
        }
    }

    #[test]
    fn privileged_allows_everything() {
        let pod = serde_json::json!({"spec": {"hostNetwork": true}});
        assert!(evaluate(LevelVersion::default(), &pod).is_empty());
    }
}
