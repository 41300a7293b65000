//! `--encryption-provider-config-automatic-reload`: the file is looked at again while the server runs
//! (`encryptionconfig/controller.DynamicEncryptionConfigContent`).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::config::parse;
use super::rules::EncryptionRule;
use clock::Clock;
use sync::RwLock;

/// Upstream's `EncryptionConfigFileChangePollDuration`.
const INTERVAL: Duration = Duration::from_secs(60);

/// What a file says, as it is now.
pub(super) struct FollowedConfig {
    path: PathBuf,
    current: RwLock<(String, Arc<[EncryptionRule]>)>,
}

impl FollowedConfig {
    /// A file that had this text, which says these rules.
    pub(super) fn new(path: &Path, text: &str, rules: &Arc<[EncryptionRule]>) -> FollowedConfig {
        let current = RwLock::new((text.to_owned(), rules.clone()));
        FollowedConfig { path: path.to_owned(), current }
    }

    /// What it says now.
    pub(super) fn rules(&self) -> Arc<[EncryptionRule]> {
        self.current.read().1.clone()
    }

    /// Takes over what the file says by now, if that is another text and a good one.
    fn look(&self) -> Result<bool, String> {
        let text = std::fs::read_to_string(&self.path).map_err(|error| error.to_string())?;
        if self.current.read().0 == text {
            return Ok(false);
        }
        let rules = parse(&text).map_err(|mistake| mistake.to_string())?;
        *self.current.write() = (text, rules);
        Ok(true)
    }
}

/// Looks at the file once a minute, for ever.
pub(super) async fn follow(followed: Arc<FollowedConfig>, clock: Clock) {
    loop {
        clock.sleep(INTERVAL).await;
        match followed.look() {
            Ok(false) => {}
            Ok(true) => tracing::info!("loaded new encryption config content"),
            Err(error) => tracing::error!(error, "error reading encryption config file"),
        }
    }
}
