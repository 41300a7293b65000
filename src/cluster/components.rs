//! The components: each a client of the apiserver in its own name, stopped and started at any point.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::config::Config;
use super::elections::{self, CONTROLLER_MANAGER, Elections, SCHEDULER, StandingBy};
use super::extenders;
use super::kubelet_lookup::Kubelets;
use super::node_register::{NodeRegister, RegisteredNodes};
use super::signers::{ClusterAuthority, SecretTokens};
use apimachinery::feature_gates::FeatureGates;
use apimachinery::object::Object;
use apimachinery::user::UserInfo;
use apimachinery::wire::ApiService;
use apis::scheme::Scheme;
use apiserver::authentication::service_account::issuer::TokenIssuer;
use apiserver::webhook::ServiceResolver;
use client_go::ComponentContext;
use client_go::client::Client;
use client_go::leader_election_metrics::LeaderElectionMetrics;
use client_go::metrics::ComponentMetrics;
use clock::Clock;
use component_base::zpages::flags_of;
use controllers::manager::{ControllerManager, GARBAGE_COLLECTOR};
use controllers::options::ControllerManagerOptions;
use controllers::own::OwnControllers;
use controllers::{self, CertificateAuthority, TokenGenerator};
use entropy::Entropy;
use flow::Flow;
use kubelet::kubelet::Kubelet;
use kubelet::node_config::NodeConfig;
use kubelet::node_refusal::NodeRefusal;
use kubelet::volume_manager::claimed_files::ClaimedFiles;
use network::Network;
use pki::Authority;
use scheduler::options::SchedulerOptions;
use scheduler::own::OwnPlugins;
use scheduler::scheduler::Scheduler;
use serde::{Deserialize, Serialize};
use stages::{MeasureBook, StageBook};
use sync::{Mutex, MutexGuard};
use usage::LoadBook;

/// The components that a cluster has once; the kubelets are `kubelet/node-1` and on.
pub const COMPONENTS: &[&str] = &[CONTROLLER_MANAGER, SCHEDULER];
/// Whom its Events are from.
const DEFAULT_SCHEDULER: &str = "default-scheduler";
const KUBELET: &str = "kubelet/";
/// What begins the names of the controllers of kube-controller-manager.
const OF_MANAGER: &str = "kube-controller-manager/";
/// What begins the names of the user's own controllers.
const OWN_CONTROLLER: &str = "controller/";

/// No component has that name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[error(
    "no component is named {0:?}; there are kube-controller-manager, kube-controller-manager/CONTROLLER (as \
     kube-controller-manager/deployment), kube-scheduler, kubelet/NODE and controller/NAME of your own; \
     `kubarium component list` says all names"
)]
pub struct UnknownComponent(pub String);

/// A component, and whether it runs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ComponentState {
    /// As `kube-scheduler`, `kube-controller-manager/deployment-controller`, `kubelet/node-1`.
    pub name: String,
    /// Of a controller of kube-controller-manager: whether both do.
    pub running: bool,
}

/// Which components run: what a fork goes on with.
#[derive(Clone, Debug, Default)]
pub(super) struct AtWork {
    /// Their names.
    pub(super) components: Vec<String>,
    /// The controllers that run in kube-controller-manager whenever it runs.
    pub(super) controllers: BTreeSet<&'static str>,
}

/// What controllers sign with, and tell others to trust.
#[derive(Default)]
pub(super) struct ComponentKeys {
    /// The certificate of the cluster's authority, PEM.
    pub(super) root_ca: String,
    /// What signs certificates; none where its key is elsewhere.
    pub(super) authority: Option<Arc<Authority>>,
    /// What makes tokens of Secrets; none where its key is elsewhere.
    pub(super) token_issuer: Option<Arc<TokenIssuer>>,
}

/// Everything that components are made from.
pub(super) struct Parts {
    pub(super) service: ApiService,
    pub(super) scheme: Arc<Scheme>,
    pub(super) keys: ComponentKeys,
    pub(super) clock: Clock,
    pub(super) entropy: Entropy,
    pub(super) flow: Flow,
    pub(super) network: Network,
    /// The way to who is asked outside of the cluster, or in one of its Services.
    pub(super) outside: ServiceResolver,
}

