//! Listeners that are given in Rust: a service that answers at a port of pods.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use tokio::io::DuplexStream;
use tower::{Service, ServiceExt};

use super::Cluster;
use apimachinery::labels::{BadSelector, Selector};
use kubelet::container_runtime::own_listeners::{OwnListener, PodTarget};

impl Cluster {
    /// From now on `service` answers what comes over HTTP/1 to `port` of pods in `namespace`, whatever image
    /// runs there: of the pod of that name, or of all that a selector of labels as `app=web` fits. Bodies are
    /// read up to a mebibyte.
    ///
    /// # Errors
    /// What is wrong with the selector.
    pub fn listen_at<S>(&self, namespace: &str, pods: &str, port: u16, service: S) -> Result<(), BadSelector>
    where
        S: Service<Request<Bytes>, Response = Response<Bytes>, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send,
    {
        self.serve_at(namespace, pods, port, move |io, _| {
            let service = service.clone();
            let answer = move |request| {
                let asked = service.clone().oneshot(request);
                async move { asked.await.unwrap_or_else(|never| match never {}) }
            };
            network::http_server::serve(io, answer).boxed()
        })
    }

    /// As [`Cluster::listen_at`], for connections of any protocol: `handler` is given each with the address
    /// of who asks, and it ends when the handler does.
    ///
    /// # Errors
    /// What is wrong with the selector.
    pub fn serve_at(
        &self,
        namespace: &str,
        pods: &str,
        port: u16,
        handler: impl Fn(DuplexStream, String) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Result<(), BadSelector> {
        let is_name = !pods.is_empty() && !pods.contains(['=', '!', ',', ' ', '(']);
        let pods =
            if is_name { PodTarget::Name(pods.into()) } else { PodTarget::Labels(Selector::parse(pods)?) };
        let (namespace, handler) = (namespace.to_owned(), Arc::new(handler));
        self.listeners.add(OwnListener { namespace, pods, port, handler });
        // Probes that knew what answers there ask again.
        self.network().stir();
        Ok(())
    }
}
