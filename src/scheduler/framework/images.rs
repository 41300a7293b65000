//! The images that nodes have, counted once for all of them (`framework.ImageStateSummary`).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use apis::views::node::Node;

/// An image on some nodes.
#[derive(Debug)]
pub struct ImageState {
    /// In bytes.
    pub size: i64,
    nodes: AtomicUsize,
}

/// The images of one node, by each of their names.
pub type NodeImages = Arc<HashMap<Arc<str>, Arc<ImageState>>>;

/// The images of all nodes. Bound: what the nodes' statuses name; an image that no node has is forgotten.
#[derive(Debug, Default)]
pub struct Images {
    known: BTreeMap<Arc<str>, Arc<ImageState>>,
}

impl ImageState {
    /// How many nodes have it.
    pub fn nodes(&self) -> usize {
        self.nodes.load(Ordering::Relaxed)
    }
}

impl Images {
    /// What a node has now, instead of `old`.
    pub fn of_node(&mut self, node: &Node, old: &NodeImages) -> NodeImages {
        self.forget(old);
        let mut images = HashMap::new();
        for image in &node.status.images {
            for name in &image.names {
                self.add(&mut images, name, image.size_bytes);
            }
        }
        Arc::new(images)
    }

    fn add(&mut self, images: &mut HashMap<Arc<str>, Arc<ImageState>>, name: &str, size: i64) {
        if images.contains_key(name) {
            return;
        }
        let known = self.known.get_key_value(name).map(|(name, state)| (name.clone(), state.clone()));
        let (name, state) =
            known.unwrap_or_else(|| (name.into(), Arc::new(ImageState { size, nodes: AtomicUsize::new(0) })));
        state.nodes.fetch_add(1, Ordering::Relaxed);
        self.known.insert(name.clone(), state.clone());
        images.insert(name, state);
    }

    /// A node does not have these any more.
    pub fn forget(&mut self, images: &NodeImages) {
        for (name, state) in images.iter() {
            if state.nodes.fetch_sub(1, Ordering::Relaxed) == 1 {
                self.known.remove(name);
            }
        }
    }
}
