//! The options of the kubelets (`cmd/kubelet/app/options.KubeletFlags`, and fields of their configuration): a
//! flag is a field here, with its doc comment as help, and its use.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use super::backoff;
use super::credential_provider::PrivateRegistries;
use super::eviction_manager::{EvictionThresholds, SignalPeriods, SignalReclaims};
use super::node_refusal::NodeRefusal;
use super::sysctl::AllowedSysctls;
use apimachinery::duration::{parse_flag, parse_period};
use clap::Args;
use component_base::flags::defaults;

/// What upstream's kubelets have (`DefaultEvictionHard`).
const EVICTION_HARD: &str = "memory.available<100Mi, nodefs.available<10%, nodefs.inodesFree<5%, \
                             imagefs.available<15%, imagefs.inodesFree<5%";

/// What the kubelets are told, all the same.
#[derive(Args, Clone, Debug)]
#[non_exhaustive]
#[command(next_help_heading = "Scheduler and kubelets")]
pub struct KubeletOptions {
    /// How many pods a node takes.
    #[arg(long, default_value_t = 110, value_name = "N")]
    pub max_pods: u32,
    /// How often a node says that it is there, and it is looked whether its status changed.
    #[arg(long, default_value = "10s", value_parser = parse_period)]
    pub node_status_update_frequency: Duration,
    /// So many images are in a node's status, the largest; -1 is no limit.
    #[arg(long, default_value_t = 50, value_name = "N", allow_negative_numbers = true,
        value_parser = clap::value_parser!(i32).range(-1..))]
    pub node_status_max_images: i32,
    /// How long exec, attach and port-forward stay when nobody says anything; 0 is for ever.
    #[arg(long, default_value = "4h", value_parser = parse_flag)]
    pub streaming_connection_idle_timeout: Duration,
    /// Registries whose images are pulled with a login alone, as registry.example.com/team=user:password.
    ///
    /// Pods show it by Secrets of the type kubernetes.io/dockerconfigjson, in their imagePullSecrets or those
    /// of their service account. Other registries give everything to everybody.
    #[arg(long, default_value = "", value_name = "REGISTRY=USER:PASSWORD,...")]
    pub private_registries: PrivateRegistries,
    /// A folder whose files are static pods, which each node runs: of each it has a mirror pod.
    #[arg(long, value_name = "DIR")]
    pub pod_manifest_path: Option<PathBuf>,
    /// Kernel parameters that pods may set beside the safe ones, or patterns as kernel.msg*.
    ///
    /// A pod that sets another fails with the reason SysctlForbidden.
    #[arg(long, default_value = "", value_name = "SYSCTL,...")]
    pub allowed_unsafe_sysctls: AllowedSysctls,
    /// Less of something than this is left, by what pods use, and a pod is evicted at once.
    ///
    /// Signals are memory.available, nodefs.available, imagefs.available (the same disk) and
    /// pid.available; values are quantities or shares. An empty text is no threshold. Nothing is looked at
    /// on nodes whose pods say nothing of what they use.
    #[arg(
        long,
        default_value = EVICTION_HARD,
        value_name = "SIGNAL<VALUE,..."
    )]
    pub eviction_hard: EvictionThresholds,
    /// Less than this for as long as --eviction-soft-grace-period says, and a pod is evicted with grace.
    #[arg(long, default_value = "", value_name = "SIGNAL<VALUE,...")]
    pub eviction_soft: EvictionThresholds,
    /// For how long soft thresholds have to be met, as memory.available=90s.
    #[arg(long, default_value = "", value_name = "SIGNAL=TIME,...")]
    pub eviction_soft_grace_period: SignalPeriods,
    /// How many seconds a pod has at most that a soft threshold evicts.
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    pub eviction_max_pod_grace_period: i64,
    /// How much more than the threshold is to be left once it was met, as memory.available=500Mi.
    #[arg(long, default_value = "", value_name = "SIGNAL=VALUE,...")]
    pub eviction_minimum_reclaim: SignalReclaims,
    /// When so much of the disk is used, in percent, images go that nobody uses; 100 is never.
    #[arg(long, default_value_t = 85, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub image_gc_high_threshold: u8,
    /// Until so much is used, in percent.
    #[arg(long, default_value_t = 80, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub image_gc_low_threshold: u8,
    /// How long an image stays at least that nobody uses.
    #[arg(long, default_value = "2m", value_parser = parse_flag)]
    pub minimum_image_ttl_duration: Duration,
    /// For how long nobody uses an image that goes however much room there is; 0s keeps them.
    #[arg(long, default_value = "0s", value_parser = parse_flag)]
    pub image_maximum_gc_age: Duration,
    /// The longest pause before a container that fails again and again is started, from 1s to 5m.
    #[arg(long, default_value = "5m", value_parser = restart_period)]
    pub max_container_restart_period: Duration,
    /// So many containers that have ended are kept of each container of a pod, with their logs; -1 keeps all.
    #[arg(long, default_value_t = 1, value_name = "N", allow_negative_numbers = true)]
    pub maximum_dead_containers_per_container: i32,
    /// So many are kept on a node, whichever pods they are of; -1 is no limit.
    #[arg(long, default_value_t = -1, value_name = "N", allow_negative_numbers = true)]
    pub maximum_dead_containers: i32,
    /// How old a container is at least that is removed once it has ended.
    #[arg(long, default_value = "0s", value_parser = parse_flag)]
    pub minimum_container_ttl_duration: Duration,
    /// For how long a node has a condition of pressure after it was observed last.
    #[arg(long, default_value = "5m", value_parser = parse_period)]
    pub eviction_pressure_transition_period: Duration,
}

