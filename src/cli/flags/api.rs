//! Flags about which APIs are served.

use std::path::PathBuf;

use clap::Args;

use super::values;
use crate::cli::Failure;
use apis::runtime_config::RuntimeConfig;
use apiserver::filters::browsers::BrowserConfig;
use apiserver::flow_control::config::FlowControlConfig;

/// Which APIs are served.
#[derive(Args)]
#[command(next_help_heading = "APIs")]
pub struct ApiFlags {
    /// Versions and resources to serve or not: api/legacy=true, apps/v1beta1=true, batch/v1/cronjobs=false.
    #[arg(long, value_delimiter = ',', value_name = "KEY=BOOL", env = "KUBARIUM_RUNTIME_CONFIG",
        value_parser = values::runtime_config)]
    pub runtime_config: Vec<String>,
    /// Reads that are worked on at once; 0 is no limit. Without priority and fairness; with it, this and the
    /// next add up to what all priority levels share.
    #[arg(long, value_name = "N", default_value_t = 400, env = "KUBARIUM_MAX_REQUESTS_INFLIGHT")]
    pub max_requests_inflight: u32,
    /// The same of writes.
    #[arg(long, value_name = "N", default_value_t = 200, env = "KUBARIUM_MAX_MUTATING_REQUESTS_INFLIGHT")]
    pub max_mutating_requests_inflight: u32,
    /// Whether requests take turns by FlowSchemas and priority levels.
    #[arg(
        long,
        action = clap::ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        env = "KUBARIUM_ENABLE_PRIORITY_AND_FAIRNESS"
    )]
    pub enable_priority_and_fairness: bool,
    /// Web pages of these origins may ask: regular expressions of whole origins, as //example\.com(:|$).
    #[arg(long, value_delimiter = ',', value_name = "REGEXP", env = "KUBARIUM_CORS_ALLOWED_ORIGINS")]
    pub cors_allowed_origins: Vec<String>,
    /// Directives that make browsers come over TLS only: max-age=31536000,includeSubDomains,preload.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "DIRECTIVE",
        env = "KUBARIUM_STRICT_TRANSPORT_SECURITY_DIRECTIVES"
    )]
    pub strict_transport_security_directives: Vec<String>,
    /// The certificate by which aggregated servers know this one, and believe whom it names.
    #[arg(
        long,
        value_name = "FILE",
        requires = "proxy_client_key_file",
        env = "KUBARIUM_PROXY_CLIENT_CERT_FILE"
    )]
    pub proxy_client_cert_file: Option<PathBuf>,
    /// Its key.
    #[arg(
        long,
        value_name = "FILE",
        requires = "proxy_client_cert_file",
        env = "KUBARIUM_PROXY_CLIENT_KEY_FILE"
    )]
    pub proxy_client_key_file: Option<PathBuf>,
}

impl ApiFlags {
    /// How many requests are worked on at once.
    pub fn flow_control(&self) -> FlowControlConfig {
        FlowControlConfig {
            priority_and_fairness: self.enable_priority_and_fairness,
            max_requests: self.max_requests_inflight.into(),
            max_mutating_requests: self.max_mutating_requests_inflight.into(),
        }
    }

    /// What browsers are told.
    pub fn browsers(&self) -> Result<BrowserConfig, Failure> {
        BrowserConfig::new(&self.cors_allowed_origins, &self.strict_transport_security_directives)
            .map_err(Failure)
    }

    /// What aggregated servers are shown.
    pub fn proxy_client(&self) -> Option<[PathBuf; 2]> {
        Some([self.proxy_client_cert_file.clone()?, self.proxy_client_key_file.clone()?])
    }

    /// What the flags say.
    pub fn runtime_config(&self) -> Result<RuntimeConfig, Failure> {
        RuntimeConfig::parse(self.runtime_config.iter().map(String::as_str)).map_err(Failure)
    }
}
