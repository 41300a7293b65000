//! What PodSecurity is told (`pod-security.admission.config.k8s.io/v1` PodSecurityConfiguration).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::policy::{LevelVersion, PolicyVersion, SecurityLevel, SecurityPolicy};
use crate::admission::config::BadAdmissionConfig;

/// What holds where a namespace says nothing, and who is exempt.
#[derive(Clone, Debug, Default)]
pub(super) struct PodSecurityConfig {
    /// For what labels leave out.
    pub defaults: SecurityPolicy,
    /// Whom it does not concern.
    pub exemptions: Exemptions,
}

/// Whom it does not concern.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Exemptions {
    /// What these users write.
    pub usernames: Vec<String>,
    /// Pods of these runtime classes.
    pub runtime_classes: Vec<String>,
    /// What is in these namespaces.
    pub namespaces: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodSecurityConfigurationFile {
    defaults: BTreeMap<String, String>,
    exemptions: Exemptions,
}

impl PodSecurityConfig {
    /// # Errors
    /// Levels and versions that are none.
    pub(super) fn read(tree: &Value) -> Result<PodSecurityConfig, BadAdmissionConfig> {
        if tree.is_null() {
            return Ok(PodSecurityConfig::default());
        }
        let PodSecurityConfigurationFile { defaults, exemptions } =
            serde_json::from_value(tree.clone()).map_err(|error| error.to_string())?;
        let mode = |name: &str| -> Result<LevelVersion, String> {
            let text = |key: &str| defaults.get(key).map(String::as_str).filter(|text| !text.is_empty());
            let version_key = format!("{name}-version");
            let (level, version) =
                (text(name).unwrap_or("privileged"), text(&version_key).unwrap_or("latest"));
            let invalid = |key: &str, value: &str, why: &str| {
                format!("defaults.{key}: Invalid value: {value:?}: {why}")
            };
            Ok(LevelVersion {
                level: SecurityLevel::parse(level).map_err(|why| invalid(name, level, why))?,
                version: PolicyVersion::parse(version).map_err(|why| invalid(&version_key, version, why))?,
            })
        };
        let defaults =
            SecurityPolicy { enforce: mode("enforce")?, audit: mode("audit")?, warn: mode("warn")? };
        Ok(PodSecurityConfig { defaults, exemptions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn defaults_and_exemptions_are_read() {
        let tree = json!({"defaults": {"enforce": "baseline", "enforce-version": "v1.25"},
            "exemptions": {"namespaces": ["kube-system"]}});
        let configuration = PodSecurityConfig::read(&tree).unwrap();
        assert_eq!(configuration.defaults.enforce.to_string(), "baseline:v1.25");
        assert_eq!(configuration.exemptions.namespaces, ["kube-system"]);
        let wrong = PodSecurityConfig::read(&json!({"defaults": {"warn": "x"}})).unwrap_err();
        assert_eq!(
            wrong,
            "defaults.warn: Invalid value: \"x\": must be one of privileged, baseline, restricted"
        );
    }
}
