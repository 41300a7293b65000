//! How many replicas a metric asks for (`replica_calculator.go`). Pure: pods and metrics come in, a number
//! goes out. All values are in thousandths.

use std::collections::BTreeMap;

use super::group_pods::{Periods, TargetPod, group_pods, requests};
use super::metrics_client::PodMetrics;
use super::metrics_error::MetricsError;
use apimachinery::time::Time;

const NO_PODS: &str = "no pods returned by selector while calculating replica count";
const NO_METRICS: &str = "did not receive metrics for targeted pods (pods might be unready)";

/// Within these shares of the target nothing changes (`Tolerances`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tolerances {
    pub(super) down: f64,
    pub(super) up: f64,
}

/// What a metric asks for, and what was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Proposal {
    pub(super) replicas: i64,
    /// Of one pod on the average, or of the object.
    pub(super) usage: i64,
    /// In percent of what is requested, where that is the target.
    pub(super) utilization: Option<i64>,
}

/// The pods that are scaled, and how they are judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplicaCalculator<'a> {
    pub(super) pods: &'a [TargetPod],
    pub(super) tolerances: Tolerances,
    pub(super) periods: Periods,
    pub(super) now: Time,
}

impl Tolerances {
    fn cover(&self, ratio: f64) -> bool {
        (1.0 - self.down) <= ratio && ratio <= (1.0 + self.up)
    }
}

/// How what is measured relates to what is wanted.
struct Ratio {
    ratio: f64,
    usage: i64,
    utilization: Option<i64>,
}

impl ReplicaCalculator<'_> {
    /// `GetResourceReplicas`: the target is a share of what pods request.
    pub(super) fn by_utilization(
        &self,
        current: i64,
        target: i64,
        (resource, container): (&str, &str),
        mut metrics: PodMetrics,
    ) -> Result<Proposal, MetricsError> {
        let counted = self.count(&mut metrics, resource)?;
        let requests = requests(self.pods, container, resource)?;
        let ratio = |metrics: &PodMetrics| utilization_ratio(metrics, &requests, target);
        // A missing pod is thought to use all that it requests, or the target if that is more.
        let most = |pod: &str| requests.get(pod).copied().unwrap_or(0) * target.max(100) / 100;
        self.judge(current, &counted, metrics, ratio, (most, false))
    }

    /// `calcPlainMetricReplicas`: the target is a number for each pod.
    pub(super) fn by_value(
        &self,
        current: i64,
        target: i64,
        resource: &str,
        mut metrics: PodMetrics,
    ) -> Result<Proposal, MetricsError> {
        let counted = self.count(&mut metrics, resource)?;
        let ratio = |metrics: &PodMetrics| Ok(value_ratio(metrics, target));
        self.judge(current, &counted, metrics, ratio, (|_: &str| target, true))
    }

    /// `GetObjectMetricReplicas`, `GetExternalMetricReplicas`: one number for all.
    pub(super) fn by_total(&self, current: i64, target: i64, usage: i64) -> Result<Proposal, MetricsError> {
        let ratio = usage as f64 / target as f64;
        let replicas = match current {
            // Where there is no pod, neither tolerance nor those that are ready say anything.
            0 => whole(ratio),
            _ if self.tolerances.cover(ratio) => current,
            _ => whole(ratio * self.ready().map_err(|why| format!("unable to calculate ready pods: {why}"))?),
        };
        Ok(Proposal { replicas, usage, utilization: None })
    }

    /// `GetObjectPerPodMetricReplicas`, `GetExternalPerPodMetricReplicas`: one number, shared by all.
    pub(super) fn by_share(&self, replicas: i64, target: i64, usage: i64) -> Proposal {
        let ratio = usage as f64 / (target as f64 * replicas as f64);
        let wanted =
            if self.tolerances.cover(ratio) { replicas } else { whole(usage as f64 / target as f64) };
        let share =
            if usage == i64::MAX { usage } else { (usage as f64 / replicas.max(1) as f64).ceil() as i64 };
        Proposal { replicas: wanted, usage: share, utilization: None }
    }

    fn ready(&self) -> Result<f64, &'static str> {
        if self.pods.is_empty() {
            return Err(NO_PODS);
        }
        Ok(self.pods.iter().filter(|pod| pod.is_ready()).count() as f64)
    }

    /// Takes the metrics of those out that do not count.
    fn count(&self, metrics: &mut PodMetrics, resource: &str) -> Result<CountedPods, MetricsError> {
        if self.pods.is_empty() {
            return Err(NO_PODS.into());
        }
        let groups = group_pods(self.pods, metrics, resource, &self.periods, self.now);
        metrics.retain(|pod, _| !groups.ignored.contains(pod) && !groups.unready.contains(pod));
        if metrics.is_empty() {
            return Err(NO_METRICS.into());
        }
        let (unready, missing) = (groups.unready.into_iter(), groups.missing.into_iter());
        Ok(CountedPods { ready: groups.ready, unready: unready.collect(), missing: missing.collect() })
    }

    /// The number for these metrics; those that are missing or not ready make a change smaller, never larger.
    /// Whether those that are missing count where the rest is just right differs upstream, too: of a plain
    /// value they do, of a utilization they do not.
    fn judge(
        &self,
        current: i64,
        counted: &CountedPods,
        mut metrics: PodMetrics,
        ratio_of: impl Fn(&PodMetrics) -> Result<Ratio, MetricsError>,
        (most, counts_at_one): (impl Fn(&str) -> i64, bool),
    ) -> Result<Proposal, MetricsError> {
        let Ratio { ratio, usage, utilization } = ratio_of(&metrics)?;
        let proposal = |replicas| Ok(Proposal { replicas, usage, utilization });
        let grows_with_unready = !counted.unready.is_empty() && ratio > 1.0;
        if !grows_with_unready && counted.missing.is_empty() {
            let is_near = self.tolerances.cover(ratio);
            return proposal(if is_near { current } else { whole(ratio * counted.ready as f64) });
        }
        for pod in counted.missing.iter().filter(|_| counts_at_one || ratio != 1.0) {
            metrics.entry(pod.clone()).or_default().value = if ratio < 1.0 { most(pod) } else { 0 };
        }
        for pod in counted.unready.iter().filter(|_| grows_with_unready) {
            metrics.entry(pod.clone()).or_default().value = 0;
        }
        let again = ratio_of(&metrics)?.ratio;
        let turns = (ratio < 1.0 && again > 1.0) || (ratio > 1.0 && again < 1.0);
        if self.tolerances.cover(again) || turns {
            return proposal(current);
        }
        let wanted = whole(again * metrics.len() as f64);
        let turns = (again < 1.0 && wanted > current) || (again > 1.0 && wanted < current);
        proposal(if turns { current } else { wanted })
    }
}

