//! `Origin`: what a cluster begins with: nothing, a data dir, a snapshot, or the past of another.

use std::sync::Arc;

use super::components::{AtWork, ComponentKeys};
use super::config::{Components, Config};
use super::data_dir;
use super::earlier_keys;
use super::etcd_store;
use super::node_register::RegisteredNodes;
use super::serving::made_at;
use super::snapshot::Snapshot;
use super::start_error::StartError;
use apiserver::authentication::service_account::issuer::TokenIssuer;
use apiserver::storage::{ByteStore, WatchCaches};
use etcd::Kv;
use pki::{Authority, AuthorityKeys};

/// The store, whom to trust, and what is known of it already.
pub(super) struct Origin {
    pub(super) kv: ByteStore,
    pub(super) keys: SigningKeys,
    /// What the watch caches begin with.
    pub(super) caches: WatchCaches,
    /// Of a fork, the components that ran in its parent: everything that a cluster starts with is there.
    pub(super) running: Option<AtWork>,
    /// Of a fork that begins where its parent is, the nodes that this has, be they none.
    pub(super) nodes: Option<RegisteredNodes>,
}

/// What a cluster signs with. Cloning shares it.
#[derive(Clone)]
pub(super) struct SigningKeys {
    pub(super) authority: Arc<Authority>,
    /// For service account tokens.
    pub(super) signing_key_pem: Arc<str>,
}

impl Origin {
    /// This one, or what the config says; with its keys where they are to be.
    pub(super) async fn or_of(origin: Option<Origin>, config: &mut Config) -> Result<Origin, StartError> {
        let origin = match origin {
            Some(origin) => origin,
            None => Origin::of(config).await?,
        };
        if let ByteStore::Own(kv) = &origin.kv
            && !config.read_only
        {
            earlier_keys::move_all(kv, origin.running.is_some()).await?;
        }
        Ok(origin)
    }

    /// What the config says.
    pub(super) async fn of(config: &mut Config) -> Result<Origin, StartError> {
        if config.apiserver.etcd.is_used() {
            let kv = etcd_store::open(config).await?.into();
            return Origin::around(kv, config);
        }
        let Some(snapshot) = config.snapshot.take() else { return Origin::open(config) };
        (config.nodes, config.kubelet.max_pods) = (snapshot.nodes(), snapshot.pods_per_node());
        if let Some(folder) = &config.data_dir {
            snapshot.restore(folder, &config.clock)?;
            return Origin::open(config);
        }
        let kv = Kv::load(snapshot.image(), store_options(config), config.clock.clone())?;
        let keys = match snapshot.keys() {
            Some(keys) => SigningKeys::of(&keys, "the snapshot")?,
            None => SigningKeys::open(config)?,
        };
        let kv = kv.into();
        Ok(Origin { kv, keys, caches: WatchCaches::default(), running: None, nodes: None })
    }

    /// A snapshot, in which nothing happens: to be read.
    pub(super) async fn at_rest(snapshot: Snapshot) -> Result<(Config, Origin), StartError> {
        let mut config = Config::new().components(Components::NONE).flow(false).snapshot(snapshot);
        let origin = Origin { running: Some(AtWork::default()), ..Origin::of(&mut config).await? };
        Ok((config, origin))
    }

    fn open(config: &Config) -> Result<Origin, StartError> {
        Origin::around(Kv::open(store_options(config), config.clock.clone())?.into(), config)
    }

    fn around(kv: ByteStore, config: &Config) -> Result<Origin, StartError> {
        let keys = SigningKeys::open(config)?;
        Ok(Origin { kv, keys, caches: WatchCaches::default(), running: None, nodes: None })
    }
}

impl SigningKeys {
    /// Those of the data dir, or new ones.
    fn open(config: &Config) -> Result<SigningKeys, pki::PkiError> {
        let now = made_at(&config.clock);
        let (authority, signing_key_pem) = match config.data_dir.as_deref().map(data_dir::pki) {
            Some(folder) => (Authority::load_or_generate(&folder, now)?, pki::load_signing_key(&folder)?),
            None => (Authority::generate(now)?, pki::generate_signing_key()?),
        };
        Ok(SigningKeys { authority: Arc::new(authority), signing_key_pem: signing_key_pem.into() })
    }

    fn of(keys: &AuthorityKeys, origin: &str) -> Result<SigningKeys, pki::PkiError> {
        let authority = Arc::new(Authority::of_keys(keys, origin)?);
        Ok(SigningKeys { authority, signing_key_pem: keys.signing_key_pem.as_str().into() })
    }

    /// What components of the same process sign with.
    pub(super) fn for_components(&self, token_issuer: Option<Arc<TokenIssuer>>) -> ComponentKeys {
        let root_ca = self.authority.certificate_pem().to_owned();
        ComponentKeys { root_ca, authority: Some(self.authority.clone()), token_issuer }
    }

    /// As PEM.
    pub(super) fn to_pem(&self) -> AuthorityKeys {
        self.authority.keys(&self.signing_key_pem)
    }
}

fn store_options(config: &Config) -> etcd::Options {
    etcd::Options {
        data_dir: config.data_dir.as_deref().map(data_dir::store),
        unsafe_no_fsync: config.unsafe_no_fsync,
        recover: config.recover,
        ..etcd::Options::default()
    }
}
