//! Which endpoints take traffic that comes in on a node (`pkg/proxy/topology.go`).

use crate::slice::EndpointInfo;

/// Where traffic comes in.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Standpoint<'a> {
    /// The node; empty for none of the cluster.
    pub(crate) node: &'a str,
    /// The node's zone; empty for none.
    pub(crate) zone: &'a str,
}

#[derive(Clone, Copy, PartialEq)]
enum HintMode {
    Everybody,
    SameNode,
    SameZone,
}

/// Endpoints of the whole cluster, as their hints have it; when none is ready, those that still serve while
/// they end.
pub(crate) fn cluster_endpoints<'a>(
    endpoints: &'a [EndpointInfo],
    at: Standpoint<'_>,
) -> Vec<&'a EndpointInfo> {
    let mode = mode(endpoints, at);
    let is_usable = |endpoint: &&EndpointInfo| endpoint.is_ready && endpoint.is_for(mode, at);
    let found: Vec<&EndpointInfo> = endpoints.iter().filter(is_usable).collect();
    if found.is_empty() {
        endpoints.iter().filter(|endpoint| endpoint.is_last_resort()).collect()
    } else {
        found
    }
}

/// Endpoints of one node; when none is ready, those that still serve while they end.
pub(crate) fn local_endpoints<'a>(endpoints: &'a [EndpointInfo], node: &str) -> Vec<&'a EndpointInfo> {
    let own = endpoints.iter().filter(|endpoint| endpoint.is_on(node));
    let found: Vec<&EndpointInfo> = own.clone().filter(|endpoint| endpoint.is_ready).collect();
    if found.is_empty() { own.filter(|endpoint| endpoint.is_last_resort()).collect() } else { found }
}

/// Whether anybody takes traffic on any node: what decides between refusing and dropping.
pub(crate) fn has_any(endpoints: &[EndpointInfo]) -> bool {
    endpoints.iter().any(|endpoint| endpoint.is_ready || endpoint.is_last_resort())
}

/// Hints count when all that are ready have them and one is for here (`topologyModeFromHints`).
fn mode(endpoints: &[EndpointInfo], at: Standpoint<'_>) -> HintMode {
    let ready = || endpoints.iter().filter(|endpoint| endpoint.is_ready);
    let counts = |hints: fn(&EndpointInfo) -> &Vec<String>, own: &str| {
        let all_have = ready().all(|endpoint| !hints(endpoint).is_empty());
        !own.is_empty() && all_have && ready().any(|endpoint| hints(endpoint).iter().any(|hint| hint == own))
    };
    if counts(|endpoint| &endpoint.node_hints, at.node) {
        HintMode::SameNode
    } else if counts(|endpoint| &endpoint.zone_hints, at.zone) {
        HintMode::SameZone
    } else {
        HintMode::Everybody
    }
}

impl EndpointInfo {
    fn is_for(&self, mode: HintMode, at: Standpoint<'_>) -> bool {
        match mode {
            HintMode::Everybody => true,
            HintMode::SameNode => self.node_hints.iter().any(|hint| hint == at.node),
            HintMode::SameZone => self.zone_hints.iter().any(|hint| hint == at.zone),
        }
    }

    pub(crate) fn is_on(&self, node: &str) -> bool {
        self.node.as_deref() == Some(node)
    }

    fn is_last_resort(&self) -> bool {
        self.is_serving && self.is_terminating
    }
}
