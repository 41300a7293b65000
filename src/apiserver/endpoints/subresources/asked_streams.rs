//! `AskedStreams`: what a request for streams says, and who has them: an apiserver is asked by way of a
//! resource, a kubelet's own server without one.

use std::sync::Arc;

use http::{HeaderMap, Method};

use crate::endpoints::handlers::request_scope::Scope;
use crate::endpoints::query::Query;
use crate::endpoints::response::unread_watches::UnreadWatches;
use crate::kubelet_client::KubeletLookup;
use clock::Clock;

/// One request for streams.
#[derive(Clone, Copy)]
pub(crate) struct AskedStreams<'a> {
    /// As it was sent.
    pub method: &'a Method,
    /// Which protocols the client knows.
    pub headers: &'a HeaderMap,
    /// Which streams it wants.
    pub query: &'a Query,
    /// Who has the containers.
    pub kubelets: &'a Arc<dyn KubeletLookup>,
    /// By which nobody says anything for too long.
    pub clock: &'a Clock,
    /// Where it is known when the server ends.
    pub unread: Option<&'a UnreadWatches>,
}

impl AskedStreams<'_> {
    /// Of a request to a resource.
    pub(crate) fn of(scope: &Scope) -> AskedStreams<'_> {
        AskedStreams {
            method: &scope.method,
            headers: &scope.headers,
            query: &scope.query,
            kubelets: &scope.server.kubelets,
            clock: &scope.server.clock,
            unread: scope.unread.as_ref(),
        }
    }
}
