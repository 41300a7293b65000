//! `kubarium kubelet`: simulated nodes, whose apiserver is elsewhere.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use clap::Args;
use clap::builder::ArgPredicate;

use super::connecting::{ConnectedApi, ConnectionFlags};
use super::serving::{ServingFlags, authority_of};
use super::{block_on, failed};
use crate::cli::flags::values;
use crate::cli::node;
use crate::cli::outcome::{Failure, say};
use crate::cli::stop::Stop;
use crate::cluster::apart::SpeaksAs;
use crate::cluster::apart::component::{Apart, ApartKeys, KubeletListen};
use crate::cluster::apart::remote::RequestLimits;
use crate::cluster::{Components, Config};
use apiserver::registry::service::ServiceOptions;
use kubelet::node_group::NodeGroup;
use kubelet::options::KubeletOptions;

const NAME: &str = "kubelet";
/// Upstream's `kubeAPIQPS` and `kubeAPIBurst`, for each node.
const LIMITS: RequestLimits = RequestLimits { qps: 50.0, burst: 100 };

/// Run simulated nodes of a cluster whose apiserver is elsewhere.
#[derive(Args)]
pub struct KubeletCommand {
    /// How many simulated nodes.
    #[arg(long, default_value_t = 1, default_value_if("node_config", ArgPredicate::IsPresent, "0"),
        value_parser = values::nodes)]
    pub nodes: u32,
    /// The node's name; with several, what their names begin with. Without, node-1 and on.
    #[arg(long, value_name = "NAME", conflicts_with = "node_config")]
    pub hostname_override: Option<String>,
    /// A file of nodes that are not all alike: labels, zones, taints, capacity, versions, in groups.
    #[arg(long, value_name = "FILE")]
    pub node_config: Option<PathBuf>,
    /// Where the kubelets listen, for logs, exec and their like; other machines need another one.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), value_name = "ADDRESS")]
    pub address: IpAddr,
    /// The port of the first node, of which the others have the next ones; 0 takes free ones.
    #[arg(long, default_value_t = 0, value_name = "PORT")]
    pub port: u16,
    /// Whose client certificates are believed there; without, those of the kubeconfig's authority.
    #[arg(long, value_name = "FILE")]
    pub client_ca_file: Option<PathBuf>,
    /// What the kubelets show there.
    #[command(flatten)]
    pub serving: ServingFlags,
    /// A folder of stages: what the simulated kubelets do with pods, beside the built-in ones.
    #[arg(long, value_name = "DIR")]
    pub stages: Option<PathBuf>,
    /// Which apiserver. Its user is the node, or may impersonate all of them, as an administrator may.
    #[command(flatten)]
    pub connection: ConnectionFlags,
    /// Addresses of Services, as the apiserver has them: pods find the name server by them.
    #[command(flatten)]
    pub services: ServiceOptions,
    /// What the kubelets are told.
    #[command(flatten)]
    pub kubelet: KubeletOptions,
}

impl KubeletCommand {
    /// Runs until it is told to end.
    pub fn run(self) -> Result<(), Failure> {
        block_on(self.serve())
    }

    async fn serve(self) -> Result<(), Failure> {
        let mut stop = Stop::listen()?;
        let config = self.config()?;
        let ConnectedApi { api, authority } =
            self.connection.connect(NAME, SpeaksAs::Others, LIMITS, &config.clock)?;
        let authority = authority_of(self.client_ca_file.as_deref(), &authority)?;
        let begun = tokio::select! {
            begun = self.begin(config, api, &authority) => begun?,
            () = stop.wait() => return Ok(()),
        };
        let nodes = begun.nodes();
        say(format!("{} nodes run, {} and on.", nodes.len(), nodes.first().map_or("none", String::as_str)));
        stop.wait().await;
        begun.stop();
        Ok(())
    }

    async fn begin(
        &self,
        config: Config,
        api: crate::cluster::apart::remote::RemoteApi,
        authority: &str,
    ) -> Result<Apart, Failure> {
        let mut apart = Apart::connect(config, api, ApartKeys::default()).await.map_err(failed)?;
        let identity = self.serving.identity()?;
        let listen = KubeletListen { address: self.address, port: self.port, identity };
        apart.begin_kubelets(listen, authority).await.map_err(failed)?;
        Ok(apart)
    }

    fn config(&self) -> Result<Config, Failure> {
        let mut groups = self.node_config.as_deref().map(node::read).transpose()?.unwrap_or_default();
        let mut nodes = self.nodes;
        if let Some(name) = &self.hostname_override {
            let count = Some(nodes).filter(|count| *count != 1);
            groups.push(NodeGroup { name: name.clone(), count, ..NodeGroup::default() });
            nodes = 0;
        }
        let config = Config::new().nodes(nodes).node_groups(groups).flow(false);
        let mut config = config.components(Components::NONE.kubelets(true)).kubelet(self.kubelet.clone());
        config.stages = self.stages.clone();
        config.apiserver.services = self.services;
        Ok(config)
    }
}
