//! What processes of pods ask the network: the machine that plays them says what, and goes on with what is
//! answered here.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Limited};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::dependencies::Dependencies;
use apis::core::service::SERVICES;
use apis::views::service::Service;
use client_go::client::Client;
use clock::Clock;
use machine::questions::{
    Answered, HttpQuestion, MAX_ANSWER_BYTES, NetworkAsk, NetworkReply, Question, TlsPeer, TlsTrust, WebReply,
};
use machine::requests::canonical;
use network::tls::{self, TlsFailure};
use network::{Network, Obstacle, Refusal, http_client, http_server};

/// Nobody waits longer for an answer, whatever he says.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// Whether a connection was there.
#[derive(Default)]
struct Connected(AtomicBool);

impl Connected {
    fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_there(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Asks a network in somebody's name, and says what came back after how long. Nobody is the apiserver there.
pub(crate) async fn ask(network: &Network, clock: &Clock, from: IpAddr, question: &Question) -> Answered {
    let talk = Talking { network, clock, client: None };
    let begun = clock.elapsed();
    let reply = talk.reply(from, question).await;
    Answered { reply, took: clock.elapsed().saturating_sub(begun) }
}

impl Dependencies {
    /// Asks in the name of a pod with this address, and says what came back after how long.
    pub(crate) async fn ask_network(&self, from: &str, question: &Question) -> Answered {
        let clock = &self.context.clock;
        let talk = Talking { network: self.network(), clock, client: Some(&self.context.client) };
        let begun = clock.elapsed();
        let reply = match from.parse() {
            Ok(from) => talk.reply(from, question).await,
            // A pod without an address reaches nobody.
            Err(_) => NetworkReply::Unreachable,
        };
        Answered { reply, took: clock.elapsed().saturating_sub(begun) }
    }
}

/// What a question is asked on.
struct Talking<'a> {
    network: &'a Network,
    clock: &'a Clock,
    /// The cluster's own apiserver, for whom the Service `kubernetes` stands.
    client: Option<&'a Client>,
}

impl Talking<'_> {
    async fn reply(&self, from: IpAddr, question: &Question) -> NetworkReply {
        let clock = self.clock;
        let connected = Connected::default();
        let asked = self.begin(from, &question.what, &connected);
        match clock.timeout(question.within.min(MAX_WAIT), asked).await {
            Ok(reply) => reply,
            // Whoever looks whether somebody is there waits for the connection alone.
            Err(_) => NetworkReply::TimedOut(connected.is_there()),
        }
    }

    async fn begin(&self, from: IpAddr, what: &NetworkAsk, connected: &Connected) -> NetworkReply {
        match what {
            NetworkAsk::Http(http) => match self.web(from, http, connected).await {
                Ok(reply) | Err(reply) => reply,
            },
            NetworkAsk::Tcp { to, send, reads } => {
                let send = reads.then_some(send.as_slice());
                self.say(from, *to, send, connected).await.unwrap_or_else(|reply| reply)
            }
            NetworkAsk::Udp { to, send } => {
                let datagram = Bytes::from(send.clone());
                match self.network.ask(from, local(*to, from), datagram).await {
                    Ok(Some(answer)) => NetworkReply::Bytes(Arc::new(answer.to_vec())),
                    // Whoever hears nothing waits as long as he likes.
                    Ok(None) => std::future::pending().await,
                    Err(refusal) => refused(refusal),
                }
            }
            NetworkAsk::Tls { to, trust } => {
                self.shake_hands(from, *to, trust, connected).await.unwrap_or_else(|reply| reply)
            }
            NetworkAsk::Ping(to) => {
                match self.network.ping(from, local(SocketAddr::new(*to, 0), from).ip()).await {
                    Ok(_) => NetworkReply::Echo,
                    Err(_) => std::future::pending().await,
                }
            }
        }
    }

