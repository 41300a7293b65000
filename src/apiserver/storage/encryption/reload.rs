//! `--encryption-provider-config-automatic-reload`: the file is looked at again while the server runs
//! (`encryptionconfig/controller.DynamicEncryptionConfigContent`).

use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use super::{Encryption, Rule};
use clock::Clock;

/// Upstream's `EncryptionConfigFileChangePollDuration`.
const INTERVAL: Duration = Duration::from_secs(60);

/// What a file says, as it is now.
pub(super) struct Followed {
    path: PathBuf,
    current: RwLock<(String, Arc<[Rule]>)>,
}

impl Followed {
    pub(super) fn rules(&self) -> Arc<[Rule]> {
        self.current.read().unwrap_or_else(|poisoned| poisoned.into_inner()).1.clone()
    }

    /// Takes over what the file says by now, if that is another text and a good one.
    fn look(&self) -> Result<bool, String> {
        let text = std::fs::read_to_string(&self.path).map_err(|error| error.to_string())?;
        if self.current.read().unwrap_or_else(|poisoned| poisoned.into_inner()).0 == text {
            return Ok(false);
        }
        let rules = Encryption::parse(&text).map_err(|mistake| mistake.to_string())?.rules;
        *self.current.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = (text, rules);
        Ok(true)
    }
}

impl Encryption {
    /// The same, from a file with this text, which [`Encryption::follow`] looks at from time to time.
    pub fn following(self, path: &Path, text: &str) -> Encryption {
        let current = RwLock::new((text.to_owned(), self.rules.clone()));
        Encryption { followed: Some(Arc::new(Followed { path: path.to_owned(), current })), ..self }
    }

    /// Looks at its file once a minute, for ever; none when there is none. A file that is wrong changes
    /// nothing, which the log says.
    pub fn follow(&self, clock: &Clock) -> Option<impl Future<Output = ()> + Send + use<>> {
        let (followed, clock) = (self.followed.clone()?, clock.clone());
        Some(async move {
            loop {
                clock.sleep(INTERVAL).await;
                match followed.look() {
                    Ok(false) => {}
                    Ok(true) => tracing::info!("loaded new encryption config content"),
                    Err(error) => tracing::error!(error, "error reading encryption config file"),
                }
            }
        })
    }
}