/// The components of one cluster, and which of them run.
pub(super) struct RunningComponents {
    parts: Parts,
    controller_manager: ControllerManagerOptions,
    gates: FeatureGates,
    scheduler: SchedulerOptions,
    pub(super) nodes: NodeRegister,
    /// The Stages that there are.
    pub(super) book: StageBook,
    /// What is said of what pods use.
    pub(super) measures: MeasureBook,
    /// The requests that Services are said to get.
    pub(super) loads: LoadBook,
    pub(super) claimed_files: ClaimedFiles,
    kubelets: Arc<Kubelets>,
    /// What each running component runs. Bound: one entry for each component.
    contexts: Mutex<BTreeMap<String, ComponentContext>>,
    /// Locked after `contexts`.
    manager: Mutex<ManagerParts>,
    own_controllers: OwnControllers,
    scheduler_plugins: OwnPlugins,
    standing_by: StandingBy,
    pub(super) elections: Elections,
    /// Whether the cluster is; changed while `contexts` is locked.
    is_ready: AtomicBool,
}

/// kube-controller-manager.
struct ManagerParts {
    /// Which controllers run whenever it does.
    wanted: BTreeSet<&'static str>,
    /// None while it stands still.
    running: Option<ControllerManager>,
}

impl ManagerParts {
    /// Brings what runs to what is wanted. The garbage collector waits for the cluster.
    fn start_wanted(&self, is_ready: bool) {
        let may_start = |name: &&str| is_ready || *name != GARBAGE_COLLECTOR;
        if let Some(running) = &self.running {
            running.start_controllers(&self.wanted.iter().copied().filter(may_start).collect());
        }
    }
}

impl RunningComponents {
    /// None runs yet. A fork inherits the nodes of its parent. The error is about the stages, the nodes,
    /// or the addresses of pods.
    pub(super) fn new(
        config: &Config,
        parts: Parts,
        kubelets: Arc<Kubelets>,
        inherited: Option<RegisteredNodes>,
    ) -> Result<RunningComponents, NodeRefusal> {
        let nodes = match inherited {
            Some(known) => NodeRegister::inheriting(config, known),
            None => NodeRegister::new(config),
        };
        let nodes = nodes?;
        let controller_manager = config.controller_manager.clone();
        let wanted = controllers::manager::selected(&controller_manager);
        Ok(RunningComponents {
            parts,
            controller_manager,
            gates: config.apiserver.features.gates.clone(),
            scheduler: config.scheduler.clone(),
            nodes,
            book: StageBook::default(),
            measures: MeasureBook::default(),
            loads: LoadBook::default(),
            claimed_files: ClaimedFiles::default(),
            kubelets,
            contexts: Mutex::default(),
            manager: Mutex::new(ManagerParts { wanted, running: None }),
            own_controllers: config.controllers.clone(),
            scheduler_plugins: config.scheduler_plugins.clone(),
            standing_by: StandingBy::of(&elections::elected(config)),
            elections: Elections::of(config),
            is_ready: AtomicBool::new(false),
        })
    }

    /// The cluster is ready: what nobody waits for starts now.
    pub(super) fn ready(&self) {
        let _contexts = self.lock();
        self.is_ready.store(true, Ordering::Relaxed);
        self.manager.lock().start_wanted(true);
    }

    /// The kubelets that run.
    pub(super) fn kubelets(&self) -> Arc<Kubelets> {
        self.kubelets.clone()
    }

    /// Those that run.
    pub(super) fn at_work(&self) -> AtWork {
        let components = self.lock().keys().cloned().collect();
        AtWork { components, controllers: self.manager.lock().wanted.clone() }
    }