    /// What a connection says until its end; nothing where nobody says anything, and nobody reads.
    async fn say(
        &self,
        from: IpAddr,
        to: SocketAddr,
        send: Option<&[u8]>,
        connected: &Connected,
    ) -> Result<NetworkReply, NetworkReply> {
        let mut stream = self.network.connect(from, local(to, from)).await.map_err(refused)?;
        connected.note();
        let Some(send) = send else { return Ok(NetworkReply::Bytes(Arc::default())) };
        let said = stream.write_all(send).await.and(stream.shutdown().await);
        let mut heard = Vec::new();
        let limit = MAX_ANSWER_BYTES as u64;
        let read = (&mut stream).take(limit).read_to_end(&mut heard).await;
        // Whoever hangs up early has said what he had to say.
        let _ = said.and(read.map(drop));
        Ok(NetworkReply::Bytes(Arc::new(heard)))
    }

    async fn web(
        &self,
        from: IpAddr,
        asked: &HttpQuestion,
        connected: &Connected,
    ) -> Result<NetworkReply, NetworkReply> {
        let to = asked.to.ok_or(NetworkReply::Unreachable)?;
        if let Some(trust) = asked.tls.as_ref().filter(|_| to.port() == 443)
            && self.is_apiserver(to.ip()).await
        {
            // The cluster's own authority is all that a pod is given to trust.
            connected.note();
            let is_trusted = trust.everybody || trust.authorities.contains("BEGIN CERTIFICATE");
            return if is_trusted { self.ask_apiserver(asked).await } else { Err(NetworkReply::Untrusted) };
        }
        let stream = self.network.connect(from, local(to, from)).await.map_err(refused)?;
        connected.note();
        let Some(trust) = &asked.tls else { return self.web_over(stream, asked).await };
        match tls::connect(stream, &trust.server_name, &peer_trust(trust)).await {
            Ok(stream) => self.web_over(stream, asked).await,
            Err(TlsFailure::NoTls) => Err(NetworkReply::NoTls),
            Err(TlsFailure::Untrusted) => Err(NetworkReply::Untrusted),
            Err(TlsFailure::Ended) => Err(NetworkReply::Empty),
        }
    }

    /// Who is at the other end, whether he is trusted or not.
    async fn shake_hands(
        &self,
        from: IpAddr,
        to: SocketAddr,
        trust: &TlsTrust,
        connected: &Connected,
    ) -> Result<NetworkReply, NetworkReply> {
        let (judge, server_name) = (peer_trust(trust), &trust.server_name);
        let anybody = tls::PeerTrust { everybody: true, ..judge.clone() };
        let tries = [(&judge, !trust.everybody), (&anybody, false)];
        for (trust, is_trusted) in tries {
            let stream = self.network.connect(from, local(to, from)).await.map_err(refused)?;
            connected.note();
            match tls::connect(stream, server_name, trust).await {
                Ok(stream) => {
                    let tls::ShownIdentity { chain, protocol, cipher } = tls::shown(&stream);
                    return Ok(NetworkReply::Peer(Arc::new(TlsPeer { chain, is_trusted, protocol, cipher })));
                }
                Err(TlsFailure::NoTls) => return Err(NetworkReply::NoTls),
                Err(TlsFailure::Ended) => return Err(NetworkReply::Empty),
                Err(TlsFailure::Untrusted) => {}
            }
        }
        Err(NetworkReply::Untrusted)
    }

