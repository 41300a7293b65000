//! What `etcd` tells `kube-apiserver`: where the store is. The only word between the two.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where `kube-apiserver` asks.
pub(crate) const STORE: &str = "/kubarium/v1/store";
/// kube-apiserver's default `--etcd-prefix`.
pub(crate) const DEFAULT_PREFIX: &str = "/registry";

/// What `etcd` says of its store.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EtcdStore {
    /// Where it is: kubarium and the real etcd keep theirs differently, so nobody else can read it.
    pub data_dir: PathBuf,
    /// Whether it answers before the disk has it.
    pub unsafe_no_fsync: bool,
}

impl EtcdStore {
    /// The folder of a prefix: servers with different ones see nothing of each other.
    pub(crate) fn folder(&self, prefix: &str) -> PathBuf {
        let prefix = prefix.trim_matches('/');
        if format!("/{prefix}") == DEFAULT_PREFIX {
            return self.data_dir.join("kubarium");
        }
        self.data_dir.join(format!("kubarium-{}", prefix.replace('/', "_")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_prefix_has_its_folder() {
        let store = EtcdStore { data_dir: "/data".into(), unsafe_no_fsync: false };
        for (prefix, folder) in [
            ("/registry", "/data/kubarium"),
            ("registry/", "/data/kubarium"),
            ("/a/b", "/data/kubarium-a_b"),
            ("/../up", "/data/kubarium-.._up"),
        ] {
            assert_eq!(store.folder(prefix), PathBuf::from(folder), "{prefix}");
        }
    }
}
