//! Forking a cluster, and coming to it as somebody, for whoever holds it.

use super::Cluster;
use super::config::{Access, Listen};
use super::fork::ForkError;
use super::serving::made_at;
use super::start_error::StartError;

impl Cluster {
    /// As [`Cluster::access`], for a user of a group, with a certificate of their own that the cluster's
    /// authority has signed.
    ///
    /// # Errors
    /// That none can be made.
    pub fn access_as(&self, user: &str, group: &str) -> Result<Option<Access>, StartError> {
        let Some(mut access) = self.access() else { return Ok(None) };
        if access.identity.is_some() {
            let made = self.inside.keys.authority.client(user, group, made_at(&self.inside.clock))?;
            access.identity = Some(made);
        }
        Ok(Some(access))
    }

    /// A second cluster with the same past: the same objects, the same time, the same keys, the same
    /// components at work. From here on neither hears of the other. An expensive fixture is built once, and
    /// each test gets its fork.
    ///
    /// It is taken at one resourceVersion, whoever writes meanwhile, and answers after a few milliseconds
    /// however many objects there are. It keeps everything in memory, and listens on a port of its own if its
    /// parent listens: credentials of the parent are good there. With a stepped clock and seeded entropy,
    /// forks of one moment behave alike. What happened before is not in its causal record, and it keeps no
    /// audit log.
    ///
    /// ```
    /// use kubarium::kinds::CONFIG_MAPS;
    /// use kubarium::{Cluster, Config};
    /// use serde_json::json;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let fixture = Cluster::start(Config::new()).await?;
    /// let settings = json!({"metadata": {"name": "settings"}});
    /// fixture.client().create(&CONFIG_MAPS, "default", settings).await?;
    /// let (one, other) = (fixture.fork().await?, fixture.fork().await?);
    /// one.client().delete(&CONFIG_MAPS, "default", "settings", &Default::default()).await?;
    /// assert!(other.client().get(&CONFIG_MAPS, "default", "settings").await.is_ok());
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`ForkError`].
    pub async fn fork(&self) -> Result<Cluster, ForkError> {
        self.fork_from(None).await
    }

    /// A fork that begins where this cluster was at a resourceVersion: what was written later never happened.
    /// Its time is that of now. An Event whose time to live has ended since then is there for a moment only.
    ///
    /// # Errors
    /// [`ForkError::TooOld`] when that is compacted away, as all is that was superseded five to ten minutes
    /// ago; [`ForkError::Future`] when it has not been reached; else as [`Cluster::fork`].
    pub async fn fork_at(&self, resource_version: u64) -> Result<Cluster, ForkError> {
        self.fork_from(Some(resource_version)).await
    }

    async fn fork_from(&self, at: Option<u64>) -> Result<Cluster, ForkError> {
        let (config, origin) = self.inside.prepare_fork(at, self.fork_listener())?;
        Ok(Cluster::begin(config, Some(origin)).await?)
    }

    /// At a free port of the address at which this cluster listens.
    fn fork_listener(&self) -> Option<Listen> {
        let listen = self.inside.config.listen?;
        let address = (listen.address.ip(), 0).into();
        Some(Listen { address, ..listen })
    }
}