/// The pods that count, and those that are thought to use something else.
struct CountedPods {
    ready: i64,
    unready: Vec<String>,
    missing: Vec<String>,
}

/// `GetResourceUtilizationRatio`
fn utilization_ratio(
    metrics: &PodMetrics,
    requests: &BTreeMap<String, i64>,
    target: i64,
) -> Result<Ratio, MetricsError> {
    let known = metrics.iter().filter_map(|(pod, metric)| Some((metric.value, *requests.get(pod)?)));
    let mut used = 0_i64;
    let mut requested = 0_i64;
    let mut count = 0_i64;
    for (value, request) in known {
        used = used.saturating_add(value);
        requested = requested.saturating_add(request);
        count += 1;
    }
    if requested == 0 {
        return Err("no metrics returned matched known pods".into());
    }
    let percent = used.saturating_mul(100) / requested;
    Ok(Ratio { ratio: percent as f64 / target as f64, usage: used / count, utilization: Some(percent) })
}

/// `GetMetricUsageRatio`
fn value_ratio(metrics: &PodMetrics, target: i64) -> Ratio {
    let total = metrics.values().fold(0_i64, |total, metric| total.saturating_add(metric.value));
    let usage = total / i64::try_from(metrics.len()).unwrap_or(1).max(1);
    Ratio { ratio: usage as f64 / target as f64, usage, utilization: None }
}

/// A number of replicas, rounded up: of 32 bits.
fn whole(replicas: f64) -> i64 {
    replicas.ceil().clamp(f64::from(i32::MIN), f64::from(i32::MAX)) as i64
}
