//! KubeSchedulerConfiguration (`kubescheduler.config.k8s.io/v1`): what `--scheduler-config` names.
//!
//! What is about the process alone (leader election, client connection, profiling, parallelism) may stand
//! there, so that a file works as it is; nothing here has any use for it.

pub mod types;

mod read;
mod validation;

pub mod configz;
pub mod merge;

#[cfg(test)]
mod tests;

pub use types::{
    DEFAULT_SCHEDULER_NAME, Extender, ExtenderTls, KubeSchedulerConfiguration, PluginConfig, Profile,
    SchedulerConfigError,
};
