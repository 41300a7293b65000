//! `kubarium up`: starts a cluster, applies manifests, shows what happens, and stops cleanly on Ctrl-C or
//! SIGTERM.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::ArgPredicate;

use super::flags::clock::ClockChoice;
use super::flags::components::ComponentFlags;
use super::flags::election::ElectionFlags;
use super::flags::values;
use super::readiness::{Readiness, ReadyDescriptor};
use super::stop::{Stop, end_unless_told};
use super::style::Style;
use super::{
    Failure, data_dir, detach, fork_contexts, kubeconfig, manifests, node, progress, run_folder, say, state,
};
use crate::cluster::kwok_kinds::KwokKind;
use crate::cluster::manifests::Manifest;
use crate::cluster::{Access, Cluster, Components, Config, Listen, OtlpEndpoint, Publish, Snapshot};
use apiserver::endpoints::routes::debug::Verbosity;
use apiserver::options::ServerRunOptions;
use apiserver::server::secure_serving::names_instead;
use clock::Clock;
use controllers::options::ControllerManagerOptions;
use entropy::Entropy;
use etcd_server::options::ListenOptions;
use etcd_server::restored::LeasesOf;
use kubelet::container_runtime::declared::forward::PodForwarding;
use kubelet::container_runtime::own_listeners::OwnListeners;
use kubelet::options::KubeletOptions;
use scheduler::options::SchedulerOptions;