    /// The names of all there are, and whether each runs.
    pub(super) fn list(&self) -> Vec<ComponentState> {
        let contexts = self.lock();
        let manager = self.manager.lock();
        let state = |name: String| ComponentState { running: contexts.contains_key(&name), name };
        let of_manager = controllers::manager::controllers().into_iter().map(|name| ComponentState {
            running: manager.running.is_some() && manager.wanted.contains(name),
            name: format!("{OF_MANAGER}{name}"),
        });
        let once = COMPONENTS.iter().map(|name| (*name).to_owned());
        let own = self.own_controllers.names().into_iter().map(|name| format!("{OWN_CONTROLLER}{name}"));
        let kubelets = self.nodes.names().into_iter().map(|node| format!("{KUBELET}{node}"));
        once.chain(kubelets).chain(own).map(state).chain(of_manager).collect()
    }

    /// Starts those that run from the start.
    pub(super) fn start_all(&self, config: &Config) -> Result<(), UnknownComponent> {
        let wanted =
            [(config.components.controllers, CONTROLLER_MANAGER), (config.components.scheduler, SCHEDULER)];
        for (_, name) in wanted.iter().filter(|(is_wanted, _)| *is_wanted) {
            self.start(name)?;
        }
        if config.components.kubelets {
            for node in self.nodes.names() {
                self.start(&format!("{KUBELET}{node}"))?;
            }
        }
        for own in self.own_controllers.names() {
            self.start(&format!("{OWN_CONTROLLER}{own}"))?;
        }
        Ok(())
    }

    /// Starts those of these that there are: a node may have come later than what a fork goes back to.
    pub(super) fn start_each(&self, at_work: &AtWork) {
        self.manager.lock().wanted.clone_from(&at_work.controllers);
        at_work.components.iter().for_each(|name| drop(self.start(name)));
    }

