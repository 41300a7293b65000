//! The objects of a cluster, in the store that it has.

use super::config::Config;
use apiserver::storage::encryption::Encryption;
use apiserver::storage::store::Store;
use apiserver::storage::{ByteStore, Storage, WatchCaches};
use flow::Flow;

/// Who waits by the clock where no component does.
pub(super) const APISERVER: &str = "kube-apiserver";

/// Objects in a store that the watch caches' beginnings are not newer than.
pub(super) fn storage(
    config: &Config,
    kv: &ByteStore,
    flow: &Flow,
    encryption: &Encryption,
    caches: WatchCaches,
) -> Storage {
    let store = Store::new(kv.clone(), config.clock.named(APISERVER))
        .recording(flow.clone())
        .encrypting(encryption.clone())
        .keeping_events(config.apiserver.event_ttl)
        .writing_protobuf(config.apiserver.stores_protobuf())
        .read_only(config.read_only);
    Storage::inheriting(caches, store, config.entropy.clone())
}