/// Start a cluster and keep it until Ctrl-C.
#[derive(Args)]
pub struct Up {
    /// The cluster's name: its context in the kubeconfig, and what `down` stops.
    #[arg(long, default_value = "kubarium")]
    pub name: String,
    /// How many simulated nodes.
    #[arg(long, default_value_t = 1, default_value_if("node_config", ArgPredicate::IsPresent, "0"),
        value_parser = values::nodes)]
    pub nodes: u32,
    /// A file of nodes that are not all alike: labels, zones, taints, capacity, versions, in groups.
    ///
    /// Numbered nodes are there beside them only if --nodes says how many.
    #[arg(long, value_name = "FILE", conflicts_with = "apiserver_only")]
    pub node_config: Option<PathBuf>,
    /// Files or folders of manifests to apply when the cluster is ready, '-' for the standard input; may be
    /// given several times.
    #[arg(short, long, value_delimiter = ',', value_name = "FILE")]
    pub filename: Vec<PathBuf>,
    /// Look for manifests in sub-folders, too.
    #[arg(short = 'R', long)]
    pub recursive: bool,
    /// Where to keep everything over restarts; without it all is gone at the end.
    ///
    /// What was answered is on the disk: it survives a crash and a power cut, and if it is lost all the same,
    /// the next start says so and refuses.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Show pods of the system in kube-system, as kubeadm has them: coredns, kube-proxy, etcd and their like.
    ///
    /// They are simulated: what they would do the cluster does anyway.
    #[arg(long, conflicts_with = "apiserver_only")]
    pub system_pods: bool,
    /// Serve the kind faults.kubarium.dev/v1alpha1 Fault: each object makes something go wrong.
    #[arg(long)]
    pub fault_objects: bool,
    /// Serve kinds of kwok: Stage, ResourceUsage, ClusterResourceUsage, Metric.
    ///
    /// kwok's flag of that name. A Stage is what becomes of objects of any kind, as data; the usages are what
    /// pods use; a Metric is what kubelets answer below /metrics. An object of such a kind in the folder of
    /// --stages has its kind served, too, as has whoever applies kwok's own definitions.
    #[arg(long, value_delimiter = ',', value_name = "KIND")]
    pub enable_crds: Vec<KwokKind>,
    /// Answer before the disk has it: faster, and a power cut loses the newest writes.
    #[arg(long)]
    pub unsafe_no_fsync: bool,
    /// Start with what is left of a data dir that has lost something, and say what is gone.
    #[arg(long)]
    pub recover: bool,
    /// Start from a file that `snapshot save` wrote, or from the folder that a failed `kubarium run` has
    /// left, with as many nodes as there were.
    ///
    /// A stepped clock stands at the time at which it was taken.
    ///
    /// With a data dir that is not there yet, everything is written there first.
    #[arg(long, value_name = "FILE")]
    pub snapshot: Option<PathBuf>,
    /// Start from a snapshot of a real etcd: the file that `etcdctl snapshot save` wrote.
    ///
    /// Or member/snap/db of a member that stands still. The cluster has the objects, their uids and
    /// revisions, and certificates of its own; of its real nodes nobody takes care. With a data dir that
    /// is not there yet, everything is written there first.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["snapshot", "etcd-servers"])]
    pub etcd_snapshot: Option<PathBuf>,
    /// Show what is there and change nothing: no component runs, and writes are refused.
    ///
    /// With --etcd-snapshot: to look into a broken cluster. etcd's API is not served.
    #[arg(long, conflicts_with_all = ["filename", "etcd-servers", "listen_client_urls"])]
    pub read_only: bool,
    /// Where to listen: HOST:PORT, or a port of 127.0.0.1; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS",
        value_parser = values::listener)]
    pub listen: SocketAddr,
    /// Write a kubeconfig of its own here, instead of a context among yours.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Go on in the background.
    #[arg(short, long)]
    pub detach: bool,
    /// Serve plain HTTP: kubectl then sends no credentials, and everybody is an administrator.
    #[arg(long)]
    pub insecure_http: bool,
    /// A folder of stages: what the simulated kubelets do with pods, beside the built-in ones.
    ///
    /// Objects of kwok's kinds in it are created, and can be changed.
    #[arg(long, value_name = "DIR")]
    pub stages: Option<PathBuf>,
    /// Where pods with an annotation `kubarium.dev/forward.PORT` may lead: nowhere, loopback, anywhere.
    ///
    /// Behind such a pod stands a real process, as one that is being developed. Whoever may write pods
    /// reaches with that what only this machine reaches.
    #[arg(long, default_value = "nowhere", value_name = "WHERE")]
    pub forward_pods: PodForwarding,
    /// Open ports of Services on this machine, as 8080:30080; may be given several times.
    ///
    /// PORT:NODEPORT leads to a port of the first node, PORT:NODEPORT@NODE of another one, and
    /// PORT:PORT@loadbalancer to the first Service of type LoadBalancer that has it. nodeports and
    /// loadbalancers open all ports of such Services at their own numbers, as they come and go; what cannot
    /// be opened is told in an Event. It is 127.0.0.1, unless an address stands before, as in
    /// 0.0.0.0:8080:30080. Port 0 takes a free one. TCP alone; 1,000 connections at once.
    #[arg(long, value_delimiter = ',', value_name = "PORT:TARGET")]
    pub publish: Vec<Publish>,
    /// Open a page that shows the cluster at work; `kubarium ui` prints a link to it, which lets one in once.
    #[arg(long)]
    pub ui: bool,
    /// Where that page listens: an address of loopback, or a port of 127.0.0.1; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS",
        value_parser = page_listener)]
    pub ui_listen: SocketAddr,
    /// Send what happens to a collector of OpenTelemetry, as http://127.0.0.1:4318: OTLP over HTTP or HTTPS,
    /// in JSON.
    ///
    /// A story is one trace, from the request through watches and queues to the containers; a request that
    /// comes with a W3C traceparent goes on with that trace. A collector that is away is not waited for:
    /// what is lost is counted (`kubectl get --raw /kubarium/v1/tracing`).
    #[arg(long, value_name = "URL")]
    pub otlp_endpoint: Option<OtlpEndpoint>,
    /// Whom to believe that it is the collector, with https: a file of certificates, PEM; else the system's.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_CERTIFICATE", value_name = "FILE")]
    pub otlp_certificate: Option<PathBuf>,
    /// Hold the cluster between any two steps from when it is ready: `kubarium step` lets them happen.
    ///
    /// What is applied with -f is held, too. Reads and health checks never are.
    #[arg(long)]
    pub step: bool,
    /// Keep headers and bodies of the last writes from the start: `kubarium trace --bodies` shows them.
    ///
    /// Else they are kept while the page is open, while `kubarium trace --bodies --follow` runs, and while
    /// the cluster is stepped. Of secrets and tokens none is kept.
    #[arg(long)]
    pub keep_bodies: bool,
    /// Draw UIDs and names from this seed, the same each time.
    ///
    /// Names that the server generates are the same as long as nothing else is created at the same time.
    #[arg(long, value_parser = values::seed)]
    pub seed: Option<u64>,
    /// By which time it lives: real, stepped, xN, which is N times as fast, or +10m and -10m, which is wrong
    /// by so much.
    ///
    /// A stepped clock stands until `kubarium time` lets it pass. A wrong one is the machine's, ahead or
    /// behind: what a server does among others whose clocks are right.
    #[arg(long, default_value = "real", value_name = "CLOCK", allow_hyphen_values = true)]
    pub clock: ClockChoice,
    /// Where to write a line when all is ready, and everything applied: a file.
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// Where to write that line, too: a file descriptor that is open, as that of a pipe.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(3..))]
    pub ready_fd: Option<i32>,
    /// Components are elsewhere: what they need is there (`kubarium apiserver`).
    #[arg(skip)]
    pub is_for_others: bool,
    /// Sets how much is logged.
    #[arg(skip)]
    pub verbosity: Option<Verbosity>,
    /// What runs.
    #[command(flatten)]
    pub components: ComponentFlags,
    /// On an etcd that several share, who works.
    #[command(flatten)]
    pub election: ElectionFlags,
    /// Of kube-controller-manager.
    #[command(flatten)]
    pub controller_manager: ControllerManagerOptions,
    /// Of kube-scheduler.
    #[command(flatten)]
    pub scheduler: SchedulerOptions,
    /// Of the kubelets.
    #[command(flatten)]
    pub kubelet: KubeletOptions,
    /// Of kube-apiserver.
    #[command(flatten)]
    pub apiserver: ServerRunOptions,
    /// etcd's API.
    #[command(flatten)]
    pub etcd: ListenOptions,
}

