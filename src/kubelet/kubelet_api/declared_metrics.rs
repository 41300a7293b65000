//! What kwok's Metrics say that is answered below `/metrics`.

use std::sync::Arc;

use super::pods::{PodHere, RunningHere};
use crate::container_runtime::services::RuntimeService;
use crate::container_runtime::stats::ResourceUse;
use crate::kubelet::Kubelet;
use apimachinery::time::Time;
use apis::core::node::NODES;
use stages::measures::{MeasuredNode, NodeUsage, UsageOf};

impl Kubelet {
    /// What a Metric answers at a path; nothing where there is none, which nobody looks for then.
    pub(super) async fn declared_metrics(&self, path: &str, now: Time) -> Option<String> {
        let (book, node) = (&self.shared.config.measures, self.node_name());
        if !book.answers(node, path) {
            return None;
        }
        let object = self.shared.context.client.get(&NODES, "", node).await;
        let pods = self.pods_here().await;
        let measured = MeasuredNode {
            node: object.map_or_else(|_| self.shared.config.seen(), |object| object.to_value()),
            pods: pods.iter().map(|pod| pod.object.to_value()).collect(),
        };
        let runtime = self.shared.node.runtime.clone();
        let started_containers = self.shared.counted.started_containers();
        let usage = UsageHere { runtime, pods, now, started_containers };
        book.answer((node, path), &measured, Arc::new(usage), now)
    }
}

/// What the pods of the node use at a moment.
struct UsageHere {
    runtime: Arc<dyn RuntimeService>,
    pods: Vec<PodHere>,
    now: Time,
    started_containers: u64,
}

impl UsageHere {
    /// The sum over all containers that are meant and run.
    fn sum(&self, of: &UsageOf<'_>, pick: fn(ResourceUse) -> f64) -> f64 {
        let is_meant = |pod: &&PodHere| of.pod.is_none_or(|pair| pair == (pod.namespace(), pod.name()));
        let mut sum = 0.0;
        for pod in self.pods.iter().filter(is_meant) {
            let is_meant = |running: &&RunningHere| of.container.is_none_or(|name| name == running.name);
            for running in pod.running.iter().filter(is_meant) {
                let Some(measured) = pod.measured(running) else { continue };
                sum += pick(self.runtime.resource_use(&measured, of.resource, self.now));
            }
        }
        sum
    }
}

impl NodeUsage for UsageHere {
    fn usage(&self, of: &UsageOf<'_>) -> f64 {
        self.sum(of, |used| used.now)
    }

    fn cumulative_usage(&self, of: &UsageOf<'_>) -> f64 {
        self.sum(of, |used| used.sum)
    }

    fn started_containers(&self) -> u64 {
        self.started_containers
    }
}
