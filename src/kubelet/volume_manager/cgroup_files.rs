//! What a container reads of what it may use: below `/sys/fs/cgroup` (cgroup v2, as `kuberuntime` and
//! `libcontainer` set them), and of its process in `/proc`; and what it reads of its whole pod where the
//! node's cgroups are mounted.

use super::facts::VolumeFacts;
use super::host_files::Files;
use crate::container_runtime::container_limit::container_limit;
use crate::container_runtime::cpu_quota::{PERIOD, cpu_quota, quota_of};
use crate::qos::oom_score_adjustment;
use apimachinery::quantity::Quantity;
use apis::core::pod::qos::QosClass;
use apis::resources::{Amounts, limits_of, requests_of};
use apis::views::pod::{Container, Pod};
use machine::file_system::{self, File, Tree};

const FOLDER: &str = "/sys/fs/cgroup";
const MODE: u32 = 0o644;
/// `MinShares` and `MaxShares` of a CPU.
const SHARES: (i64, i64) = (2, 262_144);
const SHARES_PER_CPU: i64 = 1024;
/// What a cgroup keeps to.
struct CgroupLimits {
    quota: Option<i64>,
    shares: i64,
    memory: Option<i64>,
}

impl CgroupLimits {
    fn of_container(pod: &Pod, container: &Container) -> CgroupLimits {
        CgroupLimits {
            quota: cpu_quota(pod, container),
            shares: cpu_shares(pod, container),
            memory: container_limit(pod, container, "memory").map(|limit| limit.value()),
        }
    }

    /// A pod is limited where all its containers are, or where it is as a whole (`ResourceConfigForPod`).
    fn of_pod(pod: &Pod) -> CgroupLimits {
        let limits = limits_of(pod);
        let all = || pod.spec.init_containers.iter().chain(&pod.spec.containers);
        let limit = |name: &str| {
            let limit = limits.get(name).filter(|limit| !limit.is_zero())?;
            all().all(|own| container_limit(pod, own, name).is_some()).then_some(limit)
        };
        CgroupLimits {
            quota: limit("cpu").map(quota_of),
            shares: shares(milli(&requests_of(pod), "cpu")),
            memory: limit("memory").map(Quantity::value),
        }
    }

    fn files(&self, folder: &str) -> [(String, File); 4] {
        let or_max = |amount: Option<i64>| amount.map_or("max".to_owned(), |amount| amount.to_string());
        let files = [
            ("cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma misc".to_owned()),
            ("cpu.max", format!("{} {PERIOD}", or_max(self.quota))),
            ("cpu.weight", cpu_weight(self.shares).to_string()),
            ("memory.max", or_max(self.memory)),
        ];
        files.map(|(name, text)| (format!("{folder}/{name}"), File::new(text + "\n", MODE)))
    }
}

/// How much memory a pod may have as a whole, in bytes.
pub(crate) fn pod_memory_limit(pod: &Pod) -> Option<i64> {
    CgroupLimits::of_pod(pod).memory
}

/// The files of a container.
pub(super) fn files(facts: &VolumeFacts<'_>, own: &Container) -> Tree {
    let mut files = Tree::from(CgroupLimits::of_container(facts.pod, own).files(FOLDER));
    let score = oom_score_adjustment(facts.pod, own, facts.memory_capacity);
    let score = File::new(format!("{score}\n"), MODE);
    let of_process = |process: &str| (format!("/proc/{process}/oom_score_adj"), score.clone());
    files.extend(["1", "self"].map(of_process));
    files
}

/// What a pod sees of itself in a volume that is that path of its node, by the paths in it: most are not
/// where cgroups are. Those of others on its node nobody shows it.
pub(super) fn in_host_path(facts: &VolumeFacts<'_>, host_path: &str) -> Files {
    if !file_system::is_within(host_path, FOLDER) && !file_system::is_within(FOLDER, host_path) {
        return Files::new();
    }
    let folder = format!("{FOLDER}/{}{}.slice", slice(facts.pod), facts.metadata.uid.replace('-', "_"));
    let files = CgroupLimits::of_pod(facts.pod).files(&folder).into_iter();
    let prefix = host_path.trim_end_matches('/');
    let inside = files.filter(|(path, _)| file_system::is_within(prefix, path));
    inside.map(|(path, file)| (path[prefix.len()..].trim_start_matches('/').to_owned(), file)).collect()
}

