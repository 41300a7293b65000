//! Listeners that whoever runs the cluster gives it in Rust: they answer at ports of pods, whatever image
//! runs there.

use std::fmt;
use std::sync::Arc;

use apimachinery::labels::Selector;
use apimachinery::object::ObjectMeta;
use futures::future::BoxFuture;
use tokio::io::DuplexStream;

use super::declared::forward::PodForwarding;
use apis::views::pod::Container;
use machine::images;
use sync::Mutex;

/// Serves one connection until its end: the connection, and the address of who asks.
pub type OwnHandler = Arc<dyn Fn(DuplexStream, String) -> BoxFuture<'static, ()> + Send + Sync>;

/// Which pods.
#[derive(Clone, Debug)]
pub enum PodTarget {
    /// The one of this name, whenever there is one.
    Name(String),
    /// All that have such labels.
    Labels(Selector),
}

/// A listener at a port of pods.
#[derive(Clone)]
pub struct OwnListener {
    /// The pods' namespace.
    pub namespace: String,
    /// Which of them.
    pub pods: PodTarget,
    /// The port.
    pub port: u16,
    /// Who answers.
    pub handler: OwnHandler,
}

/// A listener for images whose program is in this process: a container of theirs serves what it does, at the
/// ports that it names, unless the user or the pod says otherwise.
#[derive(Clone)]
pub struct StandIn {
    /// Their names without registry and tag.
    pub images: &'static [&'static str],
    /// Who answers.
    pub handler: OwnHandler,
}

/// What listens at ports of pods because the user says so; all kubelets of a cluster share it. Bound: one
/// for each call of [`OwnListeners::add`].
#[derive(Clone, Default)]
pub struct OwnListeners {
    /// Where pods may lead.
    pub forwarding: PodForwarding,
    listeners: Arc<Mutex<Vec<OwnListener>>>,
    /// Bound: one for each list of images.
    stand_ins: Arc<Mutex<Vec<StandIn>>>,
}

impl OwnListeners {
    /// Of a cluster whose pods may lead there.
    pub fn new(forwarding: PodForwarding) -> OwnListeners {
        OwnListeners { forwarding, ..OwnListeners::default() }
    }

    /// Those that there are now; what is added to the one does not answer in the other. Who stands in for
    /// images is in the cluster itself, so that the other has its own.
    pub fn fork(&self) -> OwnListeners {
        let listeners = Arc::new(Mutex::new(self.listeners.lock().clone()));
        OwnListeners { listeners, stand_ins: Arc::default(), ..self.clone() }
    }

    /// From now on it answers for containers of its images, where nobody else does.
    pub fn stand_in(&self, stand_in: StandIn) {
        let mut stand_ins = self.stand_ins.lock();
        // Of a cluster that was started earlier with the same configuration.
        stand_ins.retain(|own| own.images != stand_in.images);
        stand_ins.push(stand_in);
    }

    /// Who answers for a container at a port.
    pub(super) fn standing_in(&self, container: &Container, port: u16) -> Option<OwnHandler> {
        let stand_ins = self.stand_ins.lock();
        if stand_ins.is_empty() || !container.ports.iter().any(|own| own.container_port == port) {
            return None;
        }
        let image = images::base_name(&container.image);
        stand_ins.iter().find(|own| own.images.contains(&image)).map(|own| own.handler.clone())
    }

    /// From now on it answers; before those that were added earlier.
    pub fn add(&self, listener: OwnListener) {
        self.listeners.lock().insert(0, listener);
    }

    /// Who answers at a port of a pod.
    pub(super) fn of(&self, pod: &ObjectMeta, port: u16) -> Option<OwnHandler> {
        let fits =
            |own: &&OwnListener| own.port == port && own.namespace == pod.namespace && own.pods.fits(pod);
        self.listeners.lock().iter().find(fits).map(|own| own.handler.clone())
    }
}

impl PodTarget {
    fn fits(&self, pod: &ObjectMeta) -> bool {
        match self {
            PodTarget::Name(name) => *name == pod.name,
            PodTarget::Labels(selector) => selector.matches(&pod.labels),
        }
    }
}

impl fmt::Debug for OwnListeners {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.listeners.lock().len();
        formatter
            .debug_struct("OwnListeners")
            .field("forwarding", &self.forwarding)
            .field("count", &count)
            .finish()
    }
}
