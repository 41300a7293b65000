//! The options of kube-controller-manager (`app/options.KubeControllerManagerOptions`): a flag is a field
//! here, with its doc comment as help, and its use.

use std::ops::RangeInclusive;
use std::sync::LazyLock;
use std::time::Duration;

use clap::Args;

use super::cidr_set::{CidrSet, ClusterCidrs, NODE_MASKS, NODE_MASKS_IPV6};
use super::load_balancer_ranges::LoadBalancerRanges;
use super::selection::{self, Selection, UnknownController};
use apimachinery::duration::parse_period;
use apis::networking::ip_range::{BadRange, IpRange};
use component_base::flags::{choices, defaults};

/// More workers of one controller than this are refused: each is a task, and waits for the same server.
const MAX_WORKERS: usize = 1000;

/// What kube-controller-manager is told.
#[derive(Args, Clone, Debug)]
#[non_exhaustive]
#[command(next_help_heading = "Controllers")]
pub struct ControllerManagerOptions {
    /// Which controllers run: '*' is all, 'foo' the one of that name, '-foo' not that one, and '-*' none: as
    /// '*,-job-controller'. The names are those of kube-controller-manager.
    #[arg(long, help_heading = "What runs", value_delimiter = ',', default_value = "*", value_name = "NAME",
        value_parser = controller, allow_hyphen_values = true)]
    pub controllers: Vec<String>,
    /// Nodes that come without a range of their pods' addresses are given one out of --cluster-cidr.
    #[arg(long, requires = "cluster_cidr", default_value_t = false, action = clap::ArgAction::Set,
        num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub allocate_node_cidrs: bool,
    /// The range that nodes have their pods' addresses of, each a part of it, or one of each IP family with a
    /// comma between them; when not given, nodes have ranges of the families that Services have addresses of,
    /// out of 10.244.0.0 and fd00:10:244:: and on.
    #[arg(long, value_name = "CIDR", value_parser = ClusterCidrs::parse)]
    pub cluster_cidr: Option<ClusterCidrs>,
    /// How large the part of a node is, 24 when not given, 64 of IPv6; for a --cluster-cidr of one family.
    #[arg(long, value_name = "BITS", value_parser = node_mask_of_either, requires = "cluster_cidr")]
    pub node_cidr_mask_size: Option<u32>,
    /// How large the IPv4 part of a node is, 24 when not given.
    #[arg(long, value_name = "BITS", value_parser = node_mask, requires = "cluster_cidr")]
    pub node_cidr_mask_size_ipv4: Option<u32>,
    /// How large the IPv6 part of a node is, 64 when not given.
    #[arg(long, value_name = "BITS", value_parser = node_mask_ipv6, requires = "cluster_cidr")]
    pub node_cidr_mask_size_ipv6: Option<u32>,
    /// The range that Services of type LoadBalancer have their addresses of, as MetalLB's, or one of each IP
    /// family with a comma between them; when not given, they have none.
    #[arg(long, value_name = "CIDR", value_parser = LoadBalancerRanges::parse)]
    pub load_balancer_range: Option<LoadBalancerRanges>,
    /// How often it is looked whether nodes still say that they are there.
    #[arg(long, default_value = "5s", value_parser = parse_period)]
    pub node_monitor_period: Duration,
    /// How long a node may be silent before it counts as not ready.
    #[arg(long, default_value = "50s", value_parser = parse_period)]
    pub node_monitor_grace_period: Duration,
    /// So many nodes of a zone are told to lose their pods in a second, when the zone is well.
    #[arg(long, default_value_t = 0.1, value_name = "RATE", value_parser = rate)]
    pub node_eviction_rate: f32,
    /// So many when much of the zone is silent; none, if the zone is small.
    #[arg(long, default_value_t = 0.01, value_name = "RATE", value_parser = rate)]
    pub secondary_node_eviction_rate: f32,
    /// Which share of a zone must be silent for that.
    #[arg(long, default_value_t = 0.55, value_name = "SHARE", value_parser = rate)]
    pub unhealthy_zone_threshold: f32,
    /// A zone with more nodes than this is large.
    #[arg(long, default_value_t = 50, value_name = "N")]
    pub large_cluster_size_threshold: u32,
    /// How long a node that has never said anything may be silent.
    #[arg(long, default_value = "1m", value_parser = parse_period)]
    pub node_startup_grace_period: Duration,
    /// How often what is used of quotas is counted again.
    #[arg(long, default_value = "5m", value_parser = parse_period)]
    pub resource_quota_sync_period: Duration,
    /// How often autoscalers look at what they scale.
    #[arg(long, default_value = "15s", value_parser = parse_period)]
    pub horizontal_pod_autoscaler_sync_period: Duration,
    /// How long the highest number that was recommended holds before less replicas are left, where the
    /// autoscaler does not say it.
    #[arg(long, default_value = "5m", value_parser = parse_period)]
    pub horizontal_pod_autoscaler_downscale_stabilization: Duration,
    /// Within such a share of the target nothing is scaled, where the autoscaler does not say it.
    #[arg(long, default_value_t = 0.1, value_name = "SHARE", value_parser = tolerance)]
    pub horizontal_pod_autoscaler_tolerance: f64,
    /// For so long after a pod's start what it uses of the CPU counts only when it is ready.
    #[arg(long, default_value = "5m", value_parser = parse_period)]
    pub horizontal_pod_autoscaler_cpu_initialization_period: Duration,
    /// So long after its start a pod that is not ready is thought to become so for the first time.
    #[arg(long, default_value = "30s", value_parser = parse_period)]
    pub horizontal_pod_autoscaler_initial_readiness_delay: Duration,
    /// How often claims that wait for a volume are looked at again.
    #[arg(long, default_value = "15s", value_parser = parse_period)]
    pub pvclaimbinder_sync_period: Duration,
    /// How often a namespace that goes away is looked at again at least.
    #[arg(long, default_value = "5m", value_parser = parse_period)]
    pub namespace_sync_period: Duration,
    /// So many pods that have ended are kept before the oldest are deleted; 0 keeps them all.
    #[arg(long, default_value_t = 12_500, value_name = "N")]
    pub terminated_pod_gc_threshold: usize,
    /// How long certificates are valid that requests do not ask less for.
    #[arg(long, default_value = "8760h", value_parser = parse_period)]
    pub cluster_signing_duration: Duration,
    /// How long a token in a Secret that was made by itself may be out of use before it becomes invalid, and
    /// how long it is invalid before it is deleted.
    #[arg(long, default_value = "8760h", value_parser = parse_period)]
    pub legacy_service_account_token_clean_up_period: Duration,
    /// How many Deployments are worked on at once.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = workers)]
    pub concurrent_deployment_syncs: usize,
    /// How many ReplicaSets are worked on at once.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = workers)]
    pub concurrent_replicaset_syncs: usize,
    /// How many ReplicationControllers are worked on at once.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = workers)]
    pub concurrent_rc_syncs: usize,
    /// How many StatefulSets are worked on at once.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = workers)]
    pub concurrent_statefulset_syncs: usize,
    /// How many DaemonSets are worked on at once.
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = workers)]
    pub concurrent_daemonset_syncs: usize,
    /// How many Jobs are worked on at once.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = workers)]
    pub concurrent_job_syncs: usize,
    /// How many CronJobs are worked on at once.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = workers)]
    pub concurrent_cron_job_syncs: usize,
    /// Of how many Services Endpoints are written at once.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = workers)]
    pub concurrent_endpoint_syncs: usize,
    /// Of how many Services EndpointSlices are written at once.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = workers)]
    pub concurrent_service_endpoint_syncs: usize,
    /// How many namespaces are worked on at once.
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = workers)]
    pub concurrent_namespace_syncs: usize,
    /// How many ResourceQuotas are worked on at once.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = workers)]
    pub concurrent_resource_quota_syncs: usize,
    /// How many tokens of ServiceAccounts are worked on at once.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = workers)]
    pub concurrent_serviceaccount_token_syncs: usize,
    /// How many objects the garbage collector works on at once.
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = workers)]
    pub concurrent_gc_syncs: usize,
    /// How many finished Jobs are worked on at once.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = workers)]
    pub concurrent_ttl_after_finished_syncs: usize,
    /// How many HorizontalPodAutoscalers are worked on at once.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = workers)]
    pub concurrent_horizontal_pod_autoscaler_syncs: usize,
    /// How many pods with ephemeral volumes are worked on at once.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = workers)]
    pub concurrent_ephemeralvolume_syncs: usize,
    /// How many ValidatingAdmissionPolicies are worked on at once.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = workers)]
    pub concurrent_validating_admission_policy_status_syncs: usize,
}

