//! Who encrypts what: the rules of an `EncryptionConfiguration`, and their providers
//! (`storage/value/encrypt`).

use bytes::Bytes;

use super::cipher::Cipher;
use apis::kind::Kind;

/// What every value that a provider has written begins with.
pub(super) const ENCRYPTED: &[u8] = b"k8s:enc:";

/// One entry of `resources`; the first that names a resource counts.
pub(super) struct EncryptionRule {
    /// As `secrets`, `deployments.apps`, `*.apps`, `*.` (the core group), `*.*`.
    pub(super) resources: Vec<String>,
    pub(super) providers: Vec<EncryptionProvider>,
}

/// One entry of `providers`.
pub(super) enum EncryptionProvider {
    /// Leaves bytes as they are.
    Identity,
    /// The first key writes, all of them read.
    Keys(Vec<EncryptionKey>),
}

pub(super) struct EncryptionKey {
    /// As `k8s:enc:aescbc:v1:key1:`.
    pub(super) prefix: String,
    pub(super) cipher: Cipher,
}

/// A kept value that none of the providers can read. The words are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TransformError(pub(super) String);

/// The first rule that names a kind.
pub(super) fn rule<'a>(rules: &'a [EncryptionRule], kind: &Kind) -> Option<&'a EncryptionRule> {
    if rules.is_empty() {
        return None;
    }
    let resource = kind.storage_kind().group_resource();
    rules.iter().find(|rule| rule.names(&resource.group, &resource.resource))
}

impl EncryptionRule {
    fn names(&self, group: &str, resource: &str) -> bool {
        self.resources.iter().any(|pattern| {
            let (name, own_group) = pattern.split_once('.').unwrap_or((pattern, ""));
            match (name, own_group) {
                ("*", "*") => true,
                ("*", own_group) => own_group == group,
                (name, own_group) => name == resource && own_group == group,
            }
        })
    }
}

impl EncryptionProvider {
    /// Whether it would keep the bytes under another key now.
    pub(super) fn is_stale(&self, kept: &[u8]) -> bool {
        match self {
            EncryptionProvider::Keys(keys) => {
                !keys.iter().take(1).any(|key| kept.starts_with(key.prefix.as_bytes()))
            }
            EncryptionProvider::Identity => kept.starts_with(ENCRYPTED),
        }
    }

    /// None: it is not for this provider to read.
    pub(super) fn read(&self, key: &str, kept: &Bytes) -> Option<Result<Bytes, TransformError>> {
        match self {
            EncryptionProvider::Identity if kept.starts_with(ENCRYPTED) => None,
            EncryptionProvider::Identity => Some(Ok(kept.clone())),
            EncryptionProvider::Keys(keys) => {
                let mut failure = None;
                for own in keys {
                    let Some(rest) = kept.strip_prefix(own.prefix.as_bytes()) else { continue };
                    match own.cipher.open(key.as_bytes(), rest) {
                        Some(plain) => return Some(Ok(plain.into())),
                        None => failure = Some(own.cipher.failure()),
                    }
                }
                let is_ours =
                    keys.first().is_some_and(|key| kept.starts_with(key.cipher.prefix().as_bytes()));
                let failure = failure.or_else(|| is_ours.then(|| keys[0].cipher.no_key()))?;
                Some(Err(TransformError(failure)))
            }
        }
    }
}

impl EncryptionKey {
    /// The bytes under this key.
    pub(super) fn write(&self, key: &str, plain: &[u8]) -> Result<Bytes, TransformError> {
        let sealed = self.cipher.seal(key.as_bytes(), plain);
        let sealed = sealed.ok_or_else(|| TransformError("unable to read sufficient random bytes".into()))?;
        Ok([self.prefix.as_bytes(), &sealed].concat().into())
    }
}
