//! The options of kube-scheduler (`app/options.Options`): a flag is a field here, with its doc comment as
//! help, and its use.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use super::config::{KubeSchedulerConfiguration, SchedulerConfigError};
use apimachinery::duration::parse_period;
use clap::Args;
use component_base::flags::defaults;

/// What kube-scheduler is told.
#[derive(Args, Clone, Debug)]
#[non_exhaustive]
#[command(next_help_heading = "Scheduler and kubelets")]
pub struct SchedulerOptions {
    /// After how long a pod that fits nowhere is tried again, whatever happened meanwhile.
    #[arg(long, default_value = "5m", value_parser = parse_period)]
    pub pod_max_in_unschedulable_pods_duration: Duration,

    /// A KubeSchedulerConfiguration: profiles, plugins, extenders (kube-scheduler's `--config`).
    #[arg(long, value_name = "FILE", value_parser = read_config)]
    pub scheduler_config: Option<KubeSchedulerConfiguration>,
}

fn read_config(path: &str) -> Result<KubeSchedulerConfiguration, SchedulerConfigError> {
    KubeSchedulerConfiguration::load(Path::new(path))
}

impl Default for SchedulerOptions {
    /// Worked out once: it takes longer than all else of making a config.
    fn default() -> SchedulerOptions {
        static DEFAULTS: LazyLock<SchedulerOptions> = LazyLock::new(defaults);
        DEFAULTS.clone()
    }
}
