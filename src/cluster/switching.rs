//! Components are taken away from a running cluster, and come back.

use super::Cluster;
use super::components::{ComponentState, UnknownComponent};

impl Cluster {
    /// Stops a component: one of [`super::COMPONENTS`], a controller of kube-controller-manager as
    /// `kube-controller-manager/deployment`, `kubelet/NODE`, or `controller/NAME` of
    /// [`super::Config::controllers`]. One that is not running stays so. A controller that was stopped stays
    /// so when kube-controller-manager is stopped and started.
    ///
    /// # Errors
    /// A name that no component has.
    pub fn stop_component(&self, name: &str) -> Result<(), UnknownComponent> {
        self.inside.running.stop(name).map(drop)
    }

    /// Starts a component again. One that is running goes on.
    ///
    /// # Errors
    /// A name that no component has.
    pub fn start_component(&self, name: &str) -> Result<(), UnknownComponent> {
        self.inside.running.start(name)
    }

    /// All components, and whether each runs.
    pub fn component_states(&self) -> Vec<ComponentState> {
        self.inside.running.list()
    }
}
