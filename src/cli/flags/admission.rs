//! Flags of admission, and the feature gates.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use super::values;
use crate::cli::{Failure, say};
use apimachinery::feature_gates::FeatureGates;
use apiserver::admission::AdmissionConfig;

/// What may come in.
#[derive(Args)]
#[command(next_help_heading = "Admission")]
pub struct AdmissionFlags {
    /// Admission plugins to run beside those that are on by default; their order does not matter.
    #[arg(long, value_delimiter = ',', value_name = "NAME", env = "KUBARIUM_ENABLE_ADMISSION_PLUGINS",
        value_parser = values::admission_plugin)]
    pub enable_admission_plugins: Vec<String>,
    /// Admission plugins not to run although they are on by default.
    #[arg(long, value_delimiter = ',', value_name = "NAME", env = "KUBARIUM_DISABLE_ADMISSION_PLUGINS",
        value_parser = values::admission_plugin)]
    pub disable_admission_plugins: Vec<String>,
    /// A file with an AdmissionConfiguration: what each plugin is told.
    #[arg(long, value_name = "FILE", env = "KUBARIUM_ADMISSION_CONTROL_CONFIG_FILE")]
    pub admission_control_config_file: Option<PathBuf>,
    /// How long pods stay on a node that is not ready, unless they say otherwise.
    #[arg(
        long,
        default_value_t = 300,
        value_name = "SECONDS",
        env = "KUBARIUM_DEFAULT_NOT_READY_TOLERATION_SECONDS"
    )]
    pub default_not_ready_toleration_seconds: i64,
    /// How long pods stay on a node that cannot be reached, unless they say otherwise.
    #[arg(
        long,
        default_value_t = 300,
        value_name = "SECONDS",
        env = "KUBARIUM_DEFAULT_UNREACHABLE_TOLERATION_SECONDS"
    )]
    pub default_unreachable_toleration_seconds: i64,
    /// Features to switch on or off, as Initializers=true.
    #[arg(
        long,
        default_value = "",
        value_name = "NAME=BOOL,...",
        env = "KUBARIUM_FEATURE_GATES",
        value_parser = values::feature_gates,
        hide_default_value = true
    )]
    pub feature_gates: String,
}

impl AdmissionFlags {
    /// What the flags say to admission.
    pub fn admission(&self) -> Result<AdmissionConfig, Failure> {
        let mut config = AdmissionConfig {
            enable: self.enable_admission_plugins.clone(),
            disable: self.disable_admission_plugins.clone(),
            default_not_ready_toleration_seconds: self.default_not_ready_toleration_seconds,
            default_unreachable_toleration_seconds: self.default_unreachable_toleration_seconds,
            ..AdmissionConfig::default()
        };
        if let errors @ [_, ..] = &*config.validate() {
            return Err(Failure(errors.join("; ")));
        }
        if let Some(path) = &self.admission_control_config_file {
            let failed = |why| Failure::new("failed to read plugin config", why);
            let folder = path.parent().unwrap_or(Path::new(""));
            let text = read(path).map_err(failed)?;
            config.read_plugins(&text, |plugin| read(&folder.join(plugin))).map_err(failed)?;
        }
        Ok(config)
    }

    /// What the flags say of features.
    pub fn gates(&self) -> Result<FeatureGates, Failure> {
        let failed = |why| {
            Failure(format!("invalid argument {:?} for \"--feature-gates\" flag: {why}", self.feature_gates))
        };
        let gates = FeatureGates::parse(&self.feature_gates).map_err(failed)?;
        for name in gates.without_effect() {
            say(format!("The feature gate {name} is known, and changes nothing here."));
        }
        Ok(gates)
    }
}

fn read(path: &Path) -> Result<String, String> {
    let failed =
        |why| format!("unable to read admission control configuration from {:?} [{why}]", path.display());
    fs::read_to_string(path).map_err(failed)
}