impl Default for ControllerManagerOptions {
    /// Worked out once: it takes longer than all else of making a config.
    fn default() -> ControllerManagerOptions {
        static DEFAULTS: LazyLock<ControllerManagerOptions> = LazyLock::new(defaults);
        DEFAULTS.clone()
    }
}

impl ControllerManagerOptions {
    /// Which of the controllers run.
    ///
    /// # Errors
    /// As [`Selection::parse`]; the command line has looked at each entry already.
    pub fn selection(&self) -> Result<Selection, UnknownController> {
        Selection::parse(self.controllers.iter().map(String::as_str))
    }

    /// The pod CIDRs of the `number`th node, counted from 1; none when nobody says where they come from.
    ///
    /// # Errors
    /// Parts that are larger than the whole, or too few of them; sizes of families that there are not.
    pub fn pod_cidrs(&self, number: u32) -> Result<Vec<String>, BadRange> {
        let part = |parts: CidrSet| {
            let why = || {
                format!(
                    "CIDR allocation failed; there are no remaining CIDRs left to allocate in the accepted range: \
                     --cluster-cidr {parts}; choose a larger range, smaller parts, or fewer --nodes"
                )
            };
            parts.part(number - 1).ok_or_else(|| BadRange::from(why()))
        };
        self.cidr_sets()?.into_iter().map(part).collect()
    }

