//! Levels, versions, and what a namespace's labels ask for (`k8s.io/pod-security-admission/api`).

use std::collections::BTreeMap;
use std::fmt;

use apimachinery::field_error::FieldErrors;

/// How strict; the greater the stricter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
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
pub(super) enum Version {
    /// `v1.MINOR`
    Minor(u32),
    /// This server's.
    Latest,
}

/// As `restricted:latest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LevelVersion {
    /// How strict.
    pub level: Level,
    /// As of when.
    pub version: Version,
}

/// What is refused, noted and warned of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Policy {
    /// Pods that violate it are refused.
    pub enforce: LevelVersion,
    /// Pods and workloads that violate it are noted in the audit event.
    pub audit: LevelVersion,
    /// Who writes such pods and workloads is warned.
    pub warn: LevelVersion,
}

impl Default for LevelVersion {
    fn default() -> LevelVersion {
        LevelVersion { level: Level::Privileged, version: Version::Latest }
    }
}

impl Level {
    /// # Errors
    /// Upstream's words for another word.
    pub(super) fn parse(text: &str) -> Result<Level, &'static str> {
        match text {
            "privileged" => Ok(Level::Privileged),
            "baseline" => Ok(Level::Baseline),
            "restricted" => Ok(Level::Restricted),
            _ => Err("must be one of privileged, baseline, restricted"),
        }
    }
}

impl Version {
    /// # Errors
    /// Upstream's words for another word.
    pub(super) fn parse(text: &str) -> Result<Version, &'static str> {
        if text == "latest" {
            return Ok(Version::Latest);
        }
        let minor = text.strip_prefix("v1.").filter(|minor| *minor == "0" || !minor.starts_with('0'));
        let is_number = |minor: &&str| !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit());
        let minor = minor.filter(is_number).and_then(|minor| minor.parse().ok());
        minor.map(Version::Minor).ok_or("must be \"latest\" or \"v1.x\"")
    }
}

const PREFIX: &str = "pod-security.kubernetes.io/";

impl Policy {
    /// What a namespace's labels ask for, and what is wrong with them. A wrong label counts as the strictest
    /// for `enforce`, and not at all for the other two.
    pub(super) fn of(labels: &BTreeMap<String, String>, defaults: &Policy) -> (Policy, FieldErrors) {
        let (mut policy, mut errors) = (*defaults, FieldErrors::default());
        let mut labels = Labels { labels, errors: &mut errors };
        let enforced = labels.labels.get(&format!("{PREFIX}enforce")).map(|text| Level::parse(text));
        labels.apply("enforce", Level::Restricted, &mut policy.enforce);
        labels.apply("audit", Level::Privileged, &mut policy.audit);
        let (has_level, has_version) = (labels.has("warn"), labels.has("warn-version"));
        labels.apply("warn", Level::Privileged, &mut policy.warn);
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
        [self.enforce, self.audit, self.warn].iter().all(|mode| mode.level == Level::Privileged)
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

    fn apply(&mut self, mode: &str, fallback: Level, to: &mut LevelVersion) {
        if let Some(level) = self.checked(mode, Level::parse) {
            to.level = level.unwrap_or(fallback);
        }
        if let Some(version) = self.checked(&format!("{mode}-version"), Version::parse) {
            to.version = version.unwrap_or(Version::Latest);
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
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        match self.version {
            Version::Latest => write!(f, "{level}:latest"),
            Version::Minor(minor) => write!(f, "{level}:v1.{minor}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(labels: &[(&str, &str)]) -> (String, String) {
        let label = |(name, value): &(&str, &str)| (format!("{PREFIX}{name}"), (*value).to_owned());
        let (policy, errors) = Policy::of(&labels.iter().map(label).collect(), &Policy::default());
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
