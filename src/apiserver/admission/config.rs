//! What admission is told by flags and by its file (`apiserver.config.k8s.io/v1` AdmissionConfiguration).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use serde::Deserialize;
use serde_json::Value;

use apimachinery::yaml;
use component_base::flags::defaults;

golang::text_error! {
    /// What is wrong with the configuration of admission, or of one of its plugins; in upstream's words.
    pub struct BadAdmissionConfig;
}

/// Which plugins run, and what each is told (`AdmissionOptions`).
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Admission")]
pub struct AdmissionOptions {
    /// Admission plugins to run beside those that are on by default; their order does not matter.
    #[arg(id = "enable-admission-plugins", long, value_delimiter = ',', value_name = "NAME")]
    pub enable: Vec<String>,
    /// Admission plugins not to run although they are on by default.
    #[arg(id = "disable-admission-plugins", long, value_delimiter = ',', value_name = "NAME")]
    pub disable: Vec<String>,
    /// A file with an AdmissionConfiguration: what each plugin is told.
    #[arg(id = "admission-control-config-file", long, value_name = "FILE")]
    pub config_file: Option<PathBuf>,
    /// By plugin, what it reads: of the file, or of whoever makes a cluster without one.
    #[arg(skip)]
    pub plugins: BTreeMap<String, Value>,
    /// How long pods stay on a node that is not ready, unless they say otherwise.
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    pub default_not_ready_toleration_seconds: i64,
    /// How long pods stay on a node that cannot be reached, unless they say otherwise.
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    pub default_unreachable_toleration_seconds: i64,
}

impl Default for AdmissionOptions {
    fn default() -> AdmissionOptions {
        defaults()
    }
}

impl AdmissionOptions {
    /// With what the file says.
    ///
    /// # Errors
    /// A file that cannot be read, or that says something else.
    pub fn complete(&self) -> Result<AdmissionOptions, BadAdmissionConfig> {
        let mut options = self.clone();
        if let Some(path) = &self.config_file {
            let failed = |why: BadAdmissionConfig| format!("failed to read plugin config: {why}");
            let folder = path.parent().unwrap_or(Path::new(""));
            let text = read(path).map_err(failed)?;
            options.read_plugins(&text, |plugin| read(&folder.join(plugin))).map_err(failed)?;
        }
        Ok(options)
    }

    /// Reads the text of `--admission-control-config-file`; `read` fetches what a plugin's `path` names.
    ///
    /// # Errors
    /// A text that is no AdmissionConfiguration, or a file that `read` cannot fetch.
    pub fn read_plugins(
        &mut self,
        text: &str,
        read: impl Fn(&str) -> Result<String, BadAdmissionConfig>,
    ) -> Result<(), BadAdmissionConfig> {
        let tree = yaml(text)?;
        if tree["kind"].is_null() && !tree["podNodeSelectorPluginConfig"].is_null() {
            // The file of this plugin alone, as before there was a common one.
            self.plugins.insert("PodNodeSelector".into(), tree);
            return Ok(());
        }
        let file: AdmissionConfigurationFile =
            serde_json::from_value(tree).map_err(|error| error.to_string())?;
        if file.kind != "AdmissionConfiguration" || !VERSIONS.contains(&file.api_version.as_str()) {
            return Err(format!(
                "no kind {:?} is registered for version {:?} in scheme",
                file.kind, file.api_version
            )
            .into());
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
struct AdmissionConfigurationFile {
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

fn read(path: &Path) -> Result<String, BadAdmissionConfig> {
    let failed = |why| {
        format!("unable to read admission control configuration from {:?} [{why}]", path.display()).into()
    };
    fs::read_to_string(path).map_err(failed)
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
            (
                &["Nonsense"],
                &[],
                &["enable-admission-plugins plugin \"Nonsense\" is unknown; the plugins are "],
            ),
            (
                &[],
                &["limitranger"],
                &["disable-admission-plugins plugin \"limitranger\" is unknown; did you mean LimitRanger? "],
            ),
            (
                &["Priority", "PodSecurity"],
                &["PodSecurity", "Priority"],
                &["[PodSecurity Priority] in enable-admission-plugins and disable-admission-plugins \
                   overlapped"],
            ),
        ];
        for (enable, disable, errors) in cases {
            let config =
                AdmissionOptions { enable: names(enable), disable: names(disable), ..Default::default() };
            let told = config.validate();
            assert_eq!(told.len(), errors.len(), "{told:?}");
            assert!(told.iter().zip(errors).all(|(told, wanted)| told.starts_with(wanted)), "{told:?}");
        }
    }

    #[test]
    fn what_is_enabled_wins_over_the_defaults() {
        let mut config = AdmissionOptions::default();
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
        let mut config = AdmissionOptions::default();
        config.read_plugins(text, |path| Ok(format!("kind: {path}"))).unwrap();
        assert_eq!(config.plugins["PodSecurity"]["kind"], "PodSecurityConfiguration");
        assert_eq!(config.plugins["EventRateLimit"]["kind"], "limits.yaml");
        let refused = config.read_plugins("apiVersion: v1\nkind: Pod\n", |_| Err("".into())).unwrap_err();
        assert_eq!(refused, "no kind \"Pod\" is registered for version \"v1\" in scheme");
    }
}
