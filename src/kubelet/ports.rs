//! Where a kubelet listens (`pkg/cluster/ports`).

/// At its node's addresses, over TLS, for whoever may ask it.
pub const KUBELET_PORT: u16 = 10250;
/// At loopback, where it says to its own node whether it is well (`healthzPort`).
pub const HEALTHZ_PORT: u16 = 10248;