    /// What nodes are to be given their ranges from, by IP family; none when they are not to be given any.
    pub(crate) fn allocated_cidr_sets(&self) -> Vec<CidrSet> {
        // What is wrong with the flags was said when the cluster was to start.
        self.cidr_sets().ok().filter(|_| self.allocate_node_cidrs).unwrap_or_default()
    }

    /// What the ranges of nodes are taken from, the pods' own family first; nothing without `--cluster-cidr`.
    ///
    /// # Errors
    /// As [`ControllerManagerOptions::pod_cidrs`].
    fn cidr_sets(&self) -> Result<Vec<CidrSet>, BadRange> {
        let Some(cluster) = self.cluster_cidr else { return Ok(vec![]) };
        self.check_masks(&cluster)?;
        let of_family = |range: IpRange| match (range.network.is_ipv4(), self.node_cidr_mask_size) {
            (_, Some(mask)) => mask,
            (true, None) => self.node_cidr_mask_size_ipv4.unwrap_or(24),
            (false, None) => self.node_cidr_mask_size_ipv6.unwrap_or(64),
        };
        cluster.all().map(|range| CidrSet::new(range, of_family(range))).collect()
    }

    /// `setNodeCIDRMaskSizes`
    fn check_masks(&self, cluster: &ClusterCidrs) -> Result<(), BadRange> {
        let (any, v4, v6) =
            (self.node_cidr_mask_size, self.node_cidr_mask_size_ipv4, self.node_cidr_mask_size_ipv6);
        let why = if any.is_some() && cluster.is_dual() {
            "usage of --node-cidr-mask-size is not allowed with dual-stack clusters"
        } else if any.is_some() && (v4.is_some() || v6.is_some()) {
            "usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if \
             --node-cidr-mask-size is set. For dual-stack clusters please unset it and use IPFamily specific flags"
        } else if v4.is_some() && cluster.is_ipv6_alone() {
            "usage of --node-cidr-mask-size-ipv4 is not allowed for a single-stack IPv6 cluster"
        } else if v6.is_some() && !cluster.is_ipv6_alone() && !cluster.is_dual() {
            "usage of --node-cidr-mask-size-ipv6 is not allowed for a single-stack IPv4 cluster"
        } else if any.is_some_and(|mask| !cluster.is_ipv6_alone() && !NODE_MASKS.contains(&mask)) {
            return Err(format!("--node-cidr-mask-size of IPv4 {}", wrong_mask(&NODE_MASKS)).into());
        } else {
            return Ok(());
        };
        Err(why.into())
    }
}

/// `--node-eviction-rate` and its like
fn rate(text: &str) -> Result<f32, String> {
    let rate = text.parse().ok().filter(|rate: &f32| rate.is_finite() && *rate >= 0.0);
    rate.ok_or_else(|| "must be a number that is not below 0, as 0.1".into())
}

/// `--node-cidr-mask-size`, of which family is known later: beyond all of IPv4 it is of IPv6.
fn node_mask_of_either(text: &str) -> Result<u32, String> {
    let mask = node_mask_ipv6(text).ok().filter(|mask| *mask > 32 || NODE_MASKS.contains(mask));
    mask.ok_or_else(|| format!("{}, or for IPv6 to {}", wrong_mask(&NODE_MASKS), NODE_MASKS_IPV6.end()))
}

/// `--node-cidr-mask-size-ipv4`
fn node_mask(text: &str) -> Result<u32, String> {
    mask_within(text, &NODE_MASKS)
}

/// `--node-cidr-mask-size-ipv6`
fn node_mask_ipv6(text: &str) -> Result<u32, String> {
    mask_within(text, &NODE_MASKS_IPV6)
}

fn mask_within(text: &str, masks: &RangeInclusive<u32>) -> Result<u32, String> {
    text.parse().ok().filter(|mask| masks.contains(mask)).ok_or_else(|| wrong_mask(masks))
}

fn wrong_mask(masks: &RangeInclusive<u32>) -> String {
    format!("must be a whole number from {} to {}", masks.start(), masks.end())
}

/// An entry of `--controllers`.
fn controller(text: &str) -> Result<String, String> {
    match selection::check(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(why) => {
            let wanted = text.trim_start_matches('-');
            Err(format!("{why}; {}", choices("the controllers are", wanted, &selection::names())))
        }
    }
}

