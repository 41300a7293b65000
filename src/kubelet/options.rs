//! The options of the kubelets (`cmd/kubelet/app/options.KubeletFlags`, and fields of their configuration): a
//! flag is a field here, with its doc comment as help, and its use.

use std::time::Duration;

use apimachinery::duration::{parse_flag, parse_period};
use clap::Args;
use component_base::flags::defaults;

/// What the kubelets are told, all the same.
#[derive(Args, Clone, Debug)]
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
}

impl Default for KubeletOptions {
    fn default() -> KubeletOptions {
        defaults()
    }
}

impl KubeletOptions {
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
    }
}
