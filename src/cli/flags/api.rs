//! Flags about which APIs are served.

use clap::Args;

use crate::apis::runtime_config::RuntimeConfig;
use crate::cli::Failure;

/// Which APIs are served.
#[derive(Args)]
#[command(next_help_heading = "APIs")]
pub struct ApiFlags {
    /// Versions and resources to serve or not: api/legacy=true, apps/v1beta1=true, batch/v1/cronjobs=false.
    #[arg(long, value_delimiter = ',', value_name = "KEY=BOOL", env = "KUBARIUM_RUNTIME_CONFIG")]
    pub runtime_config: Vec<String>,
}

impl ApiFlags {
    /// What the flags say.
    pub fn runtime_config(&self) -> Result<RuntimeConfig, Failure> {
        RuntimeConfig::parse(self.runtime_config.iter().map(String::as_str)).map_err(Failure)
    }
}