/// `--horizontal-pod-autoscaler-tolerance`
fn tolerance(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "must be a number from 0 to 1, as 0.1".to_owned())
}

/// `--concurrent-*-syncs`
fn workers(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MAX_WORKERS).contains(number));
    number.ok_or_else(|| format!("must be a whole number from 1 to {MAX_WORKERS}"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        flags: ControllerManagerOptions,
    }

    #[test]
    fn the_part_of_a_node_needs_the_whole() {
        let parse = |arguments: &[&str]| Only::try_parse_from(["up"].iter().chain(arguments));
        let why = parse(&["--node-cidr-mask-size=26"]).unwrap_err().to_string();
        assert!(why.contains("--cluster-cidr"), "{why}");
        let flags = parse(&["--node-cidr-mask-size=26", "--cluster-cidr=10.7.0.0/16"]).unwrap().flags;
        assert_eq!(flags.pod_cidrs(2), Ok(vec!["10.7.0.64/26".to_owned()]));
        assert!(parse(&[]).is_ok() && parse(&["--cluster-cidr=10.7.0.0/16"]).is_ok());
    }

    #[test]
    fn nodes_have_a_part_of_each_family() {
        let cidrs = |arguments: &[&str]| {
            let flags = Only::try_parse_from(["up"].iter().chain(arguments)).unwrap().flags;
            flags.pod_cidrs(2).map(|cidrs| cidrs.join(","))
        };
        let (dual, v4, v6) = (
            "--cluster-cidr=10.7.0.0/16,fd00:7::/56",
            "--cluster-cidr=10.7.0.0/16",
            "--cluster-cidr=fd00:7::/56",
        );
        assert_eq!(cidrs(&[]).as_deref(), Ok(""));
        assert_eq!(cidrs(&[dual]).as_deref(), Ok("10.7.1.0/24,fd00:7:0:1::/64"));
        let sizes = ["--node-cidr-mask-size-ipv4=20", "--node-cidr-mask-size-ipv6=72"];
        assert_eq!(cidrs(&[dual, sizes[0], sizes[1]]).as_deref(), Ok("10.7.16.0/20,fd00:7:0:0:100::/72"));
        assert_eq!(cidrs(&[v6]).as_deref(), Ok("fd00:7:0:1::/64"));
        assert_eq!(cidrs(&[v6, "--node-cidr-mask-size=60"]).as_deref(), Ok("fd00:7:0:10::/60"));
        for (arguments, why) in [
            (
                vec![dual, "--node-cidr-mask-size=24"],
                "usage of --node-cidr-mask-size is not allowed with dual-stack",
            ),
            (
                vec![v4, "--node-cidr-mask-size=24", sizes[0]],
                "is not allowed if --node-cidr-mask-size is set",
            ),
            (vec![v6, sizes[0]], "is not allowed for a single-stack IPv6 cluster"),
            (vec![v4, sizes[1]], "is not allowed for a single-stack IPv4 cluster"),
            (vec![v4, "--node-cidr-mask-size=64"], "must be a whole number from 8 to 30"),
        ] {
            assert!(cidrs(&arguments).is_err_and(|said| said.to_string().contains(why)), "{arguments:?}");
        }
    }

    #[test]
    fn the_defaults_are_upstreams() {
        let options = ControllerManagerOptions::default();
        assert_eq!(options.selection(), Ok(Selection::default()));
        assert_eq!(options.node_monitor_grace_period, Duration::from_secs(50));
        assert_eq!(options.resource_quota_sync_period, Duration::from_secs(300));
        assert_eq!(options.cluster_signing_duration, Duration::from_secs(365 * 24 * 3600));
        assert_eq!(options.load_balancer_range, None);
        assert_eq!((options.concurrent_gc_syncs, options.concurrent_daemonset_syncs), (20, 2));
    }

    #[test]
    fn numbers_and_periods_have_bounds() {
        assert_eq!([workers("1"), workers("1000")], [Ok(1), Ok(1000)]);
        assert_eq!([rate("0"), rate("0.55")], [Ok(0.0), Ok(0.55)]);
        assert!(["-1", "NaN", "inf", "few"].iter().all(|text| rate(text).is_err()));
        for text in ["0", "1001", "-1", "many"] {
            assert_eq!(workers(text), Err("must be a whole number from 1 to 1000".into()), "{text}");
        }
        assert_eq!([tolerance("0"), tolerance("0.25")], [Ok(0.0), Ok(0.25)]);
        assert!(tolerance("1.1").is_err() && tolerance("-0.1").is_err() && tolerance("NaN").is_err());
        assert_eq!(parse_period("1m30s"), Ok(Duration::from_secs(90)));
        assert!(parse_period("0s").is_err_and(|why| why.starts_with("must be longer than 0s")));
    }
}
