//! What admission is told by flags and by its file (`apiserver.config.k8s.io/v1` AdmissionConfiguration).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use apimachinery::yaml;

/// Which plugins run, and what each is told.
#[derive(Clone, Debug)]
pub struct AdmissionConfig {
    /// `--enable-admission-plugins`: beside those that are on by default.
    pub enable: Vec<String>,
    /// `--disable-admission-plugins`
    pub disable: Vec<String>,
    /// `--admission-control-config-file`: by plugin, what it reads.
    pub plugins: BTreeMap<String, Value>,
    /// `--default-not-ready-toleration-seconds`
    pub default_not_ready_toleration_seconds: i64,
    /// `--default-unreachable-toleration-seconds`
    pub default_unreachable_toleration_seconds: i64,
}

impl Default for AdmissionConfig {
    fn default() -> AdmissionConfig {
        AdmissionConfig {
            enable: vec![],
            disable: vec![],
            plugins: BTreeMap::new(),
            default_not_ready_toleration_seconds: 300,
            default_unreachable_toleration_seconds: 300,
        }
    }
}

impl AdmissionConfig {
    /// Reads the text of `--admission-control-config-file`; `read` fetches what a plugin's `path` names.
    ///
    /// # Errors
    /// A text that is no AdmissionConfiguration, or a file that `read` cannot fetch.
    pub fn read_plugins(
        &mut self,
        text: &str,
        read: impl Fn(&str) -> Result<String, String>,
    ) -> Result<(), String> {
        let tree = yaml(text)?;
        if tree["kind"].is_null() && !tree["podNodeSelectorPluginConfig"].is_null() {
            // The file of this plugin alone, as before there was a common one.
            self.plugins.insert("PodNodeSelector".into(), tree);
            return Ok(());
        }
        let file: File = serde_json::from_value(tree).map_err(|error| error.to_string())?;
        if file.kind != "AdmissionConfiguration" || !VERSIONS.contains(&file.api_version.as_str()) {
            return Err(format!(
                "no kind {:?} is registered for version {:?} in scheme",
                file.kind, file.api_version
            ));
        }
        for plugin in file.plugins {
            let configuration = match plugin.configuration {
                Value::Null if plugin.path.is_empty() => Value::Null,
                Value::Null => yaml(&read(&plugin.path)?)?,
                inline => inline,
            };
            // The first that names a plugin is the one that counts.
            self.plugins.entry(plugin.name).or_insert(configuration);
        }
        Ok(())
    }
}

const VERSIONS: [&str; 2] = ["apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct File {
    api_version: String,
    kind: String,
    plugins: Vec<FilePlugin>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FilePlugin {
    name: String,
    path: String,
    configuration: Value,
}

fn yaml(text: &str) -> Result<Value, String> {
    yaml::from_str(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_checked_in_upstreams_words() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        // enable, disable, errors
        let cases: [(&[&str], &[&str], &[&str]); 4] = [
            (&["AlwaysPullImages"], &["LimitRanger"], &[]),
            (&["Nonsense"], &[], &["enable-admission-plugins plugin \"Nonsense\" is unknown"]),
            (&[], &["Nonsense"], &["disable-admission-plugins plugin \"Nonsense\" is unknown"]),
            (
                &["Priority", "PodSecurity"],
                &["PodSecurity", "Priority"],
                &["[PodSecurity Priority] in enable-admission-plugins and disable-admission-plugins \
                   overlapped"],
            ),
        ];
        for (enable, disable, errors) in cases {
            let config =
                AdmissionConfig { enable: names(enable), disable: names(disable), ..Default::default() };
            assert_eq!(config.validate(), errors);
        }
    }

    #[test]
    fn what_is_enabled_wins_over_the_defaults() {
        let mut config = AdmissionConfig::default();
        assert!(config.is_enabled("NamespaceLifecycle") && !config.is_enabled("AlwaysDeny"));
        config.enable.push("AlwaysDeny".into());
        config.disable.push("NamespaceLifecycle".into());
        assert!(!config.is_enabled("NamespaceLifecycle") && config.is_enabled("AlwaysDeny"));
    }

    #[test]
    fn the_file_says_what_each_plugin_reads() {
        let text = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n\
                    - {name: PodSecurity, configuration: {kind: PodSecurityConfiguration}}\n\
                    - {name: EventRateLimit, path: limits.yaml}\n";
        let mut config = AdmissionConfig::default();
        config.read_plugins(text, |path| Ok(format!("kind: {path}"))).unwrap();
        assert_eq!(config.plugins["PodSecurity"]["kind"], "PodSecurityConfiguration");
        assert_eq!(config.plugins["EventRateLimit"]["kind"], "limits.yaml");
        let refused = config.read_plugins("apiVersion: v1\nkind: Pod\n", |_| Err(String::new())).unwrap_err();
        assert_eq!(refused, "no kind \"Pod\" is registered for version \"v1\" in scheme");
    }
}
