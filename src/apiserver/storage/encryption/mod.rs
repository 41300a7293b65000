//! Encryption at rest (`k8s.io/apiserver/pkg/storage/value` and `server/options/encryptionconfig`): what
//! stands between an object's bytes and etcd.
//!
//! In go a kind, a key and bytes; out come the bytes as they are kept, or as they were. The first provider
//! of a resource's list writes, all of them read, so that keys can be changed one restart at a time. It must
//! not know what is in the bytes. Caches above it hold objects in the clear.

mod cipher;
mod config;
pub mod options;
mod reload;
mod rules;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use apis::kind::Kind;
use clock::Clock;
use rules::{ENCRYPTED, EncryptionProvider, EncryptionRule, rule};

pub use config::Mistake;
pub use rules::TransformError;

/// Which resources are encrypted, and how. The default encrypts nothing. Cloning shares it.
#[derive(Clone, Default)]
pub struct Encryption {
    rules: Arc<[EncryptionRule]>,
    /// Instead of them what the file says now, when it is looked at again.
    followed: Option<Arc<reload::FollowedConfig>>,
}

impl Encryption {
    /// Reads the file's text.
    ///
    /// # Errors
    /// What is wrong with it, in upstream's words; never a secret.
    pub fn parse(yaml: &str) -> Result<Encryption, Mistake> {
        Ok(Encryption { rules: config::parse(yaml)?, followed: None })
    }

    /// What is followed is a file with this text, which [`Encryption::follow`] looks at from time to time.
    pub fn following(self, path: &Path, text: &str) -> Encryption {
        let followed = reload::FollowedConfig::new(path, text, &self.rules);
        Encryption { followed: Some(Arc::new(followed)), ..self }
    }

    /// Looks at its file once a minute, for ever; none when there is none. A file that is wrong changes
    /// nothing, which the log says.
    pub fn follow(&self, clock: &Clock) -> Option<impl Future<Output = ()> + Send + use<>> {
        Some(reload::follow(self.followed.clone()?, clock.clone()))
    }

    /// Whether nothing is encrypted.
    pub fn is_off(&self) -> bool {
        self.rules.is_empty() && self.followed.is_none()
    }

    /// Whether nothing is encrypted, and these bytes were kept that way, too.
    pub fn keeps_as_is(&self, kept: &[u8]) -> bool {
        self.is_off() && !kept.starts_with(ENCRYPTED)
    }

    /// The bytes to keep under `key`, which is bound to them where the cipher can do that.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn to_storage(&self, kind: &Kind, key: &str, plain: Bytes) -> Result<Bytes, TransformError> {
        if self.is_off() {
            return Ok(plain);
        }
        match rule(&self.rules(), kind).and_then(|rule| rule.providers.first()) {
            Some(EncryptionProvider::Keys(keys)) => match keys.first() {
                Some(first) => first.write(key, &plain),
                None => Ok(plain),
            },
            Some(EncryptionProvider::Identity) | None => Ok(plain),
        }
    }

    /// The bytes that were given to [`Encryption::to_storage`].
    ///
    /// # Errors
    /// No provider has a key for them, or they were tampered with.
    pub fn from_storage(&self, kind: &Kind, key: &str, kept: &Bytes) -> Result<Bytes, TransformError> {
        let rules = self.rules();
        let Some(rule) = rule(&rules, kind) else {
            let is_plain = !kept.starts_with(ENCRYPTED);
            let why = || TransformError("identity transformer tried to read encrypted data".into());
            return is_plain.then(|| kept.clone()).ok_or_else(why);
        };
        let mut failure = None;
        for provider in &rule.providers {
            match provider.read(key, kept) {
                Some(Ok(plain)) => return Ok(plain),
                Some(Err(error)) => failure = Some(error),
                None => {}
            }
        }
        Err(failure.unwrap_or_else(|| TransformError("no matching prefix found".into())))
    }

    /// Whether [`Encryption::to_storage`] would keep it under another key now: an update that changes
    /// nothing writes it all the same.
    pub fn is_stale(&self, kind: &Kind, kept: &[u8]) -> bool {
        match rule(&self.rules(), kind).and_then(|rule| rule.providers.first()) {
            Some(provider) => provider.is_stale(kept),
            None => false,
        }
    }

    fn rules(&self) -> Arc<[EncryptionRule]> {
        match &self.followed {
            Some(followed) => followed.rules(),
            None => self.rules.clone(),
        }
    }
}

