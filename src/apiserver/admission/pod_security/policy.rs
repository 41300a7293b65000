//! Levels, versions, and what a namespace's labels ask for (`k8s.io/pod-security-admission/api`).

use std::collections::BTreeMap;
use std::fmt;

use apimachinery::field_error::FieldErrors;

/// How strict; the greater the stricter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SecurityLevel {
    /// Everything is allowed.
    #[default]
    Privileged,
    /// Nothing that is known to lead out of a container.
    Baseline,
    /// What a hardened pod looks like.
    Restricted,
}

/// Which release's idea of a level; the greater the newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PolicyVersion {
    /// `v1.MINOR`
    Minor(u32),
    /// This server's.
    Latest,
}

/// As `restricted:latest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LevelVersion {
    /// How strict.
    pub level: SecurityLevel,
    /// As of when.
    pub version: PolicyVersion,
}

/// What is refused, noted and warned of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SecurityPolicy {
    /// Pods that violate it are refused.
    pub enforce: LevelVersion,
    /// Pods and workloads that violate it are noted in the audit event.
    pub audit: LevelVersion,
    /// Who writes such pods and workloads is warned.
    pub warn: LevelVersion,
}

impl Default for LevelVersion {
    fn default() -> LevelVersion {
        LevelVersion { level: SecurityLevel::Privileged, version: PolicyVersion::Latest }
    }
}

impl SecurityLevel {
    /// # Errors
    /// Upstream's words for another word.
    pub(super) fn parse(text: &str) -> Result<SecurityLevel, &'static str> {
        match text {
            "privileged" => Ok(SecurityLevel::Privileged),
            "baseline" => Ok(SecurityLevel::Baseline),
            "restricted" => Ok(SecurityLevel::Restricted),
            _ => Err("must be one of privileged, baseline, restricted"),
        }
    }
}

impl PolicyVersion {
    /// # Errors
    /// Upstream's words for another word.
    pub(super) fn parse(text: &str) -> Result<PolicyVersion, &'static str> {
        if text == "latest" {
            return Ok(PolicyVersion::Latest);
        }
        let minor = text.strip_prefix("v1.").filter(|minor| *minor == "0" || !minor.starts_with('0'));
        let is_number = |minor: &&str| !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit());
        let minor = minor.filter(is_number).and_then(|minor| minor.parse().ok());
        minor.map(PolicyVersion::Minor).ok_or("must be \"latest\" or \"v1.x\"")
    }
}

const PREFIX: &str = "pod-security.kubernetes.io/";

impl SecurityPolicy {
    /// What a namespace's labels ask for, and what is wrong with them. A wrong label counts as the strictest
    /// for `enforce`, and not at all for the other two.
    pub(super) fn of(
        labels: &BTreeMap<String, String>,
        defaults: &SecurityPolicy,
    ) -> (SecurityPolicy, FieldErrors) {
        let (mut policy, mut errors) = (*defaults, FieldErrors::default());
        let mut labels = Labels { labels, errors: &mut errors };
        let enforced = labels.labels.get(&format!("{PREFIX}enforce")).map(|text| SecurityLevel::parse(text));
        labels.apply("enforce", SecurityLevel::Restricted, &mut policy.enforce);
        labels.apply("audit", SecurityLevel::Privileged, &mut policy.audit);
        let (has_level, has_version) = (labels.has("warn"), labels.has("warn-version"));
        labels.apply("warn", SecurityLevel::Privileged, &mut policy.warn);
        // Whoever enforces wants workloads to be warned of it: their pods come later.
        if let (Some(Ok(level)), false) = (enforced, has_level) {
            policy.warn.level = level;
            if !has_version {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, errors)
    }

    /// Whether nothing is asked for.
    pub(super) fn is_privileged(&self) -> bool {
        [self.enforce, self.audit, self.warn].iter().all(|mode| mode.level == SecurityLevel::Privileged)
    }
}

struct Labels<'a> {
    labels: &'a BTreeMap<String, String>,
    errors: &'a mut FieldErrors,
}

impl Labels<'_> {
    fn has(&self, name: &str) -> bool {
        self.labels.contains_key(&format!("{PREFIX}{name}"))
    }

    fn apply(&mut self, mode: &str, fallback: SecurityLevel, to: &mut LevelVersion) {
        if let Some(level) = self.checked(mode, SecurityLevel::parse) {
            to.level = level.unwrap_or(fallback);
        }
        if let Some(version) = self.checked(&format!("{mode}-version"), PolicyVersion::parse) {
            to.version = version.unwrap_or(PolicyVersion::Latest);
        }
    }

    /// The value of a label, if it is there; none inside where it is wrong, which is noted.
    fn checked<T>(
        &mut self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, &'static str>,
    ) -> Option<Option<T>> {
        let key = format!("{PREFIX}{name}");
        let text = self.labels.get(&key)?;
        let parsed = parse(text);
        if let Err(why) = &parsed {
            self.errors.invalid(format!("metadata.labels[{key}]"), &text.as_str().into(), why);
        }
        Some(parsed.ok())
    }
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            SecurityLevel::Privileged => "privileged",
            SecurityLevel::Baseline => "baseline",
            SecurityLevel::Restricted => "restricted",
        };
        match self.version {
            PolicyVersion::Latest => write!(f, "{level}:latest"),
            PolicyVersion::Minor(minor) => write!(f, "{level}:v1.{minor}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(labels: &[(&str, &str)]) -> (String, String) {
        let label = |(name, value): &(&str, &str)| (format!("{PREFIX}{name}"), (*value).to_owned());
        let (policy, errors) =
            SecurityPolicy::of(&labels.iter().map(label).collect(), &SecurityPolicy::default());
        (format!("{} {} {}", policy.enforce, policy.audit, policy.warn), errors.to_string().replace("[]", ""))
    }

    #[test]
    fn labels_make_a_policy() {
        // labels, enforce audit warn, errors
        type Labels<'a> = &'a [(&'a str, &'a str)];
        let cases: [(Labels, &str, &str); 6] = [
            (&[], "privileged:latest privileged:latest privileged:latest", ""),
            (
                &[("enforce", "baseline"), ("enforce-version", "v1.20")],
                "baseline:v1.20 privileged:latest baseline:v1.20",
                "",
            ),
            (
                &[("enforce", "baseline"), ("warn", "restricted"), ("audit-version", "v1.0")],
                "baseline:latest privileged:v1.0 restricted:latest",
                "",
            ),
            (
                &[("enforce", "foo")],
                "restricted:latest privileged:latest privileged:latest",
                "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"foo\": must be one of \
                 privileged, baseline, restricted",
            ),
            (
                &[("warn", "")],
                "privileged:latest privileged:latest privileged:latest",
                "metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: \"\": must be one of \
                 privileged, baseline, restricted",
            ),
            (
                &[("enforce-version", "v1.01")],
                "privileged:latest privileged:latest privileged:latest",
                "metadata.labels[pod-security.kubernetes.io/enforce-version]: Invalid value: \"v1.01\": must \
                 be \"latest\" or \"v1.x\"",
            ),
        ];
        for (labels, policy, errors) in cases {
            let (found, wrong) = shown(labels);
            assert_eq!((&*found, &*wrong), (policy, errors), "{labels:?}");
        }
    }
}
