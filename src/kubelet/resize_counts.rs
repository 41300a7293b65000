//! How often pods that run are to have other resources, and what becomes of that
//! (`pkg/kubelet/metrics/metrics.go`, `recordContainerResizeOperations`).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::time::Duration;

use apimachinery::quantity::Quantity;
use apis::views::pod::{Container, Pod};
use component_base::metrics::{Family, Render};

/// Of what changes a pod in place, in milliseconds; observed as if they were seconds.
const BOUNDS: [f64; 14] = [
    10.0, 50.0, 100.0, 500.0, 1000.0, 2000.0, 5000.0, 10_000.0, 20_000.0, 30_000.0, 60_000.0, 120_000.0,
    300_000.0, 600_000.0,
];
const RESOURCES: [&str; 2] = ["cpu", "memory"];
/// No other reason makes a pod wait for ever here.
const TOO_SMALL: &str = "insufficient_node_allocatable";

/// What one kubelet counts of that.
pub(crate) struct ResizeCounts {
    requested: Family<3>,
    infeasible: Family<1>,
    durations: Family<1>,
}

impl Default for ResizeCounts {
    fn default() -> ResizeCounts {
        ResizeCounts {
            requested: Family::counter(
                "kubelet_container_requested_resizes_total",
                "[ALPHA] Number of requested resizes, counted at the container level. Different resources on the \
                 same container are counted separately. The 'requirement' label refers to 'memory' or 'limits'; the \
                 'operation' label can be one of 'add', 'remove', 'increase' or 'decrease'.",
                ["operation", "requirement", "resource"],
            ),
            infeasible: Family::counter(
                "kubelet_pod_infeasible_resizes_total",
                "[ALPHA] Number of infeasible resizes for pods.",
                ["reason_detail"],
            ),
            durations: Family::histogram(
                "kubelet_pod_resize_duration_milliseconds",
                "[ALPHA] Duration in milliseconds to actuate a pod resize",
                ["success"],
                &BOUNDS,
            ),
        }
    }
}

impl ResizeCounts {
    /// A pod that runs is changed: what its containers are to have of which they had something else.
    pub(crate) fn requested(&self, old: &Pod, new: &Pod) {
        for container in new.spec.all_containers() {
            let before = old.spec.all_containers().find(|before| before.name == container.name);
            before.iter().for_each(|before| self.compare(before, container));
        }
    }

    fn compare(&self, old: &Container, new: &Container) {
        let (old, new) = (&old.resources, &new.resources);
        let requirements = [("requests", &old.requests, &new.requests), ("limits", &old.limits, &new.limits)];
        for (requirement, old, new) in requirements {
            for resource in RESOURCES {
                if let Some(operation) = operation(&amount(old, resource), &amount(new, resource)) {
                    self.requested.count([operation, requirement, resource]);
                }
            }
        }
    }

    /// What is told of a pod: where it is given what it wants, its containers have it at once.
    pub(crate) fn told(&self, reason: &str) {
        match reason {
            "ResizeInfeasible" => self.infeasible.count([TOO_SMALL]),
            "ResizeCompleted" => self.durations.observe(["true"], Duration::ZERO),
            "ResizeError" => self.durations.observe(["false"], Duration::ZERO),
            _ => {}
        }
    }
}

impl Render for ResizeCounts {
    fn render(&self, out: &mut String) {
        self.requested.render(out);
        self.infeasible.render(out);
        self.durations.render(out);
    }
}

/// What is not said is nothing.
fn amount(list: &BTreeMap<String, String>, resource: &str) -> Quantity {
    list.get(resource).and_then(|amount| Quantity::parse(amount).ok()).unwrap_or_default()
}

fn operation(old: &Quantity, new: &Quantity) -> Option<&'static str> {
    match new.cmp(old) {
        Ordering::Equal => None,
        Ordering::Greater => Some(if old.is_zero() { "add" } else { "increase" }),
        Ordering::Less => Some(if new.is_zero() { "remove" } else { "decrease" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_containers_are_to_have_is_counted_by_what_changes() {
        let pod = |resources| -> Pod {
            let containers = json!([{"name": "a", "image": "b", "resources": resources}]);
            serde_json::from_value(json!({"spec": {"containers": containers}})).unwrap()
        };
        let old = pod(json!({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}));
        let new = pod(json!({"requests": {"cpu": "500m", "memory": "1024Mi"}, "limits": {"memory": "2Gi"}}));
        let counts = ResizeCounts::default();
        counts.requested(&old, &new);
        ["ResizeInfeasible", "ResizeCompleted", "Started"].iter().for_each(|reason| counts.told(reason));
        let mut told = String::new();
        counts.render(&mut told);
        let total = "kubelet_container_requested_resizes_total";
        for line in [
            format!("{total}{{operation=\"decrease\",requirement=\"requests\",resource=\"cpu\"}} 1"),
            format!("{total}{{operation=\"remove\",requirement=\"limits\",resource=\"cpu\"}} 1"),
            format!("{total}{{operation=\"add\",requirement=\"limits\",resource=\"memory\"}} 1"),
            format!("kubelet_pod_infeasible_resizes_total{{reason_detail=\"{TOO_SMALL}\"}} 1"),
            "kubelet_pod_resize_duration_milliseconds_count{success=\"true\"} 1".to_owned(),
        ] {
            assert!(told.lines().any(|own| own == line), "{line}\n{told}");
        }
        assert_eq!(told.lines().filter(|line| line.starts_with(total)).count(), 3, "{told}");
    }
}
