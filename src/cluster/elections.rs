//! Which components wait for a Lease, by whose name they ask for it, and how many are held. And the Leases
//! of those that wait for none, since nobody else asks for them: for whoever looks who leads.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::watch;

use super::config::Config;
use apimachinery::wire::ApiService;
use client_go::component::ComponentContext;
use client_go::leader_election::{LeaderElectionConfig, LeaderElector};
use client_go::leader_election_times::LeaderElectionTimes;
use client_go::lease_hold::LeaseHold;
use clock::Clock;
use entropy::Entropy;
use sync::Mutex;

/// How long a Lease may take to be given up at the end; then it runs out.
pub(crate) const RELEASE_WITHIN: Duration = Duration::from_millis(700);
/// As what a component's metrics have those of its Lease.
pub(super) const METRICS: &str = "leader election";
/// Where the Leases are.
const NAMESPACE: &str = "kube-system";
/// The components of which one leads where clusters share an etcd.
pub(super) const CONTROLLER_MANAGER: &str = "kube-controller-manager";
pub(super) const SCHEDULER: &str = "kube-scheduler";

/// How many Leases this cluster holds just now, and who asks whether it does.
#[derive(Default)]
pub(super) struct Elections {
    /// Of Leases that nobody else asks for.
    alone: Option<LeaderElectionTimes>,
    held: watch::Sender<usize>,
    /// By the names of the components that act only while they lead. Bound: those.
    holds: Mutex<BTreeMap<&'static str, LeaseHold>>,
}

impl Elections {
    /// Of a cluster that holds none yet.
    pub(super) fn of(config: &Config) -> Elections {
        let alone = config.leader_election.filter(|_| !config.apiserver.etcd.is_used());
        Elections { alone, ..Elections::default() }
    }

    /// A component that is about to run, which keeps its Lease for as long as it does, if that is for nobody
    /// else to ask for: it is the component's that runs now, whoever held it before.
    pub(super) fn kept_beside(&self, context: ComponentContext) -> ComponentContext {
        let Some(times) = self.alone else { return context };
        let lease = of_component(&context.component, times, &context.entropy);
        match LeaderElector::new(lease, &context) {
            Ok(elector) => {
                context.metrics.add(METRICS, elector.metrics());
                context.tasks.spawn("leader election", elector.hold_alone());
            }
            Err(error) => tracing::error!(%error, name = &*context.component, "there is no Lease"),
        }
        context
    }

    /// From now on a component of this name writes only while this is held.
    pub(crate) fn led_by(&self, name: &'static str, hold: LeaseHold) {
        self.holds.lock().insert(name, hold);
    }

    /// The apiserver, as a component of this name may ask it.
    pub(super) fn guarded(&self, name: &str, service: &ApiService) -> ApiService {
        let hold = self.holds.lock().get(name).cloned();
        hold.map_or_else(|| service.clone(), |hold| hold.guard(service.clone()))
    }

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

/// The components that do not lead just now, each with whether it runs as soon as it leads. Bound: the
/// components.
#[derive(Default)]
pub(super) struct StandingBy(Mutex<BTreeMap<&'static str, bool>>);

impl StandingBy {
    /// These wait, and are to run.
    pub(super) fn of(names: &[&'static str]) -> StandingBy {
        StandingBy(Mutex::new(names.iter().map(|name| (*name, true)).collect()))
    }

    /// Says whether it is to run, if it waits; what it was to do before, else none.
    pub(super) fn note(&self, name: &str, is_wanted: bool) -> Option<bool> {
        self.0.lock().get_mut(name).map(|wanted| std::mem::replace(wanted, is_wanted))
    }

    /// It waits no more; whether it is to run.
    pub(super) fn leave(&self, name: &str) -> bool {
        self.0.lock().remove(name).unwrap_or(false)
    }

    /// It waits from now on.
    pub(super) fn join(&self, name: &'static str) {
        self.0.lock().insert(name, true);
    }
}

/// The names of the components that wait for a Lease.
pub(super) fn elected(config: &Config) -> Vec<&'static str> {
    let is_shared = config.apiserver.etcd.is_used() && config.leader_election.is_some();
    let chosen =
        [(CONTROLLER_MANAGER, config.components.controllers), (SCHEDULER, config.components.scheduler)];
    chosen.into_iter().filter(|(_, is_chosen)| is_shared && *is_chosen).map(|(name, _)| name).collect()
}

/// Which Lease a component's is, and who asks for it.
pub(crate) fn of_component(
    name: &str,
    times: LeaderElectionTimes,
    entropy: &Entropy,
) -> LeaderElectionConfig {
    LeaderElectionConfig {
        name: name.to_owned(),
        namespace: NAMESPACE.to_owned(),
        identity: identity(entropy, name),
        times,
    }
}

/// The machine's name and something that no other process has, as upstream's; where a seed decides, the same
/// again.
fn identity(entropy: &Entropy, component: &str) -> String {
    format!("{}_{}", host_name(), uid(entropy, component))
}

/// Something that no other process has, for one of this name: at each of its starts another.
pub(super) fn uid(entropy: &Entropy, name: &str) -> String {
    entropy.uid_of(&["holder of a Lease", name]).unwrap_or_else(|| entropy.uid())
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
        assert_ne!(identity(&Entropy::seeded(1), SCHEDULER), identity(&Entropy::seeded(2), SCHEDULER));
    }

    #[test]
    fn leases_that_nobody_else_asks_for_are_kept_unless_it_is_switched_off() {
        let mut config = Config::new();
        assert_eq!(Elections::of(&config).alone, Some(LeaderElectionTimes::default()));
        let off = Config { leader_election: None, ..config.clone() };
        assert_eq!(Elections::of(&off).alone, None);
        config.apiserver.etcd.servers = vec!["http://127.0.0.1:1".into()];
        assert_eq!(Elections::of(&config).alone, None, "they are waited for");
    }

    #[test]
    fn a_seed_says_who_holds_a_lease_and_the_next_life_is_another() {
        let lives = |seed| {
            let entropy = Entropy::seeded(seed);
            let of = |name| identity(&entropy, name);
            [of(SCHEDULER), of(CONTROLLER_MANAGER), of(SCHEDULER)]
        };
        let all = [lives(1), lives(2)].concat();
        assert_eq!(lives(1), all[..3]);
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 6);
        assert!(all.iter().all(|identity| identity.starts_with(&format!("{}_", host_name()))));
    }

    #[test]
    fn what_was_stopped_while_it_waited_does_not_begin_when_it_leads() {
        let waiting = StandingBy::of(&["a", "b"]);
        assert_eq!(waiting.note("a", false), Some(true));
        assert_eq!(waiting.note("c", false), None, "it waits for nothing");
        assert!(!waiting.leave("a") && waiting.leave("b"));
        assert_eq!(waiting.note("a", true), None, "it leads");
        waiting.join("a");
        assert!(waiting.leave("a"));
    }
}
