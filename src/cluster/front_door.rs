//! The apiserver at the address of its Service, for whoever speaks TLS to it over the network between pods.
//! What a pod asks of it over HTTP goes another way, in memory; here it shows who it is.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures::FutureExt;
use http::{Request, Response};
use http_body_util::BodyExt;
use tokio::io::DuplexStream;

use super::serving::made_at;
use client_go::client::Client;
use clock::Clock;
use network::Accept;
use network::http_server::{BrokenOff, StreamedBody};
use network::tls::TlsIdentity;
use pki::{Authority, Identity};

/// The port of the Service `kubernetes`.
const PORT: u16 = 443;

/// A certificate for the names and addresses at which an apiserver is asked.
pub(super) fn serving_identity(
    own: [IpAddr; 2],
    authority: &Authority,
    clock: &Clock,
) -> Result<Identity, pki::PkiError> {
    let names = [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ];
    let mut addresses = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
    for address in own.into_iter().filter(|address| !address.is_unspecified()) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    authority.server(&names, &addresses, made_at(clock))
}

/// Who is at the Service's address.
pub(super) struct FrontDoor {
    at: SocketAddr,
    authority: Arc<Authority>,
    /// What the user has it show.
    given: Option<Identity>,
    client: Client,
    clock: Clock,
    /// Made when somebody asks for the first time.
    shown: OnceLock<Option<TlsIdentity>>,
}

impl FrontDoor {
    pub(super) fn new(
        at: IpAddr,
        (authority, given): (Arc<Authority>, Option<Identity>),
        (client, clock): (&Client, &Clock),
    ) -> FrontDoor {
        let (client, clock) = (client.clone(), clock.clone());
        FrontDoor { at: SocketAddr::new(at, PORT), authority, given, client, clock, shown: OnceLock::new() }
    }

    pub(super) fn is_at(&self, address: SocketAddr) -> bool {
        self.at == address
    }

    pub(super) fn accept(self: &Arc<FrontDoor>) -> Accept {
        let door = self.clone();
        Arc::new(move |io, _| {
            let door = door.clone();
            async move { door.serve(io).await }.boxed()
        })
    }

    async fn serve(&self, io: DuplexStream) {
        let Some(identity) = self.shown.get_or_init(|| self.identity()) else { return };
        // Whoever does not trust it has gone.
        let Ok(io) = identity.accept(io).await else { return };
        network::http_server::serve_streams(io, |request| self.answer(request)).await;
    }

    fn identity(&self) -> Option<TlsIdentity> {
        let own = || serving_identity([self.at.ip(); 2], &self.authority, &self.clock).ok();
        let Identity { certificate_pem, key_pem } = self.given.clone().or_else(own)?;
        TlsIdentity::new(certificate_pem.as_bytes(), key_pem.as_bytes()).ok()
    }

    /// Who asks says so by his headers, as at the port of the host.
    async fn answer(&self, request: Request<Bytes>) -> Response<StreamedBody> {
        let response = self.client.as_it_is(request.map(|body| body.to_vec())).await;
        response.map(|body| body.map_err(|why| BrokenOff(why.to_string())).boxed_unsync())
    }
}
