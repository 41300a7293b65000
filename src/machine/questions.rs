//! What programs ask the network, and what it answers.
//!
//! Nothing waits while a script is played. A script that asks is played up to the first question that has
//! no answer yet; whoever plays asks the network, adds the answer to those before, and plays again. Equal
//! answers make equal plays, whenever and however often.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// How long a kernel goes on asking who does not answer.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(127);

/// So many questions may one process ask; one that asks more waits for an answer for ever, and its log says
/// so.
pub const MAX_QUESTIONS: usize = 1000;
/// So much is kept of an answer; what is longer is cut off.
pub const MAX_ANSWER_BYTES: usize = 256 << 10;
/// So much may all answers to one process take; with more it waits for the next one for ever.
pub const MAX_HEARD_BYTES: usize = 4 << 20;

/// What is asked, and how long somebody waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What is asked.
    pub what: NetworkAsk,
    /// How long the whole of it may take.
    pub within: Duration,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkAsk {
    /// A request over HTTP/1.1.
    Http(Box<HttpQuestion>),
    /// A connection over TCP: what is sent, and whether anybody reads what comes back.
    Tcp {
        /// To whom.
        to: SocketAddr,
        /// What is said.
        send: Vec<u8>,
        /// Whether what comes back is read until the other side ends.
        reads: bool,
    },
    /// A datagram.
    Udp {
        /// To whom.
        to: SocketAddr,
        /// What it says.
        send: Vec<u8>,
    },
    /// A connection over TLS, of which nothing but its beginning is wanted.
    Tls {
        /// To whom.
        to: SocketAddr,
        /// Whom it would trust; who is not among them is heard all the same.
        trust: Box<TlsTrust>,
    },
    /// An echo request.
    Ping(IpAddr),
}

impl NetworkAsk {
    /// Whom it is asked, by which protocol of a port; an echo request has none.
    pub fn destination(&mut self) -> Option<(&mut SocketAddr, &'static str)> {
        match self {
            NetworkAsk::Http(asked) => asked.to.as_mut().map(|to| (to, "TCP")),
            NetworkAsk::Tcp { to, .. } | NetworkAsk::Tls { to, .. } => Some((to, "TCP")),
            NetworkAsk::Udp { to, .. } => Some((to, "UDP")),
            NetworkAsk::Ping(_) => None,
        }
    }
}

/// A request over HTTP/1.1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpQuestion {
    /// To whom; nothing asks nobody.
    pub to: Option<SocketAddr>,
    /// `GET`
    pub method: String,
    /// The path with its query.
    pub target: String,
    /// Names and values, in their order.
    pub headers: Vec<(String, String)>,
    /// What is sent.
    pub body: Vec<u8>,
    /// Over TLS.
    pub tls: Option<TlsTrust>,
    /// What is said when the connection goes on with something else (101); what is heard then until its end
    /// is the page that comes back. Nothing asks for no such thing.
    pub goes_on: Option<Vec<u8>>,
}

/// Whom a client trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsTrust {
    /// The name that the certificate must have.
    pub server_name: String,
    /// Anybody (`curl -k`).
    pub everybody: bool,
    /// Those whom these certificates vouch for; with none, nobody here.
    pub authorities: String,
    /// The client's own certificates and their key, for servers that ask for them; nothing shows none.
    pub own: String,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkReply {
    /// An answer over HTTP.
    Web(Arc<WebReply>),
    /// What a connection said, or a datagram.
    Bytes(Arc<Vec<u8>>),
    /// Who is at the other end of TLS.
    Peer(Arc<TlsPeer>),
    /// It is there.
    Echo,
    /// Nobody listens there (`ECONNREFUSED`).
    Refused,
    /// Nobody has that address (`EHOSTUNREACH`).
    Unreachable,
    /// Nothing came back in time; whether there was a connection.
    TimedOut(bool),
    /// The connection ended before anything was said.
    Empty,
    /// Who answers speaks no TLS.
    NoTls,
    /// Nobody vouches for who answers.
    Untrusted,
}

/// An answer over HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebReply {
    /// As `200`.
    pub code: u16,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// The page, up to [`MAX_ANSWER_BYTES`].
    pub body: Vec<u8>,
}

/// Who showed himself over TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsPeer {
    /// His certificates, as DER, his own first; none where that is not known.
    pub chain: Vec<Vec<u8>>,
    /// Whether he is trusted.
    pub is_trusted: bool,
    /// As `TLSv1.3`.
    pub protocol: String,
    /// As `TLS_AES_256_GCM_SHA384`.
    pub cipher: String,
}

/// A question that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// With what.
    pub reply: NetworkReply,
    /// How long that took.
    pub took: Duration,
}

impl Answered {
    /// What it takes to keep it.
    pub fn bytes(&self) -> usize {
        match &self.reply {
            NetworkReply::Web(web) => {
                web.body.len()
                    + web.headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
            }
            NetworkReply::Bytes(bytes) => bytes.len(),
            NetworkReply::Peer(peer) => peer.chain.iter().map(Vec::len).sum(),
            _ => 0,
        }
    }
}

impl WebReply {
    /// A header's value, whatever the case of its name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// The words that go with a code (`http.StatusText`).
pub(crate) fn phrase(code: u16) -> &'static str {
    match code {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        413 => "Payload Too Large",
        418 => "I'm a teapot",
        422 => "Unprocessable Entity",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}
