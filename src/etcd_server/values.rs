//! What clients see of values: a store may keep them in another form than it shows them.

use std::fmt::Debug;

use bytes::Bytes;

/// How values are shown. What clients write is kept as it is, so what is shown must be understood when it
/// comes back.
pub trait Values: Debug + Send + Sync {
    /// The value under a key, as it is shown.
    fn shown(&self, key: &str, value: &Bytes) -> Bytes;
}

/// Values as they are kept.
#[derive(Debug, Clone, Copy, Default)]
pub struct AsKept;

impl Values for AsKept {
    fn shown(&self, _key: &str, value: &Bytes) -> Bytes {
        value.clone()
    }
}