impl Up {
    /// What sets how much is logged.
    pub(crate) fn logging(self, verbosity: Verbosity) -> Up {
        Up { verbosity: Some(verbosity), ..self }
    }

    /// Runs until it is told to stop.
    pub fn run(self) -> Result<(), Failure> {
        // Before anything else is opened, which would have its number if nobody else has.
        let ready_fd = self.ready_fd.map(ReadyDescriptor::hold).transpose()?;
        state::check_name(&self.name)?;
        let mut background = detach::background()?;
        let manifests = match &mut background {
            Some(background) => background.take_manifests(),
            None => manifests::read(&self.filename, self.recursive)?,
        };
        if self.detach && background.is_none() {
            return detach::start(&self.name, &manifests);
        }
        raise_file_limit();
        // Whatever is written is for its owner alone: keys, secrets, who did what.
        rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
        let mut claim = state::Claim::take(&self.name)?;
        let log = background.map(|background| background.keep_log(&self.name)).transpose()?;
        if let Some(leftover) = claim.leftover.take() {
            clean(&leftover);
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::new("cannot start", error))?;
        runtime.block_on(self.serve(&claim, (log, ready_fd), &manifests))
    }

    async fn serve(
        self,
        claim: &state::Claim,
        (log, ready_fd): (Option<PathBuf>, Option<ReadyDescriptor>),
        manifests: &[Manifest],
    ) -> Result<(), Failure> {
        let clock = Clock::real();
        let config = self.config()?;
        self.data_dir.as_deref().map_or(Ok(()), data_dir::check)?;
        let mut stop = Stop::listen()?;
        let readiness = Readiness::new(self.ready_file.as_deref(), ready_fd);
        say(format!("kubarium {} starts cluster {:?}", env!("CARGO_PKG_VERSION"), self.name));
        let cluster = tokio::select! {
            started = Cluster::start(config) => started.map_err(|error| Failure(error.to_string()))?,
            // An etcd may be away just now.
            () = stop.wait() => return Ok(()),
        };
        if let Some(recovery) = cluster.recovery() {
            progress::done("recovered", &recovery.to_string());
        }
        let access = cluster.access().ok_or(Failure("the cluster does not listen".into()))?;
        progress::done("apiserver", &access.server);
        for address in cluster.etcd_addresses() {
            progress::done("etcd", &format!("its API is served on {address}"));
        }
        for (component, address) in cluster.component_addresses() {
            progress::done(component, &format!("its pages are served on https://{address}"));
        }
        for (address, target) in cluster.published() {
            progress::done("published", &format!("{address} leads to {target}"));
        }
        self.warn_of_names(&access);
        let written = kubeconfig::write(&self.name, self.kubeconfig.as_deref(), &access)?;
        progress::done("kubeconfig", &format!("{} (context {:?})", written.path.display(), self.name));
        let nodes = u32::try_from(cluster.node_names().len()).unwrap_or(self.nodes);
        let record = state::Record { log, nodes, ..self.record(&access.server, &written.path) };
        let at_work = self.attend(&clock, &cluster, claim, (record, readiness), manifests);
        let outcome = tokio::select! {
            failed = at_work => failed,
            () = stop.wait() => {
                say("Stopping.");
                Ok(())
            }
        };
        let ended = end_unless_told(cluster.stop(), stop.wait(), self.apiserver.shutdown.delay).await;
        let of_forks = fork_contexts::clean_all(&self.name);
        let removed = written.remove();
        outcome.and(ended).and(of_forks).and(removed)
    }

