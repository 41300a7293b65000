//! `StageBook`: the Stages that there are just now, for those who play them, and for kubelets, which keep
//! their hands off what stages play.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::cel_functions::CelHost;
use super::choose;
use super::error::StageError;
use super::manifest::ResourceRef;
use super::names::FIELD_MANAGER;
use super::stage::ObjectStage;
use apimachinery::object::Object;
use sync::RwLock;

/// The Stages of one cluster. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct StageBook(Arc<BookShared>);

#[derive(Debug, Default)]
struct BookShared {
    /// By the name of the Stage. Bound: the Stages that there are.
    stages: RwLock<Arc<BTreeMap<String, Arc<ObjectStage>>>>,
    /// Whether some are for Pods, for Nodes: asked for each change of one.
    has_pods: AtomicBool,
    has_nodes: AtomicBool,
}

/// Whose kubelet asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Governed {
    /// A Pod.
    Pod,
    /// A Node.
    Node,
}

impl StageBook {
    /// Those for one kind of objects, in the order of their names.
    pub fn of(&self, resource: &ResourceRef) -> Vec<Arc<ObjectStage>> {
        let stages = self.0.stages.read().clone();
        stages.values().filter(|stage| stage.resource == *resource).cloned().collect()
    }

    /// The kinds that there are stages for.
    pub(crate) fn resources(&self) -> Vec<ResourceRef> {
        let stages = self.0.stages.read().clone();
        let mut all: Vec<ResourceRef> = stages.values().map(|stage| stage.resource.clone()).collect();
        all.sort();
        all.dedup();
        all
    }

    /// Has these from now on.
    pub(crate) fn set(&self, stages: BTreeMap<String, Arc<ObjectStage>>) {
        let has = |kind: &str| stages.values().any(|stage| stage.resource == of_core(kind));
        self.0.has_pods.store(has("Pod"), Ordering::Release);
        self.0.has_nodes.store(has("Node"), Ordering::Release);
        *self.0.stages.write() = Arc::new(stages);
    }

    /// Whether there are any for Pods.
    pub fn has_pods(&self) -> bool {
        self.0.has_pods.load(Ordering::Acquire)
    }

    /// Whether stages play an object, and its kubelet does not: one matches it, or one has written its status
    /// before. Costs nothing where there are no stages of its kind.
    pub fn governs(&self, what: Governed, object: &Object, host: impl FnOnce() -> CelHost) -> bool {
        let (has, kind) = match what {
            Governed::Pod => (&self.0.has_pods, "Pod"),
            Governed::Node => (&self.0.has_nodes, "Node"),
        };
        if !has.load(Ordering::Acquire) {
            return false;
        }
        let tree = object.to_value();
        let (stages, host) = (self.of(&of_core(kind)), host());
        let matches = |stage: &Arc<ObjectStage>| stage.matches(&tree, &host).unwrap_or(false);
        was_played(&tree) || stages.iter().any(matches)
    }

    /// The stages that may be played for a tree, with their chances.
    ///
    /// # Errors
    /// What went wrong in an expression, and of which stage.
    pub fn possible(
        &self,
        resource: &ResourceRef,
        tree: &Value,
        host: &CelHost,
    ) -> Result<Vec<(Arc<ObjectStage>, u64)>, StageError> {
        choose::chances(&self.of(resource), tree, host)
    }
}

fn of_core(kind: &str) -> ResourceRef {
    ResourceRef { api_group: "v1".into(), kind: kind.into() }
}

/// Whether a stage has written its status.
fn was_played(tree: &Value) -> bool {
    let managers = tree["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    managers.iter().any(|entry| entry["manager"] == FIELD_MANAGER && entry["subresource"] == "status")
}
