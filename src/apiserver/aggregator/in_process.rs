//! `InProcessServers`: servers of APIs that are in this process. An APIService names a Service that is not
//! there, and the request does not leave the process; who wants another server writes another Service into
//! the APIService.

use std::collections::BTreeMap;
use std::sync::Arc;

use sync::Mutex;

use crate::webhook::ServiceReference;
use apimachinery::wire::ApiService;

/// By the namespace and the name of the Service that leads to each. Cloning shares them. Bound: as many as
/// whoever puts the server together adds.
#[derive(Clone, Default)]
pub struct InProcessServers(Arc<Mutex<BTreeMap<(String, String), ApiService>>>);

impl InProcessServers {
    /// What a Service of this name leads to from now on.
    pub fn add(&self, namespace: &str, name: &str, server: ApiService) {
        self.0.lock().insert((namespace.to_owned(), name.to_owned()), server);
    }

    /// Nobody is there any more: a server may hold what holds the apiserver.
    pub fn clear(&self) {
        let servers = std::mem::take(&mut *self.0.lock());
        drop(servers);
    }

    pub(super) fn find(&self, service: &ServiceReference) -> Option<ApiService> {
        self.at(&service.namespace, &service.name)
    }

    /// What a Service of this name leads to.
    pub fn at(&self, namespace: &str, name: &str) -> Option<ApiService> {
        self.0.lock().get(&(namespace.to_owned(), name.to_owned())).cloned()
    }
}