    /// A Node that somebody has created has a kubelet from now on.
    ///
    /// # Errors
    /// Why it has none.
    pub(super) fn adopt(&self, node: &Object) -> Result<(), NodeRefusal> {
        if self.nodes.adopt(node)? {
            self.start(&format!("{KUBELET}{}", node.metadata.name)).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// A node is there no more: its kubelet ends.
    pub(super) fn forget(&self, node: &str) {
        let _ = self.stop(&format!("{KUBELET}{node}"));
        if let Some(node) = self.nodes.forget(node) {
            self.kubelets.forget(&node);
        }
    }

    /// What a component counts, if it runs.
    pub(super) fn metrics(&self, name: &str) -> Option<Arc<ComponentMetrics>> {
        self.lock().get(name).map(|context| context.metrics.clone())
    }

    /// Whether a component runs and all that it follows has been told once.
    pub(super) fn has_heard(&self, name: &str) -> bool {
        let informers = self.lock().get(name).map(|context| context.informers.started());
        informers.is_some_and(|informers| informers.iter().all(|informer| informer.has_synced()))
    }

    /// What a component was told: of kubelets that of all.
    pub(super) fn flags(&self, name: &str) -> BTreeMap<String, String> {
        match name {
            CONTROLLER_MANAGER => flags_of(&self.controller_manager),
            SCHEDULER => flags_of(&self.scheduler),
            other => match other.strip_prefix(KUBELET).and_then(|node| self.kubelet(node)) {
                Some(kubelet) => flags_of(kubelet.options()),
                None => BTreeMap::new(),
            },
        }
    }

    /// What a component goes by (`/configz`), but for kubelets, which say it themselves.
    pub(super) fn configz(&self, name: &str) -> Option<serde_json::Value> {
        match name {
            CONTROLLER_MANAGER => Some(controllers::configz::configz(&self.controller_manager)),
            SCHEDULER => Some(scheduler::config::configz::configz(self.scheduler.scheduler_config.as_ref())),
            _ => None,
        }
    }

    /// The kubelet of a node, if it runs.
    pub(super) fn kubelet(&self, node: &str) -> Option<Kubelet> {
        self.kubelets.get(node)
    }

    /// A node that is being shut down is off at once, and then started.
    pub(super) fn start(&self, name: &str) -> Result<(), UnknownComponent> {
        let node = name.strip_prefix(KUBELET);
        let ending = node.and_then(|node| self.kubelet(node)).filter(Kubelet::is_shutting_down);
        ending.iter().for_each(|ending| self.switch_off(ending));
        let mut contexts = self.lock();
        // Under the lock: what begins here is found by whoever ends what no longer leads.
        if self.standing_by.note(name, true).is_some() {
            return Ok(());
        }
        if let Some(controller) = controller(name) {
            let mut manager = self.manager.lock();
            manager.wanted.insert(controller);
            manager.start_wanted(self.is_ready.load(Ordering::Relaxed));
            return Ok(());
        }
        if contexts.contains_key(name) {
            return Ok(());
        }
        let context = match name {
            CONTROLLER_MANAGER => self.start_controllers(),
            SCHEDULER => self.start_scheduler(),
            other if self.is_own_controller(other) => self.start_own_controller(other),
            other => {
                let node = other.strip_prefix(KUBELET).and_then(|node| self.nodes.boot(node));
                self.start_kubelet(&node.ok_or_else(|| UnknownComponent(name.into()))?)
            }
        };
        contexts.insert(name.into(), context);
        Ok(())
    }

    /// Whether there is one of that name, at work or not.
    pub(super) fn check(&self, name: &str) -> Result<(), UnknownComponent> {
        let node = name.strip_prefix(KUBELET);
        let is_known = COMPONENTS.contains(&name)
            || controller(name).is_some()
            || self.is_own_controller(name)
            || node.is_some_and(|node| self.nodes.contains(node));
        if is_known { Ok(()) } else { Err(UnknownComponent(name.into())) }
    }

    /// Says whether it ran; of a controller of kube-controller-manager, whether it runs whenever that does.
    pub(super) fn stop(&self, name: &str) -> Result<bool, UnknownComponent> {
        self.check(name)?;
        if let Some(was_wanted) = self.standing_by.note(name, false) {
            return Ok(was_wanted);
        }
        if let Some(controller) = controller(name) {
            let mut manager = self.manager.lock();
            manager.running.iter().for_each(|running| running.stop_controller(controller));
            return Ok(manager.wanted.remove(controller));
        }
        if let Some(node) = name.strip_prefix(KUBELET) {
            self.kubelets.remove(node);
        }
        Ok(self.end(name))
    }

    /// Says whether it ran.
    fn end(&self, name: &str) -> bool {
        let mut contexts = self.lock();
        let context = contexts.remove(name);
        if name == CONTROLLER_MANAGER {
            self.manager.lock().running = None;
        }
        drop(contexts);
        context.iter().for_each(ComponentContext::stop);
        context.is_some()
    }

    fn is_own_controller(&self, name: &str) -> bool {
        let own = name.strip_prefix(OWN_CONTROLLER);
        own.is_some_and(|own| self.own_controllers.names().contains(own))
    }

    /// The machine of a node is switched off, if this is still its kubelet: whoever has ended it meanwhile,
    /// or started another, has decided otherwise.
    pub(super) fn switch_off(&self, kubelet: &Kubelet) {
        let node = kubelet.node_name();
        let mut contexts = self.lock();
        if !self.kubelets.get(node).is_some_and(|running| running.is(kubelet)) {
            return;
        }
        self.nodes.reboot(node, self.parts.clock.now());
        self.kubelets.remove(node);
        if let Some(context) = contexts.remove(&format!("{KUBELET}{node}")) {
            context.stop();
        }
    }

    pub(super) fn stop_all(&self) {
        self.kubelets.clear();
        self.manager.lock().running = None;
        for (_, context) in std::mem::take(&mut *self.lock()) {
            context.stop();
        }
    }

    /// In the name of a component that waits for its Lease, or keeps it.
    pub(super) fn candidate(&self, name: &str) -> ComponentContext {
        let source = if name == SCHEDULER { DEFAULT_SCHEDULER } else { name };
        let user = UserInfo::authenticated(&format!("system:{name}"), &[]);
        self.elections.kept_beside(self.context(name, (source, ""), user))
    }

    /// The Lease of a component is ours: it runs, unless somebody has stopped it.
    pub(super) fn lead(&self, name: &str, metrics: Arc<LeaderElectionMetrics>) {
        if self.standing_by.leave(name) && self.start(name).is_ok() {
            let counted = self.metrics(name);
            counted.iter().for_each(|counted| counted.add(elections::METRICS, metrics.clone()));
        }
    }

    /// The Lease of a component is ours no more, and nothing of it goes on.
    pub(super) fn stand_by(&self, name: &'static str) {
        self.standing_by.join(name);
        let ran = self.end(name);
        self.standing_by.note(name, ran);
    }

    fn start_controllers(&self) -> ComponentContext {
        let context = self.candidate(CONTROLLER_MANAGER);
        let mut manager = self.manager.lock();
        manager.running = Some(ControllerManager::start(context.clone(), self.controllers()));
        manager.start_wanted(self.is_ready.load(Ordering::Relaxed));
        context
    }

    /// It may do everything, unless it says as which service account it asks.
    fn start_own_controller(&self, name: &str) -> ComponentContext {
        let own = name.strip_prefix(OWN_CONTROLLER).unwrap_or(name);
        let context = self.context(name, (own, ""), UserInfo::authenticated(name, &["system:masters"]));
        self.own_controllers.start(own, &context);
        context
    }

    fn controllers(&self) -> controllers::ControllerManagerConfig {
        let Parts { scheme, keys, clock, entropy, .. } = &self.parts;
        let ComponentKeys { root_ca, authority, token_issuer } = keys;
        let options = self.controller_manager.clone();
        let mut config = controllers::ControllerManagerConfig::new(options, scheme.clone(), root_ca);
        config.feature_gates = self.gates.clone();
        config.authority = authority.clone().map(|authority| {
            let (clock, entropy) = (clock.clone(), entropy.clone());
            Arc::new(ClusterAuthority { authority, clock, entropy }) as Arc<dyn CertificateAuthority>
        });
        let issuer = token_issuer.clone();
        config.tokens = issuer.map(|issuer| Arc::new(SecretTokens(issuer)) as Arc<dyn TokenGenerator>);
        config
    }

    fn start_scheduler(&self) -> ComponentContext {
        let context = self.candidate(SCHEDULER);
        let dial = extenders::dial(&self.parts.outside, &self.parts.clock);
        let own = &self.scheduler_plugins;
        Scheduler::with_extenders(context.clone(), &self.scheduler, own, Some(dial)).start();
        context
    }

    fn start_kubelet(&self, node: &NodeConfig) -> ComponentContext {
        let user = UserInfo::authenticated(&node.user_name(), &["system:nodes"]);
        let name = format!("{KUBELET}{}", node.name);
        let context = self.context(&name, ("kubelet", &node.name), user);
        let players = self.kubelets.players(&self.parts.clock);
        let (book, measures, loads) = (self.book.clone(), self.measures.clone(), self.loads.clone());
        let claimed_files = self.claimed_files.clone();
        let config = NodeConfig { book, measures, loads, claimed_files, ..node.clone() };
        let kubelet = Kubelet::new(context.clone(), config, players, self.parts.network.clone());
        let kubelet = kubelet.expect("a node is looked at before it is registered");
        kubelet.start();
        self.kubelets.add(kubelet);
        context
    }

    fn context(&self, name: &str, origin: (&str, &str), user: UserInfo) -> ComponentContext {
        let Parts { service, clock, entropy, flow, .. } = &self.parts;
        let service = self.elections.guarded(name, service);
        let client = Client::new(service, Arc::new(user), clock.clone(), flow.clone());
        ComponentContext::new(name, origin, client, clock.clone(), entropy.clone()).with_gates(&self.gates)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, ComponentContext>> {
        self.contexts.lock()
    }
}

/// The controller of kube-controller-manager that a component's name means.
fn controller(name: &str) -> Option<&'static str> {
    controllers::manager::controller_named(name.strip_prefix(OF_MANAGER)?)
}

impl Drop for RunningComponents {
    fn drop(&mut self) {
        self.stop_all();
    }
}