    /// What it is to begin with, if that is said.
    fn read_snapshot(&self) -> Result<Option<Snapshot>, Failure> {
        let snapshot = match (&self.snapshot, &self.etcd_snapshot) {
            (Some(file), _) => Snapshot::read(&run_folder::snapshot_of(file)).map(Some),
            (None, Some(file)) => {
                let prefix = self.apiserver.etcd.root().map_err(|why| Failure(why.to_string()))?;
                let leases = if self.read_only { LeasesOf::Nobody } else { LeasesOf::Snapshot };
                let nodes = (self.nodes(None), self.kubelet.max_pods);
                Snapshot::of_etcd(file, &prefix, leases, nodes).map(Some)
            }
            (None, None) => Ok(None),
        };
        snapshot.map_err(|error| Failure(error.to_string()))
    }

    /// A certificate of the user's own is perhaps not for where the kubeconfig goes.
    fn warn_of_names(&self, access: &Access) {
        let Some(file) = &self.apiserver.secure_serving.tls_cert_file else { return };
        let address = access.server.strip_prefix("https://").and_then(|host| host.parse::<SocketAddr>().ok());
        let (Some(address), Some(pem)) = (address, &access.authority_pem) else { return };
        if let Some(names) = names_instead(pem, address.ip()) {
            say(format!(
                "--tls-cert-file {} is for {}, and not for {}, where the kubeconfig goes: kubectl will refuse it. \
                 Have it made for {} too, or choose --listen.",
                file.display(),
                names.join(", "),
                address.ip(),
                address.ip()
            ));
        }
    }

    /// What the cluster says of itself before anything is applied.
    pub(super) fn record(&self, server: &str, kubeconfig: &Path) -> state::Record {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        state::Record {
            own_kubeconfig: self.kubeconfig.is_some(),
            shutdown_delay: self.apiserver.shutdown.delay,
            data_dir: self.data_dir.as_deref().map(absolute),
            ..state::Record::of_own(&self.name, server, self.nodes(None), kubeconfig)
        }
    }

    /// As many as the snapshot has that it begins with.
    fn nodes(&self, snapshot: Option<&Snapshot>) -> u32 {
        if self.read_only {
            return 0;
        }
        self.components.nodes(snapshot.map_or(self.nodes, Snapshot::nodes))
    }

