//! Bootstrap tokens: taken away when they end, and used to sign what joining nodes are told
//! (`pkg/controller/bootstrap`).
//!
//! In come Secrets of kube-system and the ConfigMap `kube-public/cluster-info`, out go deletions and
//! signatures.

pub(crate) mod cleaner;
pub(crate) mod signer;
