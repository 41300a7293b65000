//! What is done instead of a container's restart policy, as the kubelet reads it.

use serde::Deserialize;

use apimachinery::object::list;

/// `v1.ContainerRestartRule`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RestartRule {
    /// `Restart` or `RestartAllContainers`.
    pub action: String,
    /// For which ends it is.
    pub exit_codes: ExitCodes,
}

/// `v1.ContainerRestartRuleOnExitCodes`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ExitCodes {
    /// `In` or `NotIn`.
    pub operator: String,
    /// The codes.
    #[serde(deserialize_with = "list")]
    pub values: Vec<i32>,
}

impl RestartRule {
    /// Whether it is for a container that ended with this code (`isExitCodeMatch`).
    pub fn matches(&self, exit_code: i32) -> bool {
        let is_named = self.exit_codes.values.contains(&exit_code);
        match self.exit_codes.operator.as_str() {
            "In" => is_named,
            "NotIn" => !is_named,
            _ => false,
        }
    }
}
