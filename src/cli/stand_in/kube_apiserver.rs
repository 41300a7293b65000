//! kubarium called `kube-apiserver`: the bare apiserver on the store of its `etcd`, or on a real etcd, with
//! upstream's flags and upstream's defaults where those of `kubarium up` suit a whole cluster better.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};

use super::ending::{Ending, PATIENCE};
use super::flags::{Flags, Normal};
use super::place::EtcdStore;
use super::program::{KUBE_APISERVER, log, runtime, said};
use super::selection::{self, Selected};
use super::{serving_files, store};
use crate::cli::outcome::{Failure, say};
use crate::cli::{stop, up};
use crate::cluster::{Cluster, Config, Listen};
use apiserver::authorization::config::{AuthorizationOptions, Mode};
use apiserver::endpoints::routes::debug::Verbosity;
use apiserver::options::ServerRunOptions;
use apiserver::server::{Server, bind};
use apiserver::storage::options::EtcdOptions;
use clock::Clock;
use controllers::options::ControllerManagerOptions;

const UNSERVED: &str = include_str!("kube_apiserver_flags.txt");
/// What kube-apiserver is told when nobody tells it; `kubarium up` has what kubeadm tells it.
const UPSTREAMS_DEFAULTS: &[(&str, &str)] =
    &[("service_cluster_ip_range", "10.0.0.0/24"), ("enable-bootstrap-token-auth", "false")];

/// Validates and configures objects, and serves the API that everybody else speaks.
#[derive(Debug, Parser)]
#[command(name = "kube-apiserver", disable_version_flag = true, args_override_self = true)]
struct KubeApiserver {
    /// The IP address on which to listen for the --secure-port port.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::UNSPECIFIED), value_name = "ADDRESS")]
    bind_address: IpAddr,
    /// The port on which to serve HTTPS.
    #[arg(long, default_value_t = 6443, value_name = "PORT")]
    secure_port: u16,
    /// The directory where the TLS certs are located, apiserver.crt and apiserver.key; made there if they are
    /// not.
    #[arg(long, default_value = "/var/run/kubernetes", value_name = "DIR")]
    cert_dir: PathBuf,
    /// Of kube-apiserver until 1.20, for suites of that time: a port where everybody is an administrator, of
    /// loopback alone. In no help, since envtest gives a port to whoever has it there.
    #[arg(long, default_value_t = 0, hide = true)]
    insecure_port: u16,
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), hide = true)]
    insecure_bind_address: IpAddr,
    #[command(flatten)]
    apiserver: ServerRunOptions,
}

/// Runs until it is told to end.
pub fn run(words: Vec<String>, verbosity: Verbosity) -> Result<(), Failure> {
    let mut command = command();
    let flags = Flags { served: &command, known: UNSERVED, is_plain_go: false };
    let normal = flags.read(words).map_err(|why| Failure(why.into()))?;
    if normal.asks_for_help {
        say(command.render_long_help().to_string());
        return Ok(());
    }
    if normal.asks_for_version {
        say("Kubernetes v1.36.2");
        return Ok(());
    }
    for flag in &normal.ignored {
        log(format!("{flag} is known, and changes nothing here"));
    }
    let server = KubeApiserver::parse(&mut command, normal)?;
    let selected = selection::parse(&std::env::var(selection::VARIABLE).unwrap_or_default())?;
    up::raise_file_limit();
    // Whatever is written is for its owner alone: keys, secrets, who did what.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    runtime()?.block_on(server.serve(selected, verbosity))
}

fn command() -> clap::Command {
    UPSTREAMS_DEFAULTS.iter().fold(KubeApiserver::command(), |command, (id, value)| {
        command.mut_arg(id, |arg| arg.default_value(*value))
    })
}

impl KubeApiserver {
    fn parse(command: &mut clap::Command, normal: Normal) -> Result<KubeApiserver, Failure> {
        let words = std::iter::once(KUBE_APISERVER.to_owned()).chain(normal.words);
        let matches = command.try_get_matches_from_mut(words).map_err(|error| said(&error))?;
        let mut server = KubeApiserver::from_arg_matches(&matches).map_err(|error| said(&error))?;
        server.default_mode(&matches);
        server.default_plugins();
        Ok(server)
    }

