//! Who may pull which image (`pkg/credentialprovider`): what registries want, and what Secrets hold.
//!
//! In: the registries that the user says to be private, and the Secrets of a pod. Out: whether an image
//! comes, and what its registry says otherwise. Where nobody names a registry nothing is looked at.

mod keyring;
mod registries;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use keyring::{DockerKeyring, RegistryLogin};
pub use registries::{PrivateRegistries, PrivateRegistriesError};

use crate::container_runtime::services::RuntimeError;
use machine::images::{reference, repository};

/// Which images of a node are not for everybody.
#[derive(Clone, Debug, Default)]
pub struct ImageAccess {
    registries: PrivateRegistries,
    /// Those that were there from the start are (`NeverVerifyPreloadedImages`).
    preloaded: Arc<BTreeSet<String>>,
}

impl ImageAccess {
    /// Of a node that had these images from the start.
    pub fn new(registries: &PrivateRegistries, preloaded: &[String]) -> ImageAccess {
        let preloaded = if registries.is_empty() { vec![] } else { preloaded.to_vec() };
        let preloaded = preloaded.iter().map(|image| reference(image)).collect();
        ImageAccess { registries: registries.clone(), preloaded: Arc::new(preloaded) }
    }

    /// Whether everybody may have everything.
    pub fn is_free(&self) -> bool {
        self.registries.is_empty()
    }

    /// Whether a pod has to show credentials for an image that is there, too
    /// (`KubeletEnsureSecretPulledImages`).
    pub fn verifies(&self, image: &str) -> bool {
        !self.is_free() && !self.preloaded.contains(&reference(image))
    }

    /// Why an image is not given to whom has these Secrets; nothing when it is. One of several logins that a
    /// registry takes is enough.
    pub fn refusal(&self, image: &str, keyring: impl FnOnce() -> DockerKeyring) -> Option<RuntimeError> {
        let repository = repository(image);
        let wanted = self.registries.login(&repository)?;
        let found = keyring().lookup(&repository);
        if found.contains(wanted) {
            return None;
        }
        let (name, answer) = (reference(image), answer(image, &repository, found.is_empty()));
        let message = format!(
            "rpc error: code = Unknown desc = failed to pull and unpack image {name:?}: failed to resolve \
             reference {name:?}: {answer}"
        );
        Some(RuntimeError { reason: "ErrImagePull".into(), message })
    }
}

/// What a registry says to whom it does not know, as containerd tells it.
fn answer(image: &str, repository: &str, is_anonymous: bool) -> String {
    if is_anonymous {
        return "pull access denied, repository does not exist or may require authorization: authorization \
                failed: no basic auth credentials"
            .into();
    }
    let (host, path) = repository.split_once('/').unwrap_or((repository, ""));
    let host = if host == "docker.io" { "registry-1.docker.io" } else { host };
    let tag = match image.split_once('@') {
        Some((_, digest)) => digest.to_owned(),
        None => reference(image).rsplit(':').next().unwrap_or_default().to_owned(),
    };
    format!(
        "unexpected status from HEAD request to https://{host}/v2/{path}/manifests/{tag}: 401 Unauthorized"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn keyring(host: &str, user: &str, password: &str) -> DockerKeyring {
        let config = json!({"auths": {host: {"username": user, "password": password}}}).to_string();
        let mut keyring = DockerKeyring::default();
        keyring.add(".dockerconfigjson", config.as_bytes());
        keyring
    }

    #[test]
    fn a_registry_gives_to_whom_it_knows() {
        let registries = "registry.example.com=alice:s3cret,docker.io/acme=bob:word".parse().unwrap();
        let access = ImageAccess::new(&registries, &["registry.example.com/base:1".into()]);
        let refused = |image: &str, keyring: DockerKeyring| {
            access.refusal(image, || keyring).map(|error| error.message)
        };
        let app = "registry.example.com/team/app:1";
        let well = keyring("registry.example.com", "alice", "s3cret");
        assert_eq!(refused(app, well), None);
        assert_eq!(refused("nginx", DockerKeyring::default()), None);
        let before = format!(
            "rpc error: code = Unknown desc = failed to pull and unpack image {app:?}: failed to resolve \
             reference {app:?}: "
        );
        let anonymous = "pull access denied, repository does not exist or may require authorization: \
                         authorization failed: no basic auth credentials";
        assert_eq!(refused(app, DockerKeyring::default()), Some(format!("{before}{anonymous}")));
        let other = keyring("other.example.com", "alice", "s3cret");
        assert_eq!(refused(app, other), Some(format!("{before}{anonymous}")));
        let wrong = refused(app, keyring("registry.example.com", "alice", "guess")).unwrap();
        let said = "https://registry.example.com/v2/team/app/manifests/1: 401 Unauthorized";
        assert!(wrong.ends_with(said), "{wrong}");
        let hub = refused("acme/web", keyring("https://index.docker.io/v1/", "bob", "no")).unwrap();
        assert!(hub.contains("https://registry-1.docker.io/v2/acme/web/manifests/latest:"), "{hub}");
        assert_eq!(refused("acme/web", keyring("https://index.docker.io/v1/", "bob", "word")), None);
    }

    #[test]
    fn what_was_there_from_the_start_is_for_all() {
        let registries = "registry.example.com=alice:s3cret".parse().unwrap();
        let access = ImageAccess::new(&registries, &["registry.example.com/base:1".into()]);
        assert!(!access.verifies("registry.example.com/base:1"));
        assert!(access.verifies("registry.example.com/base:2"));
        assert!(ImageAccess::default().is_free() && !ImageAccess::default().verifies("a"));
    }
}
