//! Keys, as etcd has them and as they are known here.

use std::sync::Arc;

use bytes::Bytes;
use etcd::{KeyValue, LeaseId};
use etcd_api::messages;

use super::client::EtcdClient;
use super::convert::unsigned;
use crate::config::DEFAULT_PREFIX;

impl EtcdClient {
    /// A key as etcd has it.
    pub(crate) fn outer(&self, key: &str) -> Bytes {
        Bytes::from(self.kept_key(key))
    }

    /// A key as etcd has it, to tell people.
    pub fn kept_key(&self, key: &str) -> String {
        match key.strip_prefix(DEFAULT_PREFIX).filter(|_| self.prefix() != DEFAULT_PREFIX) {
            Some(rest) => [self.prefix(), rest].concat(),
            None => key.to_owned(),
        }
    }

    /// A key as it is known here; None for one that is no text.
    fn inner(&self, key: &Bytes) -> Option<Arc<str>> {
        let key = str::from_utf8(key).ok()?;
        match key.strip_prefix(self.prefix()).filter(|_| self.prefix() != DEFAULT_PREFIX) {
            Some(rest) => Some([DEFAULT_PREFIX, rest].concat().into()),
            None => Some(key.into()),
        }
    }

    /// A key with its value; None where somebody else's key is no text.
    pub(crate) fn key_value(&self, kv: messages::KeyValue) -> Option<KeyValue> {
        let Some(key) = self.inner(&kv.key) else {
            tracing::warn!("etcd: a key that is no text is left out: {:?}", kv.key);
            return None;
        };
        Some(KeyValue {
            key,
            value: kv.value,
            create_revision: unsigned(kv.create_revision),
            mod_revision: unsigned(kv.mod_revision),
            version: unsigned(kv.version),
            lease: Some(kv.lease).filter(|lease| *lease != 0).map(|lease| LeaseId(lease.cast_unsigned())),
        })
    }
}
