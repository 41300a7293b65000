//! What is kept of a pod between its turns: thousands of pods at rest have no need of their fields, which are
//! read again from the object when one of them is looked at (see `Object::rest`).

use std::sync::{Arc, LazyLock};

use crate::pod_workers::PodWorker;
use apimachinery::object::Object;
use apis::views::pod::Pod;

/// What the worker of a pod at rest has in place of its fields.
static NO_FIELDS: LazyLock<Arc<Pod>> = LazyLock::new(Arc::default);

/// A pod as its worker saw it last.
pub(crate) struct SeenPod {
    pub(crate) object: Arc<Object>,
    /// Its fields, where the worker has others than the object.
    own: Option<Arc<Pod>>,
}

/// The worker of a pod, between two turns.
pub(crate) struct RestingWorker {
    worker: Box<PodWorker>,
    is_awake: bool,
}

impl SeenPod {
    pub(crate) fn of_object(object: Arc<Object>) -> SeenPod {
        SeenPod { object, own: None }
    }

    /// As an awake worker sees it.
    pub(crate) fn of_worker(worker: &PodWorker) -> SeenPod {
        let own = Some(&worker.pod).filter(|pod| !worker.object.is_kept_view(pod)).cloned();
        SeenPod { object: worker.object.clone(), own }
    }

    /// Its fields.
    pub(crate) fn fields(&self) -> Arc<Pod> {
        self.own.clone().unwrap_or_else(|| self.object.view())
    }
}

impl RestingWorker {
    /// Takes its fields from a worker that can have them again.
    pub(crate) fn rest(mut worker: Box<PodWorker>) -> RestingWorker {
        let is_awake = !worker.object.is_kept_view(&worker.pod);
        if !is_awake {
            worker.pod = NO_FIELDS.clone();
        }
        RestingWorker { worker, is_awake }
    }

    /// The worker with its fields.
    pub(crate) fn wake(mut self) -> Box<PodWorker> {
        if !self.is_awake {
            self.worker.pod = self.worker.object.view();
        }
        self.worker
    }

    /// Looks at the worker with its fields.
    pub(crate) fn look<T>(&mut self, look: impl FnOnce(&PodWorker) -> T) -> T {
        if self.is_awake {
            return look(&self.worker);
        }
        self.worker.pod = self.worker.object.view();
        let seen = look(&self.worker);
        self.worker.pod = NO_FIELDS.clone();
        seen
    }

    /// The worker without the fields of its pod: for what it knows beside them.
    pub(crate) fn without_fields(&self) -> &PodWorker {
        &self.worker
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::stories::{node, object};
    use apimachinery::time::Time;

    fn worker(object: &Arc<Object>) -> Box<PodWorker> {
        Box::new(PodWorker::new(object.clone(), &node(), Time::UNIX_EPOCH))
    }

    fn pod() -> Arc<Object> {
        object(&json!({"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [], "nodeName": "n"}}))
    }

    #[test]
    fn at_rest_it_holds_no_fields_and_has_them_again_when_it_is_looked_at() {
        let object = pod();
        let view = Arc::downgrade(&object.view::<Pod>());
        let worker = worker(&object);
        let seen = SeenPod::of_worker(&worker);
        let mut resting = RestingWorker::rest(worker);
        assert_eq!(view.strong_count(), 1, "the object has it, and nobody else");
        assert_eq!(resting.without_fields().pod.spec.node_name, "");
        assert_eq!(resting.look(|worker| worker.pod.spec.node_name.clone()), "n");
        assert_eq!(view.strong_count(), 1);
        assert_eq!(seen.fields().spec.node_name, "n");
        assert_eq!(resting.wake().pod.spec.node_name, "n");
    }

    #[test]
    fn fields_that_the_object_does_not_have_stay() {
        let object = pod();
        let mut worker = worker(&object);
        Arc::make_mut(&mut worker.pod).spec.node_name = "other".into();
        let seen = SeenPod::of_worker(&worker);
        let mut resting = RestingWorker::rest(worker);
        assert_eq!(resting.look(|worker| worker.pod.spec.node_name.clone()), "other");
        assert_eq!(seen.fields().spec.node_name, "other");
        assert_eq!(resting.wake().pod.spec.node_name, "other");
    }
}
