//! The ports of kubelets on the network between pods (`pkg/kubelet/server`): whoever asks a node at 10250
//! speaks TLS with its kubelet, which asks the apiserver who that is and whether he may. At 10248 it says to
//! its own node whether it is well.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures::FutureExt;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use sync::Mutex;
use tokio::io::DuplexStream;

use super::apart::delegated::Delegated;
use super::kubelet_gate::KubeletGate;
use super::kubelet_lookup::Kubelets;
use super::serving::made_at;
use apimachinery::wire::PeerCertificates;
use apiserver::endpoints::routes::debug::Debugging;
use clock::Clock;
use kubelet::kubelet::Kubelet;
use kubelet::ports::{HEALTHZ_PORT, KUBELET_PORT};
use network::http_server::{self, BrokenOff, StreamedBody};
use network::tls::{self, ServedOverTls, TlsIdentity};
use network::{Accept, Passage};
use pki::{Authority, Identity};

/// Who answers at the ports of all nodes of this process.
pub(super) struct KubeletDoors {
    kubelets: Arc<Kubelets>,
    /// Has signed what kubelets show, and whose clients they believe (kubeadm's `ca.crt`).
    authority: Arc<Authority>,
    debugging: Debugging,
    clock: Clock,
    /// What each kubelet shows, made when somebody asks it for the first time. Bound: one for each node whose
    /// kubelet runs; those of others are dropped when one more is made.
    shown: Mutex<BTreeMap<String, ShownByKubelet>>,
}

/// A certificate is of a node as long as the node has the addresses in it.
struct ShownByKubelet {
    addresses: Vec<IpAddr>,
    identity: TlsIdentity,
}

impl KubeletDoors {
    pub(super) fn new(
        kubelets: Arc<Kubelets>,
        authority: Arc<Authority>,
        debugging: Debugging,
        clock: Clock,
    ) -> KubeletDoors {
        KubeletDoors { kubelets, authority, debugging, clock, shown: Mutex::default() }
    }

    /// Who takes a connection to an address of the node itself; none where no kubelet listens.
    pub(super) fn at(self: &Arc<KubeletDoors>, kubelet: &Kubelet, passage: Passage) -> Option<Accept> {
        let (doors, kubelet) = (self.clone(), kubelet.clone());
        match passage.to.port() {
            KUBELET_PORT => Some(Arc::new(move |io, _| {
                let (doors, kubelet) = (doors.clone(), kubelet.clone());
                async move { doors.serve(&kubelet, io).await }.boxed()
            })),
            // It is at loopback, which here is whoever asks his own address.
            HEALTHZ_PORT if passage.from.ip() == passage.to.ip() => {
                Some(Arc::new(move |io, _| tell_health(kubelet.clone(), io).boxed()))
            }
            _ => None,
        }
    }

    async fn serve(&self, kubelet: &Kubelet, io: DuplexStream) {
        let Some((identity, gate)) = self.identity(kubelet).zip(self.gate(kubelet)) else { return };
        // Whoever does not trust it has gone.
        let Ok(io) = identity.accept(io).await else { return };
        let chain = tls::client_chain(&io);
        let peer = (!chain.is_empty()).then(|| PeerCertificates(chain.into()));
        let node: Arc<str> = kubelet.node_name().into();
        let answer = move |mut request: Request<Bytes>| {
            let (gate, node) = (gate.clone(), node.clone());
            peer.clone().map(|peer| request.extensions_mut().insert(peer));
            async move { streamed(gate.answer(request.map(Body::from), &node).await) }
        };
        http_server::serve_streams_and_go_on(io, answer).await;
    }

    /// The kubelet asks about others in its own name.
    fn gate(&self, kubelet: &Kubelet) -> Option<KubeletGate> {
        let authority = self.authority.certificate_pem();
        let delegated = Delegated::new(kubelet.client().clone(), authority, &self.clock).ok()?;
        Some(KubeletGate {
            kubelets: self.kubelets.clone(),
            delegated: Arc::new(delegated),
            clock: self.clock.clone(),
            debugging: self.debugging.clone(),
        })
    }

    fn identity(&self, kubelet: &Kubelet) -> Option<TlsIdentity> {
        let addresses: Vec<IpAddr> = kubelet.addresses().collect();
        let mut shown = self.shown.lock();
        let known = shown.get(kubelet.node_name()).filter(|known| known.addresses == addresses);
        if let Some(known) = known {
            return Some(known.identity.clone());
        }
        let made = self.authority.kubelet(kubelet.node_name(), &addresses, made_at(&self.clock)).ok()?;
        let Identity { certificate_pem, key_pem } = made;
        let served = ServedOverTls { asks_clients: true, ..ServedOverTls::default() };
        let identity = TlsIdentity::serving(certificate_pem.as_bytes(), key_pem.as_bytes(), served).ok()?;
        shown.retain(|node, _| self.kubelets.get(node).is_some());
        shown
            .insert(kubelet.node_name().to_owned(), ShownByKubelet { addresses, identity: identity.clone() });
        Some(identity)
    }
}

fn streamed(response: Response<Body>) -> Response<StreamedBody> {
    response.map(|body| body.map_err(|why| BrokenOff(why.to_string())).boxed_unsync())
}

/// Over plain HTTP, to whoever is on the node.
async fn tell_health(kubelet: Kubelet, io: DuplexStream) {
    let answer = |request: Request<Bytes>| {
        let kubelet = &kubelet;
        async move {
            match request.uri().path() {
                path @ ("/healthz" | "/healthz/ping") => kubelet.answer_http(request.method(), path).await,
                _ => nothing_there(),
            }
        }
    };
    http_server::serve(io, answer).await;
}

fn nothing_there() -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(b"404 page not found\n"));
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}
