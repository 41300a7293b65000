//! The flags of where objects are kept (`options.EtcdOptions`).

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use apimachinery::duration::parse_flag;
use component_base::flags::defaults;
use etcd_client::EtcdEndpoint;

/// A flag that says something wrong, and what it may say.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct EtcdFlagError(String);

/// An etcd that is not ours.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "etcd")]
pub struct EtcdOptions {
    /// Keep the objects in an etcd at these URLs, and not in the data dir: as http://127.0.0.1:2379 or
    /// https://HOST:2379, several with commas. Others may use it, too, and other servers may serve the same
    /// cluster.
    #[arg(id = "etcd-servers", long, value_delimiter = ',', value_name = "URL")]
    pub servers: Vec<String>,
    /// What keys begin with in that etcd.
    #[arg(id = "etcd-prefix", long, default_value = "/registry", value_name = "PREFIX")]
    pub prefix: String,
    /// Who signs the certificates of that etcd, PEM; the system's authorities if it is not said.
    #[arg(id = "etcd-cafile", long, value_name = "FILE")]
    pub cafile: Option<PathBuf>,
    /// The certificate that is shown to that etcd, PEM.
    #[arg(id = "etcd-certfile", long, value_name = "FILE", requires = "etcd-keyfile")]
    pub certfile: Option<PathBuf>,
    /// Its private key, PEM.
    #[arg(id = "etcd-keyfile", long, value_name = "FILE", requires = "etcd-certfile")]
    pub keyfile: Option<PathBuf>,
    /// How often the history of the store is compacted; 0 is never.
    #[arg(id = "etcd-compaction-interval", long, default_value = "5m", value_parser = parse_flag)]
    pub compaction_interval: Duration,
    /// How long the health check waits for an etcd.
    #[arg(id = "etcd-healthcheck-timeout", long, default_value = "2s", value_parser = parse_flag)]
    pub healthcheck_timeout: Duration,
}

impl Default for EtcdOptions {
    fn default() -> EtcdOptions {
        defaults()
    }
}

impl EtcdOptions {
    /// Whether the objects are kept in an etcd.
    pub fn is_used(&self) -> bool {
        !self.servers.is_empty()
    }

    /// Its members.
    ///
    /// # Errors
    /// Which URL is none, and what it may be.
    pub fn endpoints(&self) -> Result<Vec<EtcdEndpoint>, EtcdFlagError> {
        let parsed = self.servers.iter().map(|server| server.trim().parse());
        let parsed: Result<Vec<EtcdEndpoint>, String> = parsed.collect();
        parsed.map_err(|why| EtcdFlagError(format!("--etcd-servers {why}")))
    }

    /// What keys begin with, as `/registry`.
    ///
    /// # Errors
    /// There is nothing but slashes.
    pub fn root(&self) -> Result<String, EtcdFlagError> {
        let bare = self.prefix.trim_matches('/');
        if bare.is_empty() {
            return Err(EtcdFlagError(format!(
                "--etcd-prefix {:?}: must be a word, as /registry",
                self.prefix
            )));
        }
        Ok(format!("/{bare}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_the_prefix_are_read_or_refused() {
        let of = |servers: &[&str], prefix: &str| EtcdOptions {
            servers: servers.iter().map(|server| (*server).to_owned()).collect(),
            prefix: prefix.into(),
            ..EtcdOptions::default()
        };
        let good = of(&["http://127.0.0.1:2379", " https://[::1]:1/", "etcd:2379"], "kube/");
        let shown: Vec<String> = good.endpoints().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["http://127.0.0.1:2379", "https://[::1]:1", "http://etcd:2379"]);
        assert_eq!(good.root().unwrap(), "/kube");
        assert!(good.is_used() && !EtcdOptions::default().is_used());
        for server in ["", "http://", "http://host", "unix://a:1", "http://a/b:1", "http://:1"] {
            let refused = of(&[server], "/a").endpoints().unwrap_err().to_string();
            assert!(refused.contains("must be as http://127.0.0.1:2379"), "{refused}");
        }
        assert!(of(&[], "//").root().unwrap_err().to_string().contains("must be a word"));
    }
}