impl std::fmt::Debug for Encryption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Encryption of {} resource lists", self.rules().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apis::apps::deployment::DEPLOYMENTS;
    use apis::core::config_map::CONFIG_MAPS;
    use apis::core::secret::SECRETS;

    const KEY_32: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
    const OTHER_32: &str = "ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";
    const KEY_24: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3";
    const KEY_16: &str = "MDEyMzQ1Njc4OWFiY2RlZg==";

    fn encryption(resources: &str, providers: &str) -> Encryption {
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
             - resources: {resources}\n  providers: {providers}\n"
        );
        Encryption::parse(&text).unwrap()
    }

    fn keys(name: &str, keys: &[(&str, &str)]) -> String {
        let keys: Vec<String> =
            keys.iter().map(|(name, secret)| format!("{{name: {name}, secret: {secret}}}")).collect();
        format!("[{{{name}: {{keys: [{}]}}}}]", keys.join(", "))
    }

    #[test]
    fn what_is_written_is_read_and_looks_as_upstreams() {
        let plain = Bytes::from_static(b"{\"metadata\":{},\"data\":{\"password\":\"aHVudGVyMg==\"}}");
        for (name, secret) in [
            ("aescbc", KEY_16),
            ("aescbc", KEY_24),
            ("aescbc", KEY_32),
            ("aesgcm", KEY_16),
            ("aesgcm", KEY_24),
            ("aesgcm", KEY_32),
            ("secretbox", KEY_32),
        ] {
            let ours = encryption("[secrets]", &keys(name, &[("key1", secret)]));
            let kept = ours.to_storage(&SECRETS, "/registry/secrets/a/b", plain.clone()).unwrap();
            assert!(kept.starts_with(format!("k8s:enc:{name}:v1:key1:").as_bytes()));
            assert!(!kept.windows(8).any(|bytes| bytes == b"password"), "{name}");
            assert_ne!(ours.to_storage(&SECRETS, "/registry/secrets/a/b", plain.clone()).unwrap(), kept);
            assert_eq!(ours.from_storage(&SECRETS, "/registry/secrets/a/b", &kept).unwrap(), plain);
            let mut tampered = kept.to_vec();
            *tampered.last_mut().unwrap() ^= 1;
            let tampered = ours.from_storage(&SECRETS, "/registry/secrets/a/b", &tampered.into());
            assert_ne!(tampered.unwrap_or_default(), plain, "{name}");
            assert_eq!(
                ours.to_storage(&CONFIG_MAPS, "/registry/configmaps/a/b", plain.clone()).unwrap(),
                plain
            );
        }
        let ours = encryption("[secrets]", &keys("aesgcm", &[("key1", KEY_32)]));
        let kept = ours.to_storage(&SECRETS, "/registry/secrets/a/b", plain).unwrap();
        assert!(ours.from_storage(&SECRETS, "/registry/secrets/a/other", &kept).is_err());
    }

    #[test]
    fn keys_are_changed_by_lists() {
        let key = "/registry/secrets/a/b";
        let old = encryption("[secrets]", &keys("aescbc", &[("key1", KEY_32)]));
        let both = encryption("[secrets]", &keys("aescbc", &[("key2", OTHER_32), ("key1", KEY_32)]));
        let plain = Bytes::from_static(b"{}");
        let kept = old.to_storage(&SECRETS, key, plain.clone()).unwrap();
        assert_eq!(both.from_storage(&SECRETS, key, &kept).unwrap(), plain);
        assert!(both.is_stale(&SECRETS, &kept) && !old.is_stale(&SECRETS, &kept));
        let new = encryption("[secrets]", &keys("aescbc", &[("key2", OTHER_32)]));
        let error = new.from_storage(&SECRETS, key, &kept).unwrap_err().to_string();
        assert_eq!(error, "no matching key was found for the provided AES transformer");
        let identity = encryption("[secrets]", "[{identity: {}}]");
        let error = identity.from_storage(&SECRETS, key, &kept).unwrap_err().to_string();
        assert_eq!(error, "no matching prefix found");
        let nothing = Encryption::default();
        assert!(nothing.keeps_as_is(&plain) && !nothing.keeps_as_is(&kept));
        let error = nothing.from_storage(&SECRETS, key, &kept).unwrap_err().to_string();
        assert_eq!(error, "identity transformer tried to read encrypted data");
    }

    #[test]
    fn resources_are_named_by_group() {
        let providers = keys("secretbox", &[("key1", KEY_32)]);
        for (resources, expected) in [
            ("[secrets]", [true, false]),
            ("[deployments.apps]", [false, true]),
            ("['*.']", [true, false]),
            ("['*.apps']", [false, true]),
            ("['*.*']", [true, true]),
            ("[deployments]", [false, false]),
        ] {
            let ours = encryption(resources, &providers);
            let found = [&SECRETS, &DEPLOYMENTS].map(|kind| rule(&ours.rules, kind).is_some());
            assert_eq!(found, expected, "{resources}");
        }
    }
}
