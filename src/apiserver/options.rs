//! The options of kube-apiserver (`cmd/kube-apiserver/app/options.ServerRunOptions`): a struct for each area,
//! in the room that it is about, and all of them here. A flag is a field there, with its doc comment as help,
//! and its use.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use clap::Args;

use super::admission::AdmissionOptions;
use super::aggregator::ProxyClientOptions;
use super::audit::AuditOptions;
use super::authentication::AuthenticationOptions;
use super::authorization::config::AuthorizationOptions;
use super::endpoints::routes::debug::DebuggingOptions;
use super::filters::browsers::BrowserOptions;
use super::flow_control::config::FlowControlOptions;
use super::kubelet_options::KubeletClientOptions;
use super::registry::service::ServiceOptions;
use super::server::secure_serving::SecureServingOptions;
use super::shutdown::ShutdownOptions;
use super::storage::encryption::options::EncryptionOptions;
use super::storage::options::EtcdOptions;
use apimachinery::duration::parse_flag;
use apimachinery::feature_gates::FeatureGates;
use apis::runtime_config::{BadRuntimeConfig, RuntimeConfig};
use component_base::flags::{defaults, nearest};
use component_base::zpages::flags_of;

/// What kube-apiserver is told.
#[derive(Args, Clone, Debug)]
#[non_exhaustive]
pub struct ServerRunOptions {
    /// Addresses of Services.
    #[command(flatten)]
    pub services: ServiceOptions,
    /// The certificate that is shown.
    #[command(flatten)]
    pub secure_serving: SecureServingOptions,
    /// How long events are kept; 0 keeps them for ever.
    #[arg(long, default_value = "1h", help_heading = "APIs", value_parser = parse_flag)]
    pub event_ttl: Duration,
    /// The form in which objects are kept; what is there is read in any.
    #[arg(long, default_value = "application/json", help_heading = "APIs", value_name = "MEDIA_TYPE",
        value_parser = ["application/json", PROTOBUF])]
    pub storage_media_type: String,
    /// Which APIs are served.
    #[command(flatten)]
    pub api_enablement: ApiEnablementOptions,
    /// How many requests are worked on at once.
    #[command(flatten)]
    pub flow_control: FlowControlOptions,
    /// How it ends.
    #[command(flatten)]
    pub shutdown: ShutdownOptions,
    /// What is shown for debugging.
    #[command(flatten)]
    pub debugging: DebuggingOptions,
    /// What browsers are told.
    #[command(flatten)]
    pub browsers: BrowserOptions,
    /// What aggregated servers are shown.
    #[command(flatten)]
    pub proxy_client: ProxyClientOptions,
    /// How kubelets in other processes are reached.
    #[command(flatten)]
    pub kubelet_client: KubeletClientOptions,
    /// What may come in.
    #[command(flatten)]
    pub admission: AdmissionOptions,
    /// Which features there are.
    #[command(flatten)]
    pub features: FeatureOptions,
    /// Who may come in.
    #[command(flatten)]
    pub authentication: AuthenticationOptions,
    /// Who may do what.
    #[command(flatten)]
    pub authorization: AuthorizationOptions,
    /// Who did what.
    #[command(flatten)]
    pub audit: AuditOptions,
    /// How objects are kept.
    #[command(flatten)]
    pub encryption: EncryptionOptions,
    /// Where objects are kept.
    #[command(flatten)]
    pub etcd: EtcdOptions,
}

/// What upstream keeps objects as by default.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

impl ServerRunOptions {
    /// Which flags there are, and what they are.
    pub(crate) fn flags(&self) -> BTreeMap<String, String> {
        flags_of(self)
    }

    /// Whether objects are kept as protobuf.
    pub fn stores_protobuf(&self) -> bool {
        self.storage_media_type == PROTOBUF
    }
}

impl Default for ServerRunOptions {
    /// Worked out once: it takes longer than all else of making a config.
    fn default() -> ServerRunOptions {
        static DEFAULTS: LazyLock<ServerRunOptions> = LazyLock::new(defaults);
        DEFAULTS.clone()
    }
}

/// Which APIs are served (`APIEnablementOptions`).
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "APIs")]
pub struct ApiEnablementOptions {
    /// Versions and resources to serve or not: api/legacy=true, apps/v1beta1=true, batch/v1/cronjobs=false.
    #[arg(long, value_delimiter = ',', value_name = "KEY=BOOL", value_parser = runtime_config)]
    pub runtime_config: Vec<String>,
}

impl ApiEnablementOptions {
    /// What the flag says.
    ///
    /// # Errors
    /// As [`RuntimeConfig::parse`].
    pub fn complete(&self) -> Result<RuntimeConfig, BadRuntimeConfig> {
        RuntimeConfig::parse(self.runtime_config.iter().map(String::as_str))
    }
}

/// Which features there are.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Admission")]
pub struct FeatureOptions {
    /// Features to switch on or off, as Initializers=true.
    #[arg(
        id = "feature-gates",
        long,
        default_value = "",
        value_name = "NAME=BOOL,...",
        value_parser = feature_gates,
        hide_default_value = true
    )]
    pub gates: FeatureGates,
}

/// An entry of `--runtime-config`.
fn runtime_config(text: &str) -> Result<String, String> {
    const FORMS: &str = "must be GROUP/VERSION=BOOL, GROUP/VERSION/RESOURCE=BOOL, or one of api/all, api/ga, \
                         api/beta, api/alpha and api/legacy with =BOOL";
    match RuntimeConfig::parse([text]) {
        Ok(_) => Ok(text.to_owned()),
        Err(why) => {
            let group = text.split(['/', '=']).next().unwrap_or_default();
            let near = nearest(group, &RuntimeConfig::groups());
            let tip = match near.as_slice() {
                [] => String::new(),
                near => format!("; a group of a similar name: {}", near.join(", ")),
            };
            Err(format!("{why}; {FORMS}{tip}"))
        }
    }
}

/// `--feature-gates`
fn feature_gates(text: &str) -> Result<FeatureGates, String> {
    FeatureGates::parse(text).map_err(|why| {
        let names = FeatureGates::names();
        let unknown = text.split(',').filter_map(|pair| pair.split('=').next()).map(str::trim);
        let near: Vec<&str> = unknown
            .filter(|name| !name.is_empty() && !names.contains(name))
            .flat_map(|name| nearest(name, &names))
            .collect();
        let tip = match near.as_slice() {
            [] => String::new(),
            near => format!("; did you mean {}?", near.join(" or ")),
        };
        format!("{why}; must be NAME=true or NAME=false, several with commas{tip}")
    })
}