    /// Upstream's default, unless a file says who is asked.
    fn default_mode(&mut self, matches: &ArgMatches) {
        let is_said = |id| matches.value_source(id).is_some_and(|source| source != ValueSource::DefaultValue);
        if !is_said("authorization-mode") && !is_said("authorization-config") {
            self.apiserver.authorization.modes = Some(vec![Mode::AlwaysAllow]);
        }
    }

    /// Every installer asks for it, and so kubarium has it on; upstream's kube-apiserver alone has not.
    fn default_plugins(&mut self) {
        const PLUGIN: &str = "NodeRestriction";
        let admission = &mut self.apiserver.admission;
        if !admission.enable.iter().any(|name| name == PLUGIN) {
            admission.disable.push(PLUGIN.into());
        }
    }

    async fn serve(self, selected: Selected, verbosity: Verbosity) -> Result<(), Failure> {
        let mut ending = Ending::listen()?;
        let delay = self.apiserver.shutdown.delay;
        let (cluster, plain) = tokio::select! {
            started = self.start(selected, verbosity) => started?,
            () = ending.wait() => return Ok(()),
        };
        ending.wait().await;
        let stopping = async {
            drop(plain);
            cluster.stop().await;
        };
        // Whoever keeps a watch open is not waited for; what was answered is in the store.
        let clock = Clock::real();
        stop::end_unless_told(clock.timeout(PATIENCE + delay, stopping), ending.wait(), delay).await
    }

    async fn start(
        mut self,
        selected: Selected,
        verbosity: Verbosity,
    ) -> Result<(Cluster, Option<Server>), Failure> {
        let store = store::ask(&self.apiserver.etcd.servers).await?;
        let service = self.apiserver.services.service_cluster_ip_range.api_server();
        let addresses = [self.bind_address, service];
        serving_files::complete(&mut self.apiserver.secure_serving, &self.cert_dir, addresses)?;
        let mut config = self.config(store.as_ref(), selected)?;
        config.verbosity = Some(verbosity);
        let cluster = store::start(config).await?;
        let plain = self.listen_without_tls(&cluster).await?;
        if let Some(address) = cluster.address() {
            log(format!("Serving securely on {address}"));
        }
        Ok((cluster, plain))
    }

    fn config(&self, store: Option<&EtcdStore>, selected: Selected) -> Result<Config, Failure> {
        let Selected { components, controllers } = selected;
        let mut controller_manager = ControllerManagerOptions::default();
        if !controllers.is_empty() {
            controller_manager.controllers = controllers;
        }
        controller_manager.selection().map_err(|why| Failure(why.into()))?;
        let mut apiserver = self.apiserver.clone();
        let data_dir = store.map(|store| store.folder(&apiserver.etcd.prefix));
        if store.is_some() {
            // Its data dir is used, and not its API.
            apiserver.etcd = EtcdOptions::default();
        }
        if components.kubelets {
            let_nodes_in(&mut apiserver.authorization);
        }
        Ok(Config {
            nodes: u32::from(components.kubelets),
            components,
            apiserver,
            controller_manager,
            data_dir,
            unsafe_no_fsync: store.is_some_and(|store| store.unsafe_no_fsync),
            default_storage_class: components.controllers,
            listen: Some(Listen { address: SocketAddr::new(self.bind_address, self.secure_port), tls: true }),
            ..Config::default()
        })
    }

    async fn listen_without_tls(&self, cluster: &Cluster) -> Result<Option<Server>, Failure> {
        let address = SocketAddr::new(self.insecure_bind_address, self.insecure_port);
        if self.insecure_port == 0 {
            return Ok(None);
        }
        if !address.ip().is_loopback() {
            return Err(Failure(format!(
                "--insecure-bind-address {}: everybody who reaches it is an administrator; must be a loopback \
                 address, as 127.0.0.1",
                address.ip()
            )));
        }
        let failed = |error| Failure::new(format!("--insecure-port {}", address.port()), error);
        let listener = bind(address).await.map_err(failed)?;
        Server::start(listener, None, cluster.service()).map(Some).map_err(failed)
    }
}

