//! The first words to an etcd: whether it is there, and what it is.

use std::time::Duration;

use super::client::EtcdClient;
use super::connection::Hope;
use super::connections::Purpose;
use crate::config::EtcdConfig;
use clock::Clock;

/// How long is waited for an etcd that starts at the same time. What cannot pass is said at once.
const OPEN_TIME: Duration = Duration::from_secs(10);
/// And for one that answers as none does, but may be on its way up.
const STRANGE_TIME: Duration = Duration::from_secs(2);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(100);

/// Why there is no etcd to keep objects in.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "--etcd-servers {servers}: {why}; is etcd running, and are --etcd-cafile, --etcd-certfile and --etcd-keyfile right?"
)]
pub struct OpenError {
    /// As they were given.
    pub servers: String,
    /// Of each, why not.
    pub why: String,
}

impl EtcdClient {
    /// A client of an etcd that answers.
    ///
    /// # Errors
    /// [`OpenError`], at once if it is not what it should be, and after ten seconds if nobody is there.
    pub async fn open(config: EtcdConfig, clock: Clock) -> Result<EtcdClient, OpenError> {
        let servers: Vec<String> = config.endpoints.iter().map(ToString::to_string).collect();
        let client = EtcdClient::new(config, clock);
        let opened = client.wait_until_connected().await;
        let opened = match opened {
            Ok(()) => client.revision().await.map(drop).map_err(|error| error.to_string()),
            Err(why) => Err(why),
        };
        match opened {
            Ok(()) => Ok(client),
            Err(why) => Err(OpenError { servers: servers.join(","), why }),
        }
    }

    async fn wait_until_connected(&self) -> Result<(), String> {
        let began = self.real().elapsed();
        loop {
            let Err(failure) = self.connected(Purpose::Calls).await else { return Ok(()) };
            let patience = match failure.hope {
                Hope::None => Duration::ZERO,
                Hope::Little => STRANGE_TIME,
                Hope::Good => OPEN_TIME,
            };
            if self.real().elapsed() - began >= patience {
                return Err(failure.why);
            }
            self.real().sleep(PAUSE).await;
        }
    }
}
