//! Flags of components in processes of their own: which apiserver they ask, as whom, and how often.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::failed;
use crate::cli::kubeconfig::current;
use crate::cli::outcome::Failure;
use crate::cluster::apart::SpeaksAs;
use crate::cluster::apart::remote::{RemoteApi, RequestLimits};
use apiserver::webhook::ClientConfig;
use clock::Clock;

/// The context that `kubarium apiserver` writes among others.
const CONTEXT: &str = "kubarium";

/// Which apiserver.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "The apiserver")]
pub struct ConnectionFlags {
    /// The kubeconfig of the apiserver; without, kubectl's own ($KUBECONFIG, else ~/.kube/config), and there
    /// the context kubarium, which `kubarium apiserver` writes.
    ///
    /// Its user has a certificate, a token or a tokenFile; programs that give credentials are not run.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Its context; without, the current one of a file that is named.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// So many requests in a second, of each user; 0 is no limit. Upstream's default of the component.
    #[arg(long, value_name = "N", value_parser = qps)]
    pub kube_api_qps: Option<f64>,
    /// So many at once.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub kube_api_burst: Option<u32>,
}

/// What of a kubeconfig others need, too.
pub(super) struct ConnectedApi {
    /// The way to the apiserver.
    pub(super) api: RemoteApi,
    /// Who has signed its certificate, PEM; empty where that is nobody's to say.
    pub(super) authority: String,
}

impl ConnectionFlags {
    /// Reads the kubeconfig; nobody is asked yet.
    pub(super) fn connect(
        &self,
        user_agent: &'static str,
        speaks_as: SpeaksAs,
        defaults: RequestLimits,
        clock: &Clock,
    ) -> Result<ConnectedApi, Failure> {
        let files = self.kubeconfig.clone().map_or_else(current::users_files, |file| vec![file]);
        // kubectl's current context may be any cluster's, where nobody wants other controllers.
        let own = self.kubeconfig.is_none().then_some(CONTEXT);
        let context = self.context.as_deref().or(own);
        if files.is_empty() {
            return Err(Failure("HOME is not set; name a kubeconfig with --kubeconfig FILE".into()));
        }
        let mut config = ClientConfig::from_kubeconfigs(&files, context).map_err(failed)?;
        config.user_agent = user_agent;
        let authority = String::from_utf8_lossy(&config.ca_bundle).into_owned();
        let limits = RequestLimits {
            qps: self.kube_api_qps.unwrap_or(defaults.qps),
            burst: self.kube_api_burst.unwrap_or(defaults.burst),
        };
        Ok(ConnectedApi { api: RemoteApi::new(config, speaks_as, limits, clock, tell), authority })
    }
}

/// Says a line on the standard error.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// `--kube-api-qps`
fn qps(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate >= 0.0);
    rate.ok_or_else(|| "must be a number that is not below 0, as 50".into())
}
