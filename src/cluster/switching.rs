//! Components are taken away from a running cluster, and come back.

use super::Cluster;
use super::components::UnknownComponent;

impl Cluster {
    /// Stops a component: one of [`super::COMPONENTS`], or `kubelet/NODE`. One that is not running stays so.
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
}
