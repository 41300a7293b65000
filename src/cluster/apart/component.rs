//! `Apart`: the components of one process, whose apiserver is elsewhere.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::ApartError;
use super::custom_kinds;
use super::delegated::Delegated;
use super::kubelet_port::KubeletPorts;
use super::own_nodes;
use super::pages::{self, CountedText, OwnPages};
use super::remote::RemoteApi;
use crate::cluster::component_health::{ComponentHealth, HealthLook};
use crate::cluster::component_zpages::ComponentZPages;
use crate::cluster::components::{ComponentKeys, Parts, RunningComponents};
use crate::cluster::config::Config;
use crate::cluster::data_plane::DataPlane;
use crate::cluster::debugging::memory_of_components;
use crate::cluster::kubelet_gate::KubeletGate;
use crate::cluster::kubelet_lookup::Kubelets;
use crate::cluster::node_changes;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apimachinery::user::UserInfo;
use apis::core::node::NODES;
use apis::scheme::Scheme;
use apiserver::authentication::service_account::issuer::TokenIssuer;
use apiserver::endpoints::routes::debug::Debugging;
use apiserver::server::{Server, advertised};
use apiserver::webhook::{PodNetwork, ServiceResolver};
use client_go::client::Client;
use client_go::component::ComponentContext;
use client_go::leader_election_metrics::LeaderElectionMetrics;
use client_go::lease_hold::LeaseHold;
use clock::Clock;
use component_base::build_info;
use component_base::metrics::Render;
use flow::Flow;
use pki::{Authority, Identity};

/// How often a server that is away at the start is asked whether it is there.
const START_RETRY: Duration = Duration::from_secs(1);
/// So often nodes are given other ranges where others have claimed the same at the same moment.
const CLAIMS: usize = 20;
/// The pause between, ...
const CLAIM_RETRY: Duration = Duration::from_millis(100);
/// ... by so much of it longer at random, so that not all meet again.
const CLAIM_JITTER: f64 = 5.0;
/// The kinds of definitions that are there are waited for so long, before controllers begin.
const KINDS_WITHIN: Duration = Duration::from_secs(10);

/// What is in the files that the flags of controllers name.
#[derive(Default)]
pub(crate) struct ApartKeys {
    /// `--root-ca-file`, PEM.
    pub(crate) root_ca: String,
    /// `--cluster-signing-cert-file` and its key; without, no certificates are signed.
    pub(crate) authority: Option<Arc<Authority>>,
    /// `--service-account-private-key-file`, PEM; without, Secrets get no tokens.
    pub(crate) token_key: Option<String>,
}

/// Where kubelets listen.
pub(crate) struct KubeletListen {
    /// Of the machine.
    pub(crate) address: IpAddr,
    /// Of the first node, the next ones of the others; 0 takes free ones.
    pub(crate) port: u16,
    /// What they show; without, a certificate that they have signed themselves.
    pub(crate) identity: Option<Identity>,
}

/// The components of one process.
pub(crate) struct Apart {
    running: Arc<RunningComponents>,
    kubelets: Arc<Kubelets>,
    data_plane: Arc<DataPlane>,
    scheme: Arc<Scheme>,
    config: Config,
    api: RemoteApi,
    /// Who the kubeconfig's user is.
    own_name: String,
    /// Follows definitions, of controllers alone; of kubelets, their Nodes.
    follower: Option<ComponentContext>,
    ports: Vec<Server>,
    /// What is counted beside what components count.
    election: Arc<OnceLock<Arc<LeaderElectionMetrics>>>,
}

impl Apart {
    /// Returns when the server is there; nothing runs yet.
    ///
    /// # Errors
    /// The server does not know the kubeconfig's user; what is wrong with the config.
    pub(crate) async fn connect(
        config: Config,
        api: RemoteApi,
        keys: ApartKeys,
    ) -> Result<Apart, ApartError> {
        let own_name = wait_for_server(&api, &config.clock).await?;
        // Who competes for a Lease says so by [`Apart::led_by`].
        let config = Config { leader_election: None, ..config };
        let served = config.apiserver.api_enablement.complete();
        let served = served.map_err(|why| ApartError(why.into()))?.served();
        let (scheme, kubelets) = (Arc::new(Scheme::of(&served)), Arc::new(Kubelets::default()));
        let (service, flow) = (api.service(), Flow::off());
        let pods = PodNetwork::default();
        let data_plane = DataPlane::new(&config, kubelets.clone(), &service, &flow, &pods);
        let Config { clock, entropy, .. } = &config;
        let issuer = |key: String| Arc::new(TokenIssuer::new("", &key, &[], clock, entropy));
        let parts = Parts {
            service,
            scheme: scheme.clone(),
            keys: ComponentKeys {
                root_ca: keys.root_ca,
                authority: keys.authority,
                token_issuer: keys.token_key.map(issuer),
            },
            clock: clock.clone(),
            entropy: entropy.clone(),
            flow,
            network: data_plane.network(),
            outside: ServiceResolver::nowhere(entropy).over(&pods),
        };
        let running = RunningComponents::new(&config, parts, kubelets.clone(), None);
        let running = Arc::new(running.map_err(|why| ApartError(why.0))?);
        let (ports, election) = Default::default();
        Ok(Apart {
            running,
            kubelets,
            data_plane,
            scheme,
            config,
            api,
            own_name,
            follower: None,
            ports,
            election,
        })
    }