/// `crashLoopBackOff.maxContainerRestartPeriod`
fn restart_period(text: &str) -> Result<Duration, String> {
    let period = parse_period(text)?;
    let is_fine = (Duration::from_secs(1)..=backoff::MAX).contains(&period);
    is_fine.then_some(period).ok_or_else(|| "must be between 1s and 5m".to_owned())
}

impl Default for KubeletOptions {
    /// Worked out once: it takes longer than all else of making a config.
    fn default() -> KubeletOptions {
        static DEFAULTS: LazyLock<KubeletOptions> = LazyLock::new(defaults);
        DEFAULTS.clone()
    }
}

impl KubeletOptions {
    /// Whether all fit together.
    ///
    /// # Errors
    /// What does not, and what to say.
    pub(crate) fn check(&self) -> Result<(), NodeRefusal> {
        let high = self.image_gc_high_threshold;
        let low = self.image_gc_low_threshold;
        if low >= high {
            let why = "must be less than --image-gc-high-threshold";
            return Err(format!("--image-gc-low-threshold {low} {why} {high}").into());
        }
        self.eviction_soft.check(&self.eviction_soft_grace_period)
    }

    /// How many images are in a node's status.
    pub(crate) fn max_images(&self) -> usize {
        usize::try_from(self.node_status_max_images).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        options: KubeletOptions,
    }

    #[test]
    fn the_defaults_are_upstreams_and_values_are_looked_at() {
        let options = KubeletOptions::default();
        assert_eq!((options.max_pods, options.node_status_max_images), (110, 50));
        assert_eq!(options.node_status_update_frequency, Duration::from_secs(10));
        let parse = |argument: &str| Only::try_parse_from(["up", argument]).map(|only| only.options);
        assert_eq!(parse("--node-status-max-images=-1").unwrap().max_images(), usize::MAX);
        assert_eq!(parse("--node-status-max-images=0").unwrap().max_images(), 0);
        assert!(parse("--node-status-max-images=-2").is_err());
        assert!(parse("--node-status-update-frequency=0s").is_err());
        assert!(parse("--max-pods=-1").is_err());
        assert!(parse("--max-container-restart-period=301s").is_err());
        assert_eq!(parse("--maximum-dead-containers=-1").unwrap().maximum_dead_containers, -1);
        assert!(parse("--image-gc-low-threshold=85").unwrap().check().is_err());
        assert!(parse("--image-gc-low-threshold=84").unwrap().check().is_ok());
    }
}
