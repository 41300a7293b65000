//! What a simulated runtime is given beside its node.

use super::own_listeners::OwnListeners;
use super::ports::SandboxPorts;
use super::simulated::SimulatedRuntime;
use network::Network;

impl SimulatedRuntime {
    /// With listeners that the user gives.
    pub fn with_listeners(mut self, own: OwnListeners) -> SimulatedRuntime {
        self.ports = SandboxPorts::new(own);
        self.usage_sources.consumed = self.ports.consumed().clone();
        self
    }

    /// With servers that ask others on a network.
    pub fn on_network(mut self, network: Network) -> SimulatedRuntime {
        self.ports.join(network);
        self
    }
}
