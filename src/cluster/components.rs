//! The components: each a client of the apiserver in its own name, stopped and started at any point.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::config::Config;
use super::extenders;
use super::kubelet_lookup::Kubelets;
use super::node_register::NodeRegister;
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
use clock::Clock;
use controllers::options::ControllerManagerOptions;
use controllers::{self, TokenGenerator};
use entropy::Entropy;
use flow::Flow;
use kubelet::kubelet::Kubelet;
use kubelet::node_config::NodeConfig;
use kubelet::node_refusal::NodeRefusal;
use network::Network;
use pki::Authority;
use scheduler::options::SchedulerOptions;
use scheduler::scheduler::Scheduler;
use sync::{Mutex, MutexGuard};

/// The components that a cluster has once; the kubelets are `kubelet/node-1` and on.
pub const COMPONENTS: &[&str] = &[CONTROLLER_MANAGER, SCHEDULER];
const CONTROLLER_MANAGER: &str = "kube-controller-manager";
const SCHEDULER: &str = "kube-scheduler";
const KUBELET: &str = "kubelet/";

/// No component has that name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[error("no component is named {0:?}; there are kube-controller-manager, kube-scheduler and kubelet/NODE")]
pub struct UnknownComponent(pub String);

/// Everything that components are made from.
pub(super) struct Parts {
    pub(super) service: ApiService,
    pub(super) scheme: Arc<Scheme>,
    pub(super) authority: Arc<Authority>,
    pub(super) token_issuer: Option<Arc<TokenIssuer>>,
    pub(super) clock: Clock,
    pub(super) entropy: Entropy,
    pub(super) flow: Flow,
    pub(super) network: Network,
    /// The way to who is asked outside of the cluster, or in one of its Services.
    pub(super) outside: ServiceResolver,
}

/// The components of one cluster, and which of them run.
pub(super) struct Running {
    parts: Parts,
    controller_manager: ControllerManagerOptions,
    gates: FeatureGates,
    scheduler: SchedulerOptions,
    pub(super) nodes: NodeRegister,
    kubelets: Arc<Kubelets>,
    /// What each running component runs. Bound: one entry for each component.
    contexts: Mutex<BTreeMap<String, ComponentContext>>,
    /// Whether the cluster is; changed while `contexts` is locked.
    is_ready: AtomicBool,
}

impl Running {
    /// None runs yet. A fork inherits the nodes of its parent. The error is about the stages, the nodes,
    /// or the addresses of pods.
    pub(super) fn new(
        config: &Config,
        parts: Parts,
        kubelets: Arc<Kubelets>,
        inherited: Vec<NodeConfig>,
    ) -> Result<Running, String> {
        let nodes = NodeRegister::new(config).map_err(|why| why.0)?;
        nodes.inherit(inherited);
        let (contexts, is_ready) = (Mutex::default(), AtomicBool::new(false));
        let controller_manager = config.controller_manager.clone();
        let scheduler = config.scheduler.clone();
        let gates = config.apiserver.features.gates.clone();
        Ok(Running { parts, controller_manager, gates, scheduler, nodes, kubelets, contexts, is_ready })
    }

    /// The cluster is ready: what nobody waits for starts now.
    pub(super) fn ready(&self) {
        let contexts = self.lock();
        self.is_ready.store(true, Ordering::Relaxed);
        if let Some(context) = contexts.get(CONTROLLER_MANAGER) {
            controllers::spawn_garbage_collector(context, &self.controllers());
        }
    }

    /// The kubelets that run.
    pub(super) fn kubelets(&self) -> Arc<Kubelets> {
        self.kubelets.clone()
    }

    /// Those that run.
    pub(super) fn names(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
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
        Ok(())
    }

