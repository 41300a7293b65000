//! `Storage`: what the registry reads from and writes to (`storage.Interface`).

use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::etcd::Kv;

/// The objects of one cluster. Cloning shares it.
#[derive(Clone)]
pub struct Storage {
    _kv: Kv,
}

impl Storage {
    /// Over a store. Watch caches are made when a kind is first read.
    pub fn new(kv: Kv, _clock: Clock, _entropy: Entropy) -> Storage {
        Storage { _kv: kv }
    }
}
