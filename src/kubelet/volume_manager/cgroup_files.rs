//! What a container reads of its own limits below `/sys/fs/cgroup` (cgroup v2, as `kuberuntime` and
//! `libcontainer` set them).

use crate::container_runtime::cpu_quota::{PERIOD, cpu_quota};
use apimachinery::quantity::Quantity;
use apis::views::pod::Resources;
use machine::file_system::{File, Tree};

const FOLDER: &str = "/sys/fs/cgroup";
const MODE: u32 = 0o644;
/// `MinShares` and `MaxShares` of a CPU.
const SHARES: (i64, i64) = (2, 262_144);
const SHARES_PER_CPU: i64 = 1024;

/// The files of a container with these resources.
pub(super) fn files(resources: &Resources) -> Tree {
    let files = [
        ("cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma misc".to_owned()),
        ("cpu.max", cpu_max(resources)),
        ("cpu.weight", cpu_weight(resources).to_string()),
        ("memory.max", memory_max(resources)),
    ];
    files.map(|(name, text)| (format!("{FOLDER}/{name}"), File::new(text + "\n", MODE))).into()
}

fn amount(of: &std::collections::BTreeMap<String, String>, name: &str) -> Option<Quantity> {
    of.get(name).and_then(|text| Quantity::parse(text).ok()).filter(|amount| !amount.is_zero())
}

fn milli(of: &std::collections::BTreeMap<String, String>, name: &str) -> Option<i64> {
    amount(of, name).map(|amount| amount.milli_value())
}

fn memory_max(resources: &Resources) -> String {
    amount(&resources.limits, "memory").map_or("max".to_owned(), |limit| limit.value().to_string())
}

fn cpu_max(resources: &Resources) -> String {
    let quota = cpu_quota(resources).map_or("max".to_owned(), |quota| quota.to_string());
    format!("{quota} {PERIOD}")
}

/// `MilliCPUToShares`. A container that asks for nothing is weighed by its limit.
pub(crate) fn cpu_shares(resources: &Resources) -> i64 {
    let asked = milli(&resources.requests, "cpu").or(milli(&resources.limits, "cpu")).unwrap_or(0);
    (asked.saturating_mul(SHARES_PER_CPU) / 1000).clamp(SHARES.0, SHARES.1)
}

/// What `ConvertCPUSharesToCgroupV2Value` makes of the shares.
fn cpu_weight(resources: &Resources) -> i64 {
    let shares = cpu_shares(resources);
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
    use serde_json::json;

    use super::*;

    fn shown(resources: serde_json::Value) -> [String; 3] {
        let files = files(&serde_json::from_value(resources).unwrap());
        ["cpu.max", "cpu.weight", "memory.max"].map(|name| files[&format!("{FOLDER}/{name}")].text())
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
}