    /// A part of the process that is none of the components, as an election: in the kubeconfig's own name.
    /// Its requests wait for nobody else's turn.
    pub(crate) fn context(&self, component: &str, source: &str) -> ComponentContext {
        let Config { clock, entropy, .. } = &self.config;
        let client = self.client().acting_as(UserInfo::authenticated(&format!("{component}/own"), &[]));
        ComponentContext::new(component, (source, ""), client, clock.clone(), entropy.clone())
    }

    /// Those who begin from now on under this name write only while the Lease is held.
    pub(crate) fn led_by(&self, name: &'static str, hold: LeaseHold) {
        self.running.elections.led_by(name, hold);
    }

    /// Asks in the kubeconfig's own name.
    pub(crate) fn client(&self) -> Client {
        let user = Arc::new(UserInfo::authenticated(&self.own_name, &[]));
        Client::new(self.api.service(), user, self.config.clock.clone(), Flow::off())
    }

    /// Who may ask at the ports of this process.
    ///
    /// # Errors
    /// What cannot be read of the authority.
    pub(crate) fn delegated(&self, authority: &str) -> Result<Arc<Delegated>, ApartError> {
        Delegated::new(self.client(), authority, &self.config.clock).map(Arc::new)
    }

    /// Controllers or the scheduler begin.
    pub(crate) async fn begin(&mut self) {
        if self.config.components.controllers {
            let context = self.context("kube-controller-manager/discovery", "controllermanager");
            custom_kinds::follow(&context, &self.scheme);
            // A server that refuses them holds up nobody for ever.
            let heard = context.informers.wait_for_cache_sync();
            let _ = self.config.clock.timeout(KINDS_WITHIN, heard).await;
            self.follower = Some(context);
        }
        self.start_all();
    }

    /// The kubelets begin: first their ports, which their Nodes name.
    ///
    /// # Errors
    /// A port that is taken; nodes that cannot be made.
    pub(crate) async fn begin_kubelets(
        &mut self,
        listen: KubeletListen,
        authority: &str,
    ) -> Result<(), ApartError> {
        self.claim_nodes().await?;
        self.open_ports(listen, authority).await?;
        self.start_all();
        // In the kubeconfig's own name, which may read all Nodes, as when they were claimed.
        let Config { clock, entropy, .. } = &self.config;
        let origin = ("kubelet", "");
        let context =
            ComponentContext::new("kubelet/nodes", origin, self.client(), clock.clone(), entropy.clone());
        own_nodes::follow(&context, &self.running);
        self.follower = Some(context);
        Ok(())
    }

    /// Gives each node addresses and a range for its pods that nobody has, also where other kubelets begin at
    /// the same moment.
    async fn claim_nodes(&self) -> Result<(), ApartError> {
        let (client, nodes) = (self.client(), &self.running.nodes);
        let failed = |status: Status| ApartError(status.message);
        for _ in 0..CLAIMS {
            let stored = self.stored_nodes().await;
            nodes.fill(&self.config, &stored).map_err(|why| ApartError(why.0))?;
            let claimed = node_changes::claim_own(&client, nodes).await.map_err(failed)?;
            if claimed.is_empty()
                || !node_changes::give_up_contested(&client, &claimed).await.map_err(failed)?
            {
                return Ok(());
            }
            let Config { clock, entropy, .. } = &self.config;
            clock.sleep(entropy.jitter(CLAIM_RETRY, CLAIM_JITTER)).await;
        }
        Err(ApartError("others claim the same ranges for pods each time: start these nodes again".into()))
    }

    async fn stored_nodes(&self) -> Vec<Arc<apimachinery::object::Object>> {
        loop {
            match self.client().list(&NODES, "", &ListOptions::default()).await {
                Ok(list) => return list.items.to_vec(),
                Err(status) => tracing::debug!("nodes cannot be listed yet: {status}"),
            }
            self.config.clock.sleep(START_RETRY).await;
        }
    }

