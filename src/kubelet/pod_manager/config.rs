//! Where a kubelet's pods come from (`pkg/kubelet/config/apiserver.go`).

use std::sync::Arc;

use super::pods::PodManager;
use crate::dependencies::Dependencies;
use apimachinery::object::Object;
use client_go::shared_informer::{Deleted, ResourceEventHandler};
use stages::Governed;

/// The kubelet's only source of pods (`pkg/kubelet/config`, apiserver): the newest of each is kept for the
/// loop.
pub(crate) struct PodConfig {
    pub(crate) pods: Arc<PodManager>,
    pub(crate) shared: Arc<Dependencies>,
}

impl PodConfig {
    /// A pod that stages play is none of this kubelet's, as one that is gone.
    fn put(&self, object: &Object, news: Option<Arc<Object>>) {
        let news = news.filter(|object| !self.shared.is_played(Governed::Pod, object));
        let mut state = self.pods.state();
        state.pending.insert(object.metadata.uid.as_str().into(), news);
        drop(state);
        self.pods.changed.notify_one();
    }
}

impl ResourceEventHandler for PodConfig {
    fn on_add(&self, new: &Arc<Object>, is_initial_list: bool) {
        if is_initial_list {
            self.shared.keep_address(new);
        }
        self.put(new, Some(new.clone()));
    }

    fn on_update(&self, old: &Arc<Object>, new: &Arc<Object>) {
        if old.metadata.uid != new.metadata.uid {
            self.put(old, None);
        }
        self.put(new, Some(new.clone()));
    }

    fn on_delete(&self, last: &Deleted) {
        self.shared.played.release(&last.last().metadata.uid);
        // Nobody waits for it on a node without static pods.
        self.shared.state.mirror_gone.notify_one();
        self.put(last.last(), None);
    }
}
