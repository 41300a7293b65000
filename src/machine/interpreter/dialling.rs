//! `/dev/tcp/HOST/PORT` and `/dev/udp/HOST/PORT` in redirections, of which bash makes connections.
//!
//! Whoever opens one learns whether anybody is there. What is written is kept until somebody reads, or until
//! the command is over: then it is said on a connection, and what comes back until its end is what is read.

use std::net::SocketAddr;
use std::time::Duration;

use super::connections::ShellConnection;
use super::dialect::Dialect;
use super::player::{AfterCommand, Player, Sink};
use crate::bounds::{MAX_MEMORY_BYTES, ScriptFault};
use crate::byte_text;
use crate::programs::resolve;
use crate::questions::{CONNECT_TIMEOUT, NetworkAsk, NetworkReply, Question};

/// How long somebody has to take what is said to him who hears no answer.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);
/// A process has so many open files; the next one is refused.
const MAX_CONNECTIONS: usize = 1024;

impl Player<'_> {
    /// Opens the connection that a path means: its number, and no number where nobody is there, which is
    /// told. Nothing for a path that is a file's, as all are but in bash.
    pub(crate) fn dial(&mut self, path: &str, hears: bool) -> Option<Option<usize>> {
        let rest = path.strip_prefix("/dev/").filter(|_| self.dialect == Dialect::Bash)?;
        let (protocol, place) = rest.split_once('/')?;
        let is_udp = match protocol {
            "tcp" => false,
            "udp" => true,
            _ => return None,
        };
        let (host, port) = place.split_once('/')?;
        let opened = self.open_connection(host, port, is_udp);
        let to = match opened {
            Ok(to) => to,
            Err(Undialled::Pending(flow)) => {
                self.pending = Some(flow);
                return Some(None);
            }
            Err(Undialled::Because(first, why)) => {
                self.complain(&first);
                let said = self.says_shell(&format!("{path}: {why}"));
                self.complain(&said);
                return Some(None);
            }
        };
        self.connections.push(ShellConnection { to, is_udp, hears, unsent: vec![], is_over: false });
        Some(Some(self.connections.len() - 1))
    }

    fn open_connection(&mut self, host: &str, port: &str, is_udp: bool) -> Result<SocketAddr, Undialled> {
        let because = |first: String, why| Err(Undialled::Because(first, why));
        let Ok(port) = port.parse() else {
            let what = "Servname not supported for ai_socktype";
            return because(self.says_shell(&format!("{port}: {what}")), "Invalid argument");
        };
        let Some(address) = resolve(self, host)? else {
            let first = self.says_shell(&format!("{host}: Name or service not known"));
            return because(first, "Invalid argument");
        };
        if self.connections.len() >= MAX_CONNECTIONS {
            return because(format!("{}: socket: Too many open files\n", self.name), "Too many open files");
        }
        let to = SocketAddr::new(address, port);
        let what = NetworkAsk::Tcp { to, send: vec![], reads: false };
        // Of a datagram nobody knows before whether it comes to anybody.
        let asks = !is_udp;
        let why = match asks.then(|| self.ask(Question { what, within: CONNECT_TIMEOUT })).transpose()? {
            Some(NetworkReply::Refused) => "Connection refused",
            Some(NetworkReply::Unreachable) => "No route to host",
            Some(NetworkReply::TimedOut(_)) => "Connection timed out",
            _ => return Ok(to),
        };
        because(format!("{}: connect: {why}\n", self.name), why)
    }

    /// Keeps what is written to a connection.
    pub(crate) fn put_into_connection(&mut self, at: usize, text: &str) {
        self.connections[at].unsent.extend_from_slice(&byte_text::bytes_of(text));
        if self.connections.iter().map(|connection| connection.unsent.len()).sum::<usize>() > MAX_MEMORY_BYTES
        {
            self.stop(ScriptFault::Memory);
        }
    }

    /// Says what was written, and hears all that comes back; nothing when that is not known yet.
    pub(crate) fn hear_connection(&mut self, at: usize) -> Option<String> {
        let connection = &mut self.connections[at];
        if std::mem::replace(&mut connection.is_over, true) && connection.unsent.is_empty() {
            return Some(String::new());
        }
        match self.say_to_connection(at, CONNECT_TIMEOUT) {
            Ok(NetworkReply::Bytes(bytes)) => Some(byte_text::text_of(&bytes)),
            Ok(_) => Some(String::new()),
            Err(flow) => {
                self.pending = Some(flow);
                None
            }
        }
    }

    /// Makes what a connection says the input of a descriptor that leads to it. Whether that is known yet.
    pub(crate) fn hear_descriptor(&mut self, descriptor: u8) -> bool {
        let Some(Sink::Connection(at)) = self.more_sinks.get(&descriptor) else { return true };
        let Some(heard) = self.hear_connection(*at) else { return false };
        self.more_inputs.entry(descriptor).or_default().push_str(&heard);
        true
    }

    /// Says what was written to those of whom nobody hears anything. How it goes on, if not as before.
    pub(crate) fn send_to_connections(&mut self) -> Option<AfterCommand> {
        for at in 0..self.connections.len() {
            let connection = &self.connections[at];
            // An empty line is how scripts look whether anybody is there.
            let has_words = !connection.unsent.trim_ascii().is_empty();
            if !connection.hears
                && has_words
                && let Err(flow) = self.say_to_connection(at, SEND_TIMEOUT)
            {
                return Some(flow);
            }
        }
        None
    }

    fn say_to_connection(&mut self, at: usize, within: Duration) -> Result<NetworkReply, AfterCommand> {
        let ShellConnection { to, is_udp, ref mut unsent, .. } = self.connections[at];
        let send = std::mem::take(unsent);
        let what =
            if is_udp { NetworkAsk::Udp { to, send } } else { NetworkAsk::Tcp { to, send, reads: true } };
        self.ask(Question { what, within })
    }
}

/// Why there is no connection.
enum Undialled {
    /// How the play goes on until that is known.
    Pending(AfterCommand),
    /// What is said first, and why the file could not be opened.
    Because(String, &'static str),
}

impl From<AfterCommand> for Undialled {
    fn from(flow: AfterCommand) -> Undialled {
        Undialled::Pending(flow)
    }
}
