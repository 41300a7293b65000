//! ImageLocality: better are nodes that have the pod's images.

use std::sync::Arc;

use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::{CycleState, MAX_NODE_SCORE, Plugin};
use crate::framework::pod_info::PodInfo;
use crate::framework::status::Status;
use apis::views::pod::Pod;

const NAME: &str = "ImageLocality";
const MEBIBYTE: i64 = 1024 * 1024;
/// Images that are smaller are fetched soon enough.
const MIN_THRESHOLD: i64 = 23 * MEBIBYTE;
/// What is larger counts for no more.
const MAX_CONTAINER_THRESHOLD: i64 = 1000 * MEBIBYTE;

/// The plugin.
pub struct ImageLocality;

/// The names under which nodes have the pod's images, and how many containers and nodes there are.
struct WantedImages {
    images: Vec<String>,
    total_nodes: usize,
}

impl Plugin for ImageLocality {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Nodes that know of no images all score the same.
    fn pre_score(&self, state: &mut CycleState, pod: &PodInfo, nodes: &[Arc<NodeInfo>]) -> Status {
        if nodes.iter().all(|node| node.images.is_empty()) {
            return Status::skip();
        }
        let Pod { spec, .. } = &*pod.pod();
        let containers = spec.init_containers.iter().chain(&spec.containers);
        let images = containers.map(|container| normalized(&container.image)).collect();
        let total_nodes = state.nodes.len().max(nodes.len());
        state.write(NAME, WantedImages { images, total_nodes });
        Status::success()
    }

    /// An image that few nodes have counts for less, so that not all pods go where it happens to be.
    fn score(&self, state: &CycleState, _pod: &PodInfo, node: &NodeInfo) -> i64 {
        let Some(wanted) = state.read::<WantedImages>(NAME) else { return 0 };
        let scaled = |image: &String| {
            let image = node.images.get(image.as_str())?;
            let spread = image.nodes() as f64 / wanted.total_nodes as f64;
            Some((image.size as f64 * spread) as i64)
        };
        priority(wanted.images.iter().filter_map(scaled).sum(), wanted.images.len() as i64)
    }
}

/// `calculatePriority`
fn priority(sum: i64, containers: i64) -> i64 {
    let most = MAX_CONTAINER_THRESHOLD * containers;
    if most <= MIN_THRESHOLD {
        return 0;
    }
    MAX_NODE_SCORE * (sum.clamp(MIN_THRESHOLD, most) - MIN_THRESHOLD) / (most - MIN_THRESHOLD)
}

/// `normalizedImageName`: nodes name the tag, too.
fn normalized(image: &str) -> String {
    let last = image.rfind('/').map_or(image, |at| &image[at..]);
    if last.contains(':') { image.to_owned() } else { format!("{image}:latest") }
}
