//! Flags of encryption at rest.

use std::fs;
use std::path::PathBuf;

use clap::{ArgAction, Args};

use crate::cli::Failure;
use apiserver::storage::encryption::{Encryption, Mistake};

/// How objects are kept.
#[derive(Args)]
#[command(next_help_heading = "Encryption at rest")]
pub struct EncryptionFlags {
    /// A file with an EncryptionConfiguration: which resources are encrypted in the data dir, and how.
    #[arg(long, value_name = "FILE", env = "KUBARIUM_ENCRYPTION_PROVIDER_CONFIG")]
    pub encryption_provider_config: Option<PathBuf>,
    /// Look at that file again once a minute, and follow it when it has changed.
    #[arg(long, env = "KUBARIUM_ENCRYPTION_PROVIDER_CONFIG_AUTOMATIC_RELOAD", default_value_t = false,
        action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub encryption_provider_config_automatic_reload: bool,
}

impl EncryptionFlags {
    /// What the flag says.
    pub fn encryption(&self) -> Result<Encryption, Failure> {
        let Some(path) = &self.encryption_provider_config else {
            if self.encryption_provider_config_automatic_reload {
                return Err(Failure(
                    "--encryption-provider-config-automatic-reload must be set with \
                     --encryption-provider-config"
                        .into(),
                ));
            }
            return Ok(Encryption::default());
        };
        let shown = format!("{:?}", path.display().to_string());
        let text = fs::read_to_string(path);
        let text = text.map_err(|error| {
            Failure::new(format!("error opening encryption provider configuration file {shown}"), error)
        })?;
        let file = format!("encryption provider configuration file {shown}");
        if text.is_empty() {
            return Err(Failure(format!(
                "error while parsing file: error while loading file: {file} is empty"
            )));
        }
        let encryption = Encryption::parse(&text).map_err(|mistake| match mistake {
            Mistake::Undecodable(why) => {
                Failure(format!("error while parsing file: error decoding {file}: {why}"))
            }
            Mistake::Invalid(why) => Failure(format!("error while parsing file: {why}")),
        })?;
        Ok(match self.encryption_provider_config_automatic_reload {
            true => encryption.following(path, &text),
            false => encryption,
        })
    }
}