    /// Starts those of these that there are: a node may have come later than what a fork goes back to.
    pub(super) fn start_each(&self, names: &[String]) {
        names.iter().for_each(|name| drop(self.start(name)));
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

    /// The kubelet of a node, if it runs.
    pub(super) fn kubelet(&self, node: &str) -> Option<Kubelet> {
        self.kubelets.get(node)
    }

    pub(super) fn start(&self, name: &str) -> Result<(), UnknownComponent> {
        let mut contexts = self.lock();
        if contexts.contains_key(name) {
            return Ok(());
        }
        let context = match name {
            CONTROLLER_MANAGER => self.start_controllers(),
            SCHEDULER => self.start_scheduler(),
            other => {
                let node = other.strip_prefix(KUBELET).and_then(|node| self.nodes.get(node));
                self.start_kubelet(&node.ok_or_else(|| UnknownComponent(name.into()))?)
            }
        };
        contexts.insert(name.into(), context);
        Ok(())
    }

    /// Whether there is one of that name, at work or not.
    pub(super) fn check(&self, name: &str) -> Result<(), UnknownComponent> {
        let node = name.strip_prefix(KUBELET);
        let is_known = COMPONENTS.contains(&name) || node.is_some_and(|node| self.nodes.contains(node));
        if is_known { Ok(()) } else { Err(UnknownComponent(name.into())) }
    }

    /// Says whether it ran.
    pub(super) fn stop(&self, name: &str) -> Result<bool, UnknownComponent> {
        self.check(name)?;
        if let Some(node) = name.strip_prefix(KUBELET) {
            self.kubelets.remove(node);
        }
        let context = self.lock().remove(name);
        if let Some(context) = &context {
            context.stop();
        }
        Ok(context.is_some())
    }

    pub(super) fn stop_all(&self) {
        self.kubelets.clear();
        for (_, context) in std::mem::take(&mut *self.lock()) {
            context.stop();
        }
    }

    fn start_controllers(&self) -> ComponentContext {
        let user = UserInfo::authenticated("system:kube-controller-manager", &[]);
        let context = self.context(CONTROLLER_MANAGER, (CONTROLLER_MANAGER, ""), user);
        let config = self.controllers();
        controllers::spawn_all(&context, &config);
        if self.is_ready.load(Ordering::Relaxed) {
            controllers::spawn_garbage_collector(&context, &config);
        }
        context.informers.start(&context.tasks);
        context
    }

    fn controllers(&self) -> controllers::Config {
        let Parts { scheme, authority, clock, entropy, token_issuer, .. } = &self.parts;
        let options = self.controller_manager.clone();
        let mut config = controllers::Config::new(options, scheme.clone(), authority.certificate_pem());
        config.feature_gates = self.gates.clone();
        let (authority, clock, entropy) = (authority.clone(), clock.clone(), entropy.clone());
        config.authority = Some(Arc::new(ClusterAuthority { authority, clock, entropy }));
        let issuer = token_issuer.clone();
        config.tokens = issuer.map(|issuer| Arc::new(SecretTokens(issuer)) as Arc<dyn TokenGenerator>);
        config
    }

    fn start_scheduler(&self) -> ComponentContext {
        let user = UserInfo::authenticated("system:kube-scheduler", &[]);
        let context = self.context(SCHEDULER, ("default-scheduler", ""), user);
        let dial = extenders::dial(&self.parts.outside, &self.parts.clock);
        Scheduler::with_extenders(context.clone(), &self.scheduler, Some(dial)).start();
        context
    }

    fn start_kubelet(&self, node: &NodeConfig) -> ComponentContext {
        let user = UserInfo::authenticated(&node.user_name(), &["system:nodes"]);
        let name = format!("{KUBELET}{}", node.name);
        let context = self.context(&name, ("kubelet", &node.name), user);
        let players = self.kubelets.players(&self.parts.clock);
        let kubelet = Kubelet::new(context.clone(), node.clone(), players, self.parts.network.clone());
        let kubelet = kubelet.expect("a node is looked at before it is registered");
        kubelet.start();
        self.kubelets.add(kubelet);
        context
    }

    fn context(&self, name: &str, origin: (&str, &str), user: UserInfo) -> ComponentContext {
        let Parts { service, clock, entropy, flow, .. } = &self.parts;
        let client = Client::new(service.clone(), Arc::new(user), clock.clone(), flow.clone());
        ComponentContext::new(name, origin, client, clock.clone(), entropy.clone())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, ComponentContext>> {
        self.contexts.lock()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop_all();
    }
}
