//! Which components wait for a Lease, by whose name they ask for it, and how many are held.

use std::time::Duration;

use tokio::sync::watch;

use super::config::Config;
use client_go::leader_election::{LeaderElectionConfig, LeaderElectionTimes};
use clock::Clock;
use entropy::Entropy;

/// How long a Lease may take to be given up at the end; then it runs out.
pub(crate) const RELEASE_WITHIN: Duration = Duration::from_millis(700);
/// Where the Leases are.
const NAMESPACE: &str = "kube-system";
/// The components of which one leads where clusters share an etcd.
pub(super) const CONTROLLER_MANAGER: &str = "kube-controller-manager";
pub(super) const SCHEDULER: &str = "kube-scheduler";

/// How many Leases this cluster holds just now.
#[derive(Default)]
pub(super) struct Elections {
    held: watch::Sender<usize>,
}

impl Elections {
    /// One more is ours.
    pub(super) fn won(&self) {
        self.held.send_modify(|held| *held += 1);
    }

    /// One is ours no more.
    pub(super) fn over(&self) {
        self.held.send_modify(|held| *held -= 1);
    }

    /// Waits until all have been given up, which they are when the cluster ends; not for ever.
    pub(super) async fn ended(&self) {
        let mut held = self.held.subscribe();
        let given_up = held.wait_for(|held| *held == 0);
        if Clock::real().timeout(RELEASE_WITHIN, given_up).await.is_err() {
            tracing::info!("a Lease is not given up: it runs out");
        }
    }
}

/// The names of the components that wait for a Lease.
pub(super) fn elected(config: &Config) -> Vec<&'static str> {
    let is_shared = config.apiserver.etcd.is_used() && config.leader_election.is_some();
    let chosen =
        [(CONTROLLER_MANAGER, config.components.controllers), (SCHEDULER, config.components.scheduler)];
    chosen.into_iter().filter(|(_, is_chosen)| is_shared && *is_chosen).map(|(name, _)| name).collect()
}

/// Which Lease a component's is.
pub(crate) fn of_component(name: &str, times: LeaderElectionTimes) -> LeaderElectionConfig {
    LeaderElectionConfig {
        name: name.to_owned(),
        namespace: NAMESPACE.to_owned(),
        identity: identity(&Entropy::from_system()),
        times,
    }
}

/// The machine's name and something that no other process has, as upstream's.
fn identity(entropy: &Entropy) -> String {
    format!("{}_{}", host_name(), entropy.uid())
}

/// The machine's name.
pub(super) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Components;

    #[test]
    fn components_wait_for_a_lease_on_an_etcd_that_others_share_alone() {
        let mut config = Config::new();
        assert!(elected(&config).is_empty(), "nobody else asks for it");
        config.apiserver.etcd.servers = vec!["http://127.0.0.1:1".into()];
        assert_eq!(elected(&config), ["kube-controller-manager", "kube-scheduler"]);
        assert_eq!(elected(&config.clone().components(Components::NONE.scheduler(true))), ["kube-scheduler"]);
        let alone = Config { leader_election: None, ..config };
        assert!(elected(&alone).is_empty());
    }

    #[test]
    fn two_of_one_machine_have_identities_of_their_own() {
        assert_ne!(identity(&Entropy::seeded(1)), identity(&Entropy::seeded(2)));
    }
}