    /// From ready to the first thing that goes wrong.
    async fn attend(
        &self,
        clock: &Clock,
        cluster: &Cluster,
        claim: &state::Claim,
        (mut record, readiness): (state::Record, Readiness),
        manifests: &[Manifest],
    ) -> Result<(), Failure> {
        let style = Style::of_stdout();
        claim.publish(&record)?;
        progress::done(
            "ready",
            &format!("after {}, {} nodes", progress::milliseconds(clock.elapsed()), record.nodes),
        );
        progress::hint(style);
        if self.step {
            progress::done(
                "held",
                "between two steps: `kubarium step` lets one happen, `kubarium step --help` says more",
            );
        }
        for manifest in manifests {
            let applied = cluster.apply(manifest, |line| {
                progress::done("applied", line);
                record.applied.push(line.to_owned());
            });
            applied.await.map_err(|error| Failure(error.to_string()))?;
        }
        record.ready = true;
        claim.publish(&record)?;
        readiness.tell(&record.server)?;
        if self.ui {
            let link = cluster.open_page().await.map_err(|error| Failure(error.to_string()))?;
            // Who reads the log is not whom it invites.
            let is_read = std::io::stdout().is_terminal();
            progress::done("page", if is_read { &link } else { "kubarium ui prints a link to it" });
        }
        if !manifests.is_empty() {
            progress::show_pods(&cluster.client(), clock, style).await;
        }
        std::future::pending().await
    }

    pub(super) fn config(&self) -> Result<Config, Failure> {
        let selection = self.controller_manager.selection().map_err(|why| Failure(why.into()))?;
        for name in self.apiserver.features.gates.without_effect() {
            say(format!("The feature gate {name} is known, and changes nothing here."));
        }
        let node_groups = self.node_config.as_deref().map(node::read).transpose()?.unwrap_or_default();
        let snapshot = self.read_snapshot()?;
        // Of a real etcd nobody knows that its time was another than the machine's.
        let past = snapshot.as_ref().filter(|_| self.snapshot.is_some()).map(Snapshot::taken);
        Ok(Config {
            nodes: self.nodes(snapshot.as_ref()),
            node_groups,
            snapshot,
            component_ports: self.components.ports,
            components: if self.read_only {
                Components::NONE
            } else {
                self.components.components(&selection)
            },
            leader_election: self.election.times()?,
            read_only: self.read_only,
            apiserver: self.apiserver.clone(),
            controller_manager: self.controller_manager.clone(),
            scheduler: self.scheduler.clone(),
            kubelet: self.kubelet.clone(),
            data_dir: self.data_dir.clone(),
            unsafe_no_fsync: self.unsafe_no_fsync,
            fault_objects: self.fault_objects,
            kwok_kinds: self.enable_crds.clone(),
            system_pods: self.system_pods,
            recover: self.recover,
            default_storage_class: !self.components.apiserver_only || self.is_for_others,
            metrics_server: self.components.metrics_server && !self.components.apiserver_only,
            metrics_adapter: self.components.metrics_adapter && !self.components.apiserver_only,
            listen: Some(Listen { address: self.listen, tls: !self.insecure_http }),
            etcd: self.etcd.clone(),
            publish: self.publish.clone(),
            stages: self.stages.clone(),
            ui_listen: self.ui_listen,
            step: self.step,
            keep_bodies: self.keep_bodies,
            verbosity: self.verbosity.clone(),
            otlp_endpoint: values::collector(self.otlp_endpoint.clone(), self.otlp_certificate.as_deref())?,
            listeners: OwnListeners::new(self.forward_pods),
            clock: self.clock.clock(past),
            entropy: self.seed.map_or_else(Entropy::from_system, Entropy::seeded),
            ..Config::default()
        })
    }
}

/// `--ui-listen`
fn page_listener(text: &str) -> Result<SocketAddr, String> {
    let address = values::listener(text)?;
    if !address.ip().is_loopback() {
        return Err("must be an address of loopback, as 127.0.0.1:8000: the page is for this machine".into());
    }
    Ok(address)
}

/// Takes out what a killed cluster of the same name left. It stops nobody: the new one writes its own.
pub(super) fn clean(leftover: &state::Record) {
    let state::Record { name, kubeconfig, own_kubeconfig, .. } = leftover;
    let of_forks = fork_contexts::clean_all(name);
    let own = kubeconfig::clean(kubeconfig, name, *own_kubeconfig).map(drop);
    for Failure(why) in [of_forks, own].into_iter().filter_map(Result::err) {
        tracing::warn!(why, "what an earlier cluster left could not be cleaned up");
    }
}

/// Ten thousand watches are ten thousand descriptors: as many as the system lets us have.
pub(super) fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}