    async fn open_ports(&mut self, listen: KubeletListen, authority: &str) -> Result<(), ApartError> {
        let clock = &self.config.clock;
        let shown = advertised_at(listen.address);
        let self_signed = || pages::self_signed(SocketAddr::new(shown, 0), clock);
        let identity = listen.identity.map_or_else(self_signed, Ok)?;
        let gate = KubeletGate {
            kubelets: self.kubelets.clone(),
            delegated: self.delegated(authority)?,
            clock: clock.clone(),
            debugging: self.keeping(Debugging::of_kubelet(self.config.verbosity.clone())),
        };
        let ports = KubeletPorts { gate, authority: authority.to_owned(), identity };
        for (node, number) in self.running.nodes.names().iter().zip(0_u16..) {
            let port = if listen.port == 0 { 0 } else { listen.port.saturating_add(number) };
            let server = ports.open(node, SocketAddr::new(listen.address, port)).await?;
            self.running.nodes.reached_at(node, SocketAddr::new(shown, server.address().port()));
            self.ports.push(server);
        }
        Ok(())
    }

    fn start_all(&self) {
        // They are the config's own, which are known.
        let started = self.running.start_all(&self.config);
        debug_assert!(started.is_ok());
        self.running.ready();
    }

    /// The names of its nodes.
    pub(crate) fn nodes(&self) -> Vec<String> {
        self.running.nodes.names()
    }

    /// What its components say of themselves at their port; upstream calls them `component` there.
    pub(crate) fn own_pages(&self, component: &str, debugging: Debugging) -> OwnPages {
        let running = self.running.clone();
        let configz = running.configz(component);
        let name = component.to_owned();
        OwnPages {
            counted: self.counted(),
            health: ComponentHealth::new(self.look(component), Arc::default()),
            configz: configz.unwrap_or_default().to_string().into(),
            zpages: ComponentZPages {
                component: component.to_owned(),
                clock: self.config.clock.clone(),
                flags: Arc::new(move || running.flags(&name)),
            },
            debugging: self.keeping(debugging).begin(),
        }
    }

    /// With what the components of this process keep.
    fn keeping(&self, mut debugging: Debugging) -> Debugging {
        debugging.memory = Some(memory_of_components(&self.running));
        debugging
    }

    /// Looks at what a component looks at when it is asked how it is.
    fn look(&self, component: &str) -> HealthLook {
        let (running, election, name) = (self.running.clone(), self.election.clone(), component.to_owned());
        Arc::new(move |path| running.health(&name, path, election.get().is_some()))
    }

    /// Writes what its components count.
    fn counted(&self) -> CountedText {
        let (running, election) = (self.running.clone(), self.election.clone());
        Arc::new(move || {
            let mut text = String::new();
            election.get().iter().for_each(|election| election.render(&mut text));
            let states = running.list().into_iter().filter(|state| state.running);
            let metrics = states.filter_map(|state| running.metrics(&state.name));
            metrics.for_each(|metrics| metrics.render(&mut text));
            build_info::render(&mut text);
            text
        })
    }

    /// Whether it leads is told on its pages.
    pub(crate) fn count(&self, election: Arc<LeaderElectionMetrics>) {
        let _ = self.election.set(election);
    }

    /// Ends what runs.
    pub(crate) fn stop(&self) {
        self.running.stop_all();
        self.data_plane.stop();
        self.follower.iter().for_each(ComponentContext::stop);
    }
}

/// Where others reach what listens there: of all addresses, the machine's own.
fn advertised_at(address: IpAddr) -> IpAddr {
    if !address.is_unspecified() {
        return address;
    }
    advertised(SocketAddr::new(address, 1)).map_or(address, |found| found.ip())
}

/// Who the kubeconfig's user is, once there is a server that says it.
async fn wait_for_server(api: &RemoteApi, clock: &Clock) -> Result<String, ApartError> {
    let mut is_told = false;
    loop {
        match api.who_am_i().await {
            Ok(name) => return Ok(name),
            Err(status) if status.code == 401 => return Err(not_known(api, &status)),
            // Nobody answers: that is told by whoever asks.
            Err(status) if status.is_unreachable() || is_told => {}
            Err(status) => {
                is_told = true;
                api.tell(&format!("{} does not say yet who its user is: {}", api.server(), status.message));
            }
        }
        clock.sleep(START_RETRY).await;
    }
}

fn not_known(api: &RemoteApi, status: &Status) -> ApartError {
    let (server, Status { message, .. }) = (api.server(), status);
    ApartError(format!("{server} does not know the user of the kubeconfig: {message}; is it this cluster's?"))
}
