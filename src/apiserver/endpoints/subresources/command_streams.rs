//! The streams of `exec` and `attach` (`k8s.io/kubelet/pkg/cri/streaming/remotecommand`): which of them the
//! client wants, the protocol that both agree on, and how the outcome is told.

use futures::FutureExt;
use futures::future::BoxFuture;
use hyper::upgrade::OnUpgrade;
use serde_json::json;

use super::asked_streams::AskedStreams;
use super::spdy_channels::{self, SpdyChannels};
use super::streams::{self, ChannelEncoding, Channels, UpgradeTo, WebSocket};
use crate::endpoints::handlers::request_scope::Scope;
use crate::endpoints::response::answer::Answer;
use crate::kubelet_client::{Duplex, WindowSize};
use apimachinery::status::Status;

/// The one that client-go speaks over websockets.
const NEWEST: &str = "v5.channel.k8s.io";
/// The newest first among those that say the same.
const PROTOCOLS: &[&str] =
    &[NEWEST, "v4.channel.k8s.io", "v4.base64.channel.k8s.io", "channel.k8s.io", "base64.channel.k8s.io"];
/// The newest first over SPDY, where an older one has a text for the outcome, and none is the oldest.
const SPDY_PROTOCOLS: &[&str] = &["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", ""];
pub(super) const OUT: u8 = 1;
pub(super) const ERRORS: u8 = 2;
/// Where the outcome goes.
const STATUS: u8 = 3;
/// `v5`: the channel that is named has ended.
pub(super) const CLOSED: u8 = 255;

/// What is said over the streams, until its end.
pub(super) type CommandTalk = Box<dyn FnOnce(Box<dyn Channels>, Outcomes) -> BoxFuture<'static, ()> + Send>;

/// Which streams there are beside that of the outcome.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandStreams {
    pub reads: bool,
    pub is_terminal: bool,
    /// Which of its outputs are sent.
    pub sends: (bool, bool),
}

/// The code of a command, or why it could not be started.
pub(super) type CommandOutcome = Result<i32, String>;

/// How an outcome is told: the oldest protocols have a text where the others have a Status.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcomes {
    are_statuses: bool,
}

impl CommandStreams {
    /// What the query asks for.
    pub(super) fn of(scope: &Scope) -> CommandStreams {
        let flag = |name| scope.query.flag(name).unwrap_or(false);
        let sends = (flag("stdout"), flag("stderr"));
        CommandStreams { reads: flag("stdin"), is_terminal: flag("tty"), sends }
    }

    /// Agrees on a protocol, and goes on with `talk`.
    pub(super) fn accept(
        self,
        asked: &AskedStreams<'_>,
        (upgrade, wanted): (OnUpgrade, UpgradeTo),
        talk: CommandTalk,
    ) -> Result<Answer, Status> {
        match wanted {
            UpgradeTo::WebSocket => streams::accept(asked, upgrade, PROTOCOLS, |protocol| {
                let outcomes = Outcomes { are_statuses: protocol.starts_with('v') };
                let encoding = ChannelEncoding::of(protocol);
                let is_awaited = protocol == NEWEST && streams::is_late_with_streams(asked.headers);
                let clock = asked.clock.clone();
                Box::new(move |io: Box<dyn Duplex>| {
                    let mut socket = WebSocket::new(io, encoding);
                    let talk = async move {
                        if is_awaited {
                            socket.await_client(&clock).await;
                        }
                        talk(Box::new(socket), outcomes).await;
                    };
                    talk.boxed()
                })
            }),
            UpgradeTo::Spdy => streams::accept_spdy(asked, upgrade, SPDY_PROTOCOLS, |protocol| {
                let outcomes = Outcomes { are_statuses: protocol == SPDY_PROTOCOLS[0] };
                let wanted = self.over_spdy(protocol);
                Box::new(move |io: Box<dyn Duplex>| -> BoxFuture<'static, ()> {
                    let talk = move |channels: SpdyChannels| talk(Box::new(channels), outcomes);
                    spdy_channels::converse(io, wanted, talk).boxed()
                })
            }),
        }
    }

    fn over_spdy(self, protocol: &str) -> spdy_channels::WantedStreams {
        spdy_channels::WantedStreams {
            reads: self.reads,
            sends: self.sends.0,
            sends_errors: self.sends.1 && !self.is_terminal,
            resizes: self.is_terminal && !matches!(protocol, "" | "v2.channel.k8s.io"),
        }
    }

    /// Nothing on the first stream, so that the client knows that they are there.
    pub(super) async fn begin(self, io: &mut dyn Channels) -> std::io::Result<()> {
        let first = match self.sends {
            (true, _) => OUT,
            (_, true) => ERRORS,
            _ => STATUS,
        };
        io.send(first, b"").await
    }
}

/// The size that was said last; nothing where that is none.
pub(super) fn window_of(bytes: &[u8]) -> Option<WindowSize> {
    let said = serde_json::Deserializer::from_slice(bytes).into_iter::<WindowSize>();
    said.map_while(Result::ok).last()
}

impl Outcomes {
    /// As the newest protocols have them.
    #[cfg(test)]
    pub(super) fn of_statuses() -> Outcomes {
        Outcomes { are_statuses: true }
    }

    /// Tells how it ended. `verb` is what was done: executing a command, or attaching to one.
    pub(super) async fn tell(
        self,
        io: &mut dyn Channels,
        verb: &str,
        outcome: CommandOutcome,
    ) -> std::io::Result<()> {
        if !self.are_statuses {
            return match outcome {
                Ok(0) => Ok(()),
                Ok(code) => {
                    let text = format!("command terminated with non-zero exit code: exit status {code}");
                    io.send(STATUS, text.as_bytes()).await
                }
                Err(why) => io.send(STATUS, why.as_bytes()).await,
            };
        }
        let status = match outcome {
            Ok(0) => json!({"metadata": {}, "status": "Success"}),
            Ok(code) => json!({"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
                "message": format!("command terminated with non-zero exit code: exit status {code}"),
                "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]}}),
            Err(why) => json!({"metadata": {}, "status": "Failure", "reason": "InternalError", "code": 500,
                "message": format!("Internal error occurred: error {verb} container: {why}"),
                "details": {"causes": [{"message": why}]}}),
        };
        io.send(STATUS, status.to_string().as_bytes()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_size_that_is_whole_counts() {
        let size = |bytes: &[u8]| window_of(bytes).map(|size| (size.width, size.height));
        assert_eq!(size(br#"{"Width":120,"Height":40}"#), Some((120, 40)));
        assert_eq!(size(b"{\"Width\":1,\"Height\":2}\n{\"Width\":3,\"Height\":4}\n"), Some((3, 4)));
        for none in [&b""[..], b"{", b"[]", br#"{"Width":70000,"Height":1}"#] {
            assert_eq!(size(none), None);
        }
    }
}
