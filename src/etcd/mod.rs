//! etcd: revisions, compare-and-put, the log. What comes in are keys and bytes; what goes out are the same bytes
//! with the revision that wrote them. It has never heard of Kubernetes, and nothing outside knows sled.
//!
//! The contract is the part of etcd's v3 API that kube-apiserver uses (`kubernetes/apiserver/pkg/storage/etcd3`),
//! shaped so that a real etcd fits behind it: one counter of revisions for the whole store, a put or delete that
//! compares the key's `mod_revision` first, ranges at a revision, watches from a revision, compaction, leases.
//!
//! Invariants:
//! - a revision is born in one place, in the same batch as its value;
//! - a watch is a read of the log: nothing is delivered that was not written, in no other order, none twice;
//! - a write is acknowledged when it is as durable as the store promises: on disk with a data dir, in memory without.