/// Suites ask for RBAC alone, which knows no nodes: those that run here are let in by who knows them.
fn let_nodes_in(authorization: &mut AuthorizationOptions) {
    let is_meant = |modes: &&mut Vec<Mode>| modes.contains(&Mode::Rbac) && !modes.contains(&Mode::Node);
    if let Some(modes) = authorization.modes.as_mut().filter(is_meant) {
        modes.insert(0, Mode::Node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::stand_in::flags::RefusedFlag;

    fn read(words: &[&str]) -> Result<Normal, RefusedFlag> {
        let served = command();
        let flags = Flags { served: &served, known: UNSERVED, is_plain_go: false };
        flags.read(words.iter().map(|word| (*word).to_owned()))
    }

    fn parsed(words: &[&str]) -> Result<KubeApiserver, String> {
        let normal = read(words)?;
        KubeApiserver::parse(&mut command(), normal).map_err(|Failure(why)| why)
    }

    #[test]
    fn defaults_are_upstreams() {
        let server = parsed(&[]).unwrap();
        assert_eq!((server.bind_address, server.secure_port), (IpAddr::from([0, 0, 0, 0]), 6443));
        assert_eq!(server.apiserver.authorization.modes(), [Mode::AlwaysAllow]);
        let range = server.apiserver.services.service_cluster_ip_range.primary;
        assert_eq!(range.to_string(), "10.0.0.0/24");
        assert!(!server.apiserver.authentication.bootstrap_tokens);
        assert_eq!(server.apiserver.admission.disable, ["NodeRestriction"]);
        let asked = parsed(&["--enable-admission-plugins=NodeRestriction"]).unwrap();
        assert!(asked.apiserver.admission.disable.is_empty());
        let said = parsed(&["--authorization-mode", "RBAC,Node"]).unwrap();
        assert_eq!(said.apiserver.authorization.modes(), [Mode::Rbac, Mode::Node]);
        let by_file = parsed(&["--authorization-config=/file"]).unwrap();
        assert_eq!(by_file.apiserver.authorization.modes, None);
    }

    #[test]
    fn what_suites_pass_is_taken() {
        let fabric8 = [
            "--cert-dir",
            "/c",
            "--secure-port",
            "1",
            "--etcd-servers",
            "http://0.0.0.0:2",
            "--authorization-mode",
            "RBAC",
            "--service-account-issuer",
            "https://localhost",
            "--service-account-signing-key-file",
            "/k",
            "--service-account-signing-key-file",
            "/k",
            "--service-account-key-file",
            "/k",
            "--service-account-issuer",
            "/crt",
            "--disable-admission-plugins",
            "ServiceAccount",
            "--client-ca-file",
            "/c",
            "--service-cluster-ip-range",
            "10.0.0.0/24",
            "--allow-privileged",
        ];
        let server = parsed(&fabric8).unwrap();
        assert_eq!(
            (server.secure_port, server.apiserver.etcd.servers),
            (1, vec!["http://0.0.0.0:2".to_owned()])
        );
        for word in
            ["--v=5", "--watch-cache=false", "--storage-backend=etcd3", "--insecure-port=0", "--event-ttl=2h"]
        {
            assert!(parsed(&[word]).is_ok(), "{word}");
        }
        let twice = ["--feature-gates=A=true", "--feature-gates=B=true"];
        assert!(parsed(&twice).unwrap_err().contains("unrecognized feature gate"), "both are read");
    }

    #[test]
    fn what_is_only_known_is_not_served_and_stands_in_order() {
        let command = command();
        let served: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
        let names: Vec<&str> = UNSERVED.lines().filter_map(|line| line.split(' ').next()).collect();
        assert!(names.is_sorted(), "out of order");
        let both: Vec<_> = names.iter().filter(|name| served.contains(name)).collect();
        assert!(both.is_empty(), "served, too: {both:?}");
    }

    #[test]
    fn the_help_gives_envtest_no_reason_to_pass_an_insecure_port() {
        let help = command().render_long_help().to_string();
        assert!(help.contains("--secure-port") && !help.contains("--insecure-port"));
    }
}
