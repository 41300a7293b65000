//! `kubarium controller-manager`: kube-controller-manager, whose apiserver is elsewhere.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{ArgAction, Args};

use super::block_on;
use super::connecting::ConnectionFlags;
use super::leading::{LeaderFlags, LedComponent, LedFlags};
use super::serving::{PageFlags, read};
use crate::cli::outcome::Failure;
use crate::cluster::apart::SpeaksAs;
use crate::cluster::apart::component::ApartKeys;
use crate::cluster::apart::remote::RequestLimits;
use crate::cluster::{Components, Config};
use apiserver::endpoints::routes::debug::Verbosity;
use apiserver::options::FeatureOptions;
use controllers::options::ControllerManagerOptions;
use pki::{Authority, AuthorityKeys};

const CONTROLLER_MANAGER: LedComponent = LedComponent {
    name: "kube-controller-manager",
    source: "kube-controller-manager",
    lost: "leaderelection lost",
    port: 10257,
    limits: RequestLimits { qps: 20.0, burst: 30 },
};

/// Run the controllers of a cluster whose apiserver is elsewhere.
#[derive(Args)]
pub struct ControllerManagerCommand {
    /// Which apiserver.
    #[command(flatten)]
    pub connection: ConnectionFlags,
    /// Whether each controller asks as its account in kube-system, with a token that it gets; else all ask
    /// as the kubeconfig's user, who then needs all their rights.
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_missing_value = "true", help_heading = "The apiserver")]
    pub use_service_account_credentials: bool,
    /// The certificate that pods get to trust the apiserver by; without, the kubeconfig's.
    #[arg(long, value_name = "FILE", help_heading = "Keys")]
    pub root_ca_file: Option<PathBuf>,
    /// The authority that signs CertificateSigningRequests, as DATA_DIR/pki/ca.crt; without, none is signed.
    #[arg(long, value_name = "FILE", requires = "cluster_signing_key_file", help_heading = "Keys")]
    pub cluster_signing_cert_file: Option<PathBuf>,
    /// Its key, as DATA_DIR/pki/ca.key.
    #[arg(long, value_name = "FILE", requires = "cluster_signing_cert_file", help_heading = "Keys")]
    pub cluster_signing_key_file: Option<PathBuf>,
    /// The key that signs the tokens of Secrets, as DATA_DIR/pki/sa.key; without, they get none.
    #[arg(long, value_name = "FILE", help_heading = "Keys")]
    pub service_account_private_key_file: Option<PathBuf>,
    /// Who leads.
    #[command(flatten)]
    pub election: LeaderFlags,
    /// Its pages.
    #[command(flatten)]
    pub pages: PageFlags,
    /// Which features there are.
    #[command(flatten)]
    pub features: FeatureOptions,
    /// What the controllers are told.
    #[command(flatten)]
    pub controllers: ControllerManagerOptions,
}

impl ControllerManagerCommand {
    /// Runs until it is told to end, or the Lease is lost.
    pub fn run(self, verbosity: Verbosity) -> Result<(), Failure> {
        self.controllers.selection().map_err(|why| Failure(why.into()))?;
        let speaks_as =
            if self.use_service_account_credentials { SpeaksAs::Accounts } else { SpeaksAs::Itself };
        let flags = LedFlags {
            connection: &self.connection,
            election: &self.election,
            pages: &self.pages,
            verbosity,
        };
        let keys = |authority: &str| self.keys(authority);
        block_on(CONTROLLER_MANAGER.run(flags, self.config(), speaks_as, keys))
    }

    fn config(&self) -> Config {
        let mut config = Config::new().nodes(0).flow(false).components(Components::NONE.controllers(true));
        config.controller_manager = self.controllers.clone();
        config.apiserver.features = self.features.clone();
        config
    }

    fn keys(&self, authority: &str) -> Result<ApartKeys, Failure> {
        let root_ca = self.root_ca_file.as_deref().map(|file| read("--root-ca-file", file)).transpose()?;
        let token_key = self.service_account_private_key_file.as_deref();
        let token_key = token_key.map(|file| read("--service-account-private-key-file", file)).transpose()?;
        Ok(ApartKeys {
            root_ca: root_ca.unwrap_or_else(|| authority.to_owned()),
            authority: self.signing()?.map(Arc::new),
            token_key,
        })
    }

    fn signing(&self) -> Result<Option<Authority>, Failure> {
        let files = self.cluster_signing_cert_file.as_deref().zip(self.cluster_signing_key_file.as_deref());
        let Some((certificate, key)) = files else { return Ok(None) };
        let keys = AuthorityKeys {
            certificate_pem: read("--cluster-signing-cert-file", certificate)?,
            key_pem: read("--cluster-signing-key-file", key)?,
            signing_key_pem: String::new(),
        };
        let made = Authority::of_keys(&keys, &certificate.display().to_string());
        made.map(Some).map_err(|error| Failure(error.to_string()))
    }
}
