//! `--runtime-config`: which versions and resources are served
//! (`k8s.io/apiserver/pkg/server/resourceconfig`).

use super::kind::{Builtin, Kind};

golang::text_error! {
    /// What `--runtime-config` cannot say; in upstream's words.
    pub struct BadRuntimeConfig;
}

/// What is said about versions and resources, in the order in which it is applied: all, then by stability,
/// then by version, then by resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeConfig {
    entries: Vec<(String, bool)>,
}

/// How stable a version is said to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stability {
    Stable,
    Beta,
    Alpha,
}

impl RuntimeConfig {
    /// Reads `key=value` pairs: `api/all=false`, `api/legacy=true`, `apps/v1beta1=true`,
    /// `batch/v1/cronjobs=false`. A bare key is true.
    ///
    /// # Errors
    /// A sentence, when a value is no boolean or a key names nothing that is known.
    pub fn parse<'a>(pairs: impl IntoIterator<Item = &'a str>) -> Result<RuntimeConfig, BadRuntimeConfig> {
        let mut entries = Vec::new();
        for pair in pairs.into_iter().map(str::trim).filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, "true"));
            let value = match value.to_ascii_lowercase().as_str() {
                "" | "true" | "1" | "t" => true,
                "false" | "0" | "f" => false,
                _ => return Err(format!("invalid value of {key}: {value}, must be true or false").into()),
            };
            check(key)?;
            entries.push((normal(key), value));
        }
        Ok(RuntimeConfig { entries })
    }

    /// The groups that may be named, in order.
    pub fn groups() -> Vec<&'static str> {
        let known = super::all().into_iter().chain(super::legacy::KINDS.iter().copied());
        let mut groups: Vec<&str> = known.map(|kind| &*kind.group_version.group).collect();
        groups.retain(|group| !group.is_empty());
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    /// The built-in kinds that are served.
    pub fn served(&self) -> Vec<&'static Builtin> {
        let today = super::all().into_iter().map(|kind| (kind, false));
        let legacy = super::legacy::KINDS.iter().map(|kind| (*kind, true));
        let served = today.chain(legacy).filter(|(kind, is_legacy)| self.is_served(kind, *is_legacy));
        served.map(|(kind, _)| kind).collect()
    }

    fn is_served(&self, kind: &Kind, is_legacy: bool) -> bool {
        let version = &kind.group_version;
        let stability = match &*version.version {
            name if name.contains("alpha") => Stability::Alpha,
            name if name.contains("beta") => Stability::Beta,
            _ => Stability::Stable,
        };
        let mut is_served = !is_legacy;
        let name = normal(&version.to_string());
        let resource = format!("{name}/{}", kind.plural);
        let mut apply = |key: &str| {
            for (_, value) in self.entries.iter().filter(|(own, _)| own == key) {
                is_served = *value;
            }
        };
        apply("api/all");
        match stability {
            Stability::Stable => apply("api/ga"),
            Stability::Beta => apply("api/beta"),
            Stability::Alpha => apply("api/alpha"),
        }
        if is_legacy {
            apply("api/legacy");
        }
        apply(&name);
        apply(&resource);
        // One resource that is asked for brings its version, but not the others of that version.
        is_served
    }
}

/// The core group is `v1` or `api/v1`.
fn normal(key: &str) -> String {
    match key.strip_prefix("v1/") {
        _ if key == "v1" => "api/v1".to_owned(),
        Some(resource) => format!("api/v1/{resource}"),
        None => key.to_owned(),
    }
}

fn check(key: &str) -> Result<(), String> {
    if matches!(key, "api/all" | "api/ga" | "api/beta" | "api/alpha" | "api/legacy") {
        return Ok(());
    }
    let key = normal(key);
    let parts: Vec<&str> = key.split('/').collect();
    let (group, version, resource) = match parts[..] {
        ["api", version] => ("", version, ""),
        ["api", version, resource] => ("", version, resource),
        [group, version] => (group, version, ""),
        [group, version, resource] => (group, version, resource),
        _ => return Err(format!("runtime-config invalid key {key}")),
    };
    let known = || super::all().into_iter().chain(super::legacy::KINDS.iter().copied());
    let of_group = |kind: &&Builtin| &*kind.group_version.group == group;
    if !known().any(|kind| of_group(&kind)) {
        return Err(format!("unknown api groups {group}"));
    }
    // Versions that upstream knows and does not serve by default may be named.
    let is_version = version.starts_with('v') && version[1..].starts_with(|c: char| c.is_ascii_digit());
    let is_there = |kind: &Builtin| &*kind.plural == resource && &*kind.group_version.version == version;
    if !is_version || (!resource.is_empty() && !known().filter(of_group).any(is_there)) {
        return Err(format!("runtime-config invalid key {key}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(pairs: &str) -> Vec<String> {
        let kinds = RuntimeConfig::parse(pairs.split(',')).unwrap().served();
        kinds.iter().map(|kind| format!("{}/{}", kind.group_version, kind.plural)).collect()
    }

    #[test]
    fn what_is_asked_for_is_served() {
        let has = |pairs: &str, name: &str| served(pairs).iter().any(|own| own == name);
        assert!(!has("", "apps/v1beta1/deployments") && has("", "apps/v1/deployments"));
        assert!(has("api/legacy=true", "extensions/v1beta1/deployments"));
        assert!(has("api/legacy", "batch/v2alpha1/cronjobs"));
        assert!(has("apps/v1beta1=true", "apps/v1beta1/deployments"));
        assert!(!has("apps/v1beta1=true", "apps/v1beta2/deployments"));
        assert_eq!(served("api/all=false,v1=true").iter().filter(|name| !name.starts_with("v1/")).count(), 0);
        assert!(!has("batch/v1/cronjobs=false", "batch/v1/cronjobs"));
        assert!(has("batch/v1/cronjobs=false", "batch/v1/jobs"));
    }

    #[test]
    fn what_is_no_configuration_is_refused() {
        for (text, why) in [
            ("api/legacy=maybe", "invalid value of api/legacy: maybe, must be true or false"),
            ("nothing.io/v1=true", "unknown api groups nothing.io"),
            ("apps/v1/x/y=true", "runtime-config invalid key apps/v1/x/y"),
            ("apps/v1/pods=true", "runtime-config invalid key apps/v1/pods"),
        ] {
            assert_eq!(RuntimeConfig::parse([text]).unwrap_err(), why);
        }
    }
}
