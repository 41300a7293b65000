//! Reads a configuration, and says what about it cannot be.

use std::path::Path;

use serde::Deserialize;

use super::types::{
    API_VERSION, DEFAULT_SCHEDULER_NAME, KIND, KubeSchedulerConfiguration, Profile, SchedulerConfigError,
};
use super::validation;
use apimachinery::yaml;

impl KubeSchedulerConfiguration {
    /// Reads a file.
    ///
    /// # Errors
    /// What about it cannot be.
    pub fn load(path: &Path) -> Result<KubeSchedulerConfiguration, SchedulerConfigError> {
        let place = |error: String| SchedulerConfigError(format!("{}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| place(error.to_string()))?;
        KubeSchedulerConfiguration::parse(&text).map_err(|error| place(error.0))
    }

    /// Reads YAML or JSON.
    ///
    /// # Errors
    /// What about it cannot be.
    pub fn parse(text: &str) -> Result<KubeSchedulerConfiguration, SchedulerConfigError> {
        let documents = yaml::documents(text).map_err(|error| SchedulerConfigError(error.to_string()))?;
        let [tree] = documents.as_slice() else {
            let text = format!("one document is expected, a {KIND}; there are {}", documents.len());
            return Err(SchedulerConfigError(text));
        };
        let mut config = KubeSchedulerConfiguration::deserialize(tree)
            .map_err(|error| SchedulerConfigError(error.to_string()))?;
        if config.api_version != API_VERSION || config.kind != KIND {
            let KubeSchedulerConfiguration { api_version, kind, .. } = &config;
            let text = format!("{kind} of {api_version:?} is not known; {KIND} of {API_VERSION:?} is");
            return Err(SchedulerConfigError(text));
        }
        if config.profiles.is_empty() {
            config.profiles.push(Profile::default());
        }
        if let [only] = config.profiles.as_mut_slice() {
            only.scheduler_name.get_or_insert_with(|| DEFAULT_SCHEDULER_NAME.into());
        }
        validation::validate(&config)?;
        Ok(config)
    }
}
