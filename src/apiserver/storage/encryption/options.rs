//! The flags of encryption at rest (`options.EtcdOptions`).

use std::fs;
use std::path::PathBuf;

use clap::{ArgAction, Args};

use super::{Encryption, Mistake};

golang::text_error! {
    /// What is wrong with the flags of encryption, or with their file; in upstream's words.
    pub struct BadEncryptionConfig;
}

/// How objects are kept.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Encryption at rest")]
pub struct EncryptionOptions {
    /// A file with an EncryptionConfiguration: which resources are encrypted in the data dir, and how.
    #[arg(id = "encryption-provider-config", long, value_name = "FILE")]
    pub config_file: Option<PathBuf>,
    /// Look at that file again once a minute, and follow it when it has changed.
    #[arg(id = "encryption-provider-config-automatic-reload", long, default_value_t = false,
        action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub automatic_reload: bool,
    /// Which resources are encrypted, made by hand: then the flags say nothing.
    #[arg(skip)]
    pub made: Option<Encryption>,
}

impl EncryptionOptions {
    /// What the file says.
    ///
    /// # Errors
    /// What is wrong with the flags or with the file, in upstream's words.
    pub fn complete(&self) -> Result<Encryption, BadEncryptionConfig> {
        if let Some(made) = &self.made {
            return Ok(made.clone());
        }
        let Some(path) = &self.config_file else {
            if self.automatic_reload {
                let why = "--encryption-provider-config-automatic-reload must be set with \
                           --encryption-provider-config";
                return Err(why.into());
            }
            return Ok(Encryption::default());
        };
        let shown = format!("{:?}", path.display().to_string());
        let text = fs::read_to_string(path);
        let text = text.map_err(|error| {
            format!("error opening encryption provider configuration file {shown}: {error}")
        })?;
        let file = format!("encryption provider configuration file {shown}");
        if text.is_empty() {
            return Err(format!("error while parsing file: error while loading file: {file} is empty").into());
        }
        let encryption = Encryption::parse(&text).map_err(|mistake| match mistake {
            Mistake::Undecodable(why) => {
                format!("error while parsing file: error decoding {file}: {why}")
            }
            Mistake::Invalid(why) => format!("error while parsing file: {why}"),
        })?;
        Ok(if self.automatic_reload { encryption.following(path, &text) } else { encryption })
    }
}
