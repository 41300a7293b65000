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
pub(crate) struct RestingWorker(Box<PodWorker>);

impl SeenPod {
    pub(crate) fn of_object(object: Arc<Object>) -> SeenPod {
        SeenPod { object, own: None }
    }

    fn of_worker(worker: &PodWorker) -> SeenPod {
        let own = Some(&worker.pod).filter(|pod| !worker.object.is_kept_view(pod)).cloned();
        SeenPod { object: worker.object.clone(), own }
    }

    /// Its fields.
    pub(crate) fn fields(&self) -> Arc<Pod> {
        self.own.clone().unwrap_or_else(|| self.object.view())
    }
}

impl RestingWorker {
    /// Takes its fields from a worker: what it saw of its pod has them.
    pub(crate) fn rest(mut worker: Box<PodWorker>) -> (SeenPod, RestingWorker) {
        let seen = SeenPod::of_worker(&worker);
        worker.pod = NO_FIELDS.clone();
        (seen, RestingWorker(worker))
    }

    /// The worker with its fields.
    pub(crate) fn wake(mut self, seen: &SeenPod) -> Box<PodWorker> {
        self.0.pod = seen.fields();
        self.0
    }

    /// Looks at the worker with its fields.
    pub(crate) fn look<T>(&mut self, seen: &SeenPod, look: impl FnOnce(&PodWorker) -> T) -> T {
        self.0.pod = seen.fields();
        let looked = look(&self.0);
        self.0.pod = NO_FIELDS.clone();
        looked
    }

    /// Works on the worker with its fields, where it is: what panics leaves it there.
    pub(crate) fn work<T>(&mut self, seen: &mut SeenPod, work: impl FnOnce(&mut PodWorker) -> T) -> T {
        self.0.pod = seen.fields();
        let worked = work(&mut self.0);
        *seen = SeenPod::of_worker(&self.0);
        self.0.pod = NO_FIELDS.clone();
        worked
    }

    /// The worker without the fields of its pod: for what it knows beside them.
    pub(crate) fn without_fields(&self) -> &PodWorker {
        &self.0
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
        let (seen, mut resting) = RestingWorker::rest(worker(&object));
        assert_eq!(view.strong_count(), 1, "the object has it, and nobody else");
        assert_eq!(resting.without_fields().pod.spec.node_name, "");
        assert_eq!(resting.look(&seen, |worker| worker.pod.spec.node_name.clone()), "n");
        assert_eq!(view.strong_count(), 1);
        assert_eq!(seen.fields().spec.node_name, "n");
        assert_eq!(resting.wake(&seen).pod.spec.node_name, "n");
    }

    #[test]
    fn fields_that_the_object_does_not_have_stay() {
        let (mut seen, mut resting) = RestingWorker::rest(worker(&pod()));
        let name = |pod: &Pod| pod.spec.node_name.clone();
        resting.work(&mut seen, |worker| Arc::make_mut(&mut worker.pod).spec.node_name = "other".into());
        assert_eq!(name(&resting.without_fields().pod), "");
        assert_eq!(name(&seen.fields()), "other");
        assert_eq!(resting.look(&seen, |worker| name(&worker.pod)), "other");
        assert_eq!(name(&resting.wake(&seen).pod), "other");
    }
}