    async fn web_over<Io>(&self, io: Io, asked: &HttpQuestion) -> Result<NetworkReply, NetworkReply>
    where
        Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let request = request(asked).ok_or(NetworkReply::Empty)?;
        let said = asked.goes_on.as_deref().unwrap_or_default();
        let response = http_client::ask_whole(self.clock, io, request, (said, MAX_ANSWER_BYTES)).await;
        Ok(web_reply(response.map_err(|_| NetworkReply::Empty)?, written))
    }

    /// Whether an address is that of the Service `kubernetes`: it stands before this cluster's own apiserver.
    async fn is_apiserver(&self, address: IpAddr) -> bool {
        let Some(client) = self.client else { return false };
        let service = client.get(&SERVICES, "default", "kubernetes").await;
        service.is_ok_and(|service| service.view::<Service>().spec.cluster_ip == address.to_string())
    }

    /// Whoever asks says by his headers who he is, as over a socket.
    async fn ask_apiserver(&self, asked: &HttpQuestion) -> Result<NetworkReply, NetworkReply> {
        let request = request(asked).ok_or(NetworkReply::Empty)?.map(|body| body.to_vec());
        let client = self.client.ok_or(NetworkReply::Unreachable)?;
        if asked.goes_on.is_some() {
            return self.go_on_with_apiserver(client, asked).await;
        }
        let (head, body) = client.as_it_is(request).await.into_parts();
        let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await.map(|body| body.to_bytes());
        // Over HTTP/2 all names are small.
        Ok(web_reply(Response::from_parts(head, body.unwrap_or_default()), str::to_owned))
    }

    /// What goes on with something else is a connection of its own, as over a socket.
    async fn go_on_with_apiserver(
        &self,
        client: &Client,
        asked: &HttpQuestion,
    ) -> Result<NetworkReply, NetworkReply> {
        let (near, far) = network::pipe::connection();
        let client = client.clone();
        let answer = move |request: Request<Bytes>| {
            let client = client.clone();
            async move {
                let request = request.map(|body| body.to_vec());
                let (head, body) = client.as_it_is(request).await.into_parts();
                let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await;
                let body = body.map(|body| body.to_bytes()).unwrap_or_default();
                Response::from_parts(head, body)
            }
        };
        // It ends with the connection, which ends with whoever asks.
        self.clock.spawn(http_server::serve_and_go_on(far, answer));
        self.web_over(near, asked).await
    }
}

fn peer_trust(trust: &TlsTrust) -> tls::PeerTrust {
    let TlsTrust { everybody, authorities, own, .. } = trust;
    tls::PeerTrust { everybody: *everybody, authorities: authorities.clone(), own: own.clone() }
}

/// Loopback is the pod's own.
fn local(to: SocketAddr, from: IpAddr) -> SocketAddr {
    if to.ip().is_loopback() || to.ip().is_unspecified() { SocketAddr::new(from, to.port()) } else { to }
}

fn refused(refusal: Refusal) -> NetworkReply {
    match refusal.obstacle {
        Obstacle::Refused => NetworkReply::Refused,
        Obstacle::TimedOut => NetworkReply::TimedOut(false),
        Obstacle::Unreachable => NetworkReply::Unreachable,
    }
}

/// Nothing for what HTTP cannot say.
fn request(asked: &HttpQuestion) -> Option<Request<Bytes>> {
    let mut request = Request::builder().method(asked.method.as_str()).uri(asked.target.as_str());
    for (name, value) in &asked.headers {
        request = request.header(HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?);
    }
    request.body(Bytes::from(asked.body.clone())).ok()
}

/// As servers of HTTP/1.1 write a name: whoever reads it here is told all of them in small letters.
fn written(name: &str) -> String {
    match name {
        "etag" => "ETag".to_owned(),
        "www-authenticate" => "WWW-Authenticate".to_owned(),
        name => canonical(name),
    }
}

fn web_reply(response: Response<Bytes>, name_of: impl Fn(&str) -> String) -> NetworkReply {
    let (head, body) = response.into_parts();
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = head.headers.iter().map(|(name, value)| (name_of(name.as_str()), text(value))).collect();
    NetworkReply::Web(Arc::new(WebReply { code: head.status.as_u16(), headers, body: body.to_vec() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_headers_are_those_of_servers() {
        let response = Response::builder().header("etag", "\"a\"").header("content-type", "b");
        let NetworkReply::Web(web) = web_reply(response.body(Bytes::new()).unwrap(), written) else {
            panic!("no answer")
        };
        let names: Vec<&str> = web.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["ETag", "Content-Type"]);
    }
}