/// Where a pod is below [`FOLDER`], by its guarantees (systemd's driver).
fn slice(pod: &Pod) -> &'static str {
    match QosClass::of_pod(pod) {
        QosClass::BestEffort => "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod",
        QosClass::Burstable => "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod",
        QosClass::Guaranteed => "kubepods.slice/kubepods-pod",
    }
}

fn milli(of: &Amounts, name: &str) -> i64 {
    of.get(name).map_or(0, Quantity::milli_value)
}

/// `MilliCPUToShares`
fn shares(milli: i64) -> i64 {
    (milli.saturating_mul(SHARES_PER_CPU) / 1000).clamp(SHARES.0, SHARES.1)
}

/// A container that asks for nothing is weighed by its limit.
pub(crate) fn cpu_shares(pod: &Pod, container: &Container) -> i64 {
    let asked = container.resources.requests.get("cpu").and_then(|text| Quantity::parse(text).ok());
    let asked = asked.filter(|asked| !asked.is_zero()).or_else(|| container_limit(pod, container, "cpu"));
    shares(asked.map_or(0, |asked| asked.milli_value()))
}

/// What `ConvertCPUSharesToCgroupV2Value` makes of shares.
fn cpu_weight(shares: i64) -> i64 {
    if shares <= SHARES.0 {
        return 1;
    }
    if shares >= SHARES.1 {
        return 10_000;
    }
    // A curve through the least, the most and what a whole CPU has by default: 100.
    let doublings = (shares as f64).log2();
    let exponent = (doublings * doublings + 125.0 * doublings) / 612.0 - 7.0 / 34.0;
    10f64.powf(exponent).ceil() as i64
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn texts(limits: &CgroupLimits) -> [String; 3] {
        let files = Tree::from(limits.files(FOLDER));
        ["cpu.max", "cpu.weight", "memory.max"].map(|name| files[&format!("{FOLDER}/{name}")].text())
    }

    fn shown(resources: Value) -> [String; 3] {
        let own: Container = serde_json::from_value(json!({ "resources": resources })).unwrap();
        texts(&CgroupLimits::of_container(&Pod::default(), &own))
    }

    fn of_pod(spec: Value) -> [String; 3] {
        texts(&CgroupLimits::of_pod(&serde_json::from_value(json!({ "spec": spec })).unwrap()))
    }

    #[test]
    fn limits_are_read_as_a_runtime_sets_them() {
        assert_eq!(shown(json!({})), ["max 100000\n", "1\n", "max\n"]);
        let limited = json!({"requests": {"cpu": "1"}, "limits": {"cpu": "20m", "memory": "35Mi"}});
        assert_eq!(shown(limited), ["2000 100000\n", "100\n", "36700160\n"]);
        assert_eq!(shown(json!({"limits": {"cpu": "1m"}})), ["1000 100000\n", "1\n", "max\n"]);
        let huge = json!({"requests": {"cpu": "300"}, "limits": {"memory": "0"}});
        assert_eq!(shown(huge), ["max 100000\n", "10000\n", "max\n"]);
    }

    #[test]
    fn a_pod_is_limited_where_all_its_containers_are() {
        let limited =
            json!({"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Mi"}}});
        let memory = json!({"resources": {"limits": {"memory": "1Mi"}}});
        let both = of_pod(json!({"containers": [limited, memory]}));
        assert_eq!(both, ["max 100000\n", "100\n", "2097152\n"]);
        let whole = json!({"requests": {"cpu": "1"}, "limits": {"cpu": "3"}});
        let both = of_pod(json!({"containers": [limited, {}], "resources": whole}));
        assert_eq!(both, ["300000 100000\n", "100\n", "max\n"]);
    }
}
