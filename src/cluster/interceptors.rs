//! Who looks into requests on their way through the apiserver.

use std::sync::Arc;

use apiserver::aggregator::InProcessServers;
use apiserver::config::ApiserverConfig;
use faults::Faults;
use witness::SeenRequests;

/// One cluster's.
pub(crate) struct Interceptors {
    /// Does something else with them.
    pub(super) faults: Faults,
    /// Remembers them.
    pub(super) requests: SeenRequests,
    /// Answers in place of a remote server.
    pub(super) servers: InProcessServers,
}

impl Interceptors {
    /// Puts them into the chain of an apiserver that is to be.
    pub(super) fn join(apiserver: &mut ApiserverConfig) -> Interceptors {
        let faults = Faults::new(apiserver.clock.clone(), apiserver.entropy.clone());
        let requests = SeenRequests::new(apiserver.clock.clone());
        apiserver.interceptor = Some(Arc::new(faults.clone()));
        apiserver.witness = Some(Arc::new(requests.clone()));
        Interceptors { faults, requests, servers: apiserver.in_process.clone() }
    }
}

/// With the cluster end the tasks that stop components for a while, and servers, which hold the apiserver.
impl Drop for Interceptors {
    fn drop(&mut self) {
        self.faults.clear();
        self.servers.clear();
    }
}
