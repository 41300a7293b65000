//! `exec`: a command in a container, over a websocket or SPDY
//! (`registry/core/pod/rest/subresources.go`, and what a kubelet makes of it). The kubelets here are
//! simulated, and so is what the command does.

use std::sync::Arc;

use futures::FutureExt;
use hyper::upgrade::OnUpgrade;
use serde_json::Value;

use super::asked_streams::AskedStreams;
use super::attach::pass;
use super::command_streams::{CLOSED, CommandOutcome, CommandStreams, ERRORS, OUT, Outcomes, window_of};
use super::log;
use super::pass_on::{container_target, pass_on};
use super::streams::{Channels, Message, RESIZE, UpgradeTo};
use crate::endpoints::handlers::request_scope::Scope;
use crate::endpoints::response::answer::Answer;
use crate::kubelet_client::{ExecOutcome, ExecRequest, KubeletLookup, TerminalStreams, WindowSize};
use apimachinery::status::Status;
use apis::tree::text;

/// Goes on over a websocket or SPDY.
pub(super) async fn exec(
    scope: &Scope,
    pod: &Value,
    upgrade: (OnUpgrade, UpgradeTo),
) -> Result<Answer, Status> {
    let container = log::container(pod, scope.name(), scope.query.text("container"))?;
    let (node, asked) = (text(pod, "spec.nodeName"), AskedStreams::of(scope));
    if asked.kubelets.is_elsewhere(node) {
        let target = container_target("exec", [scope.namespace(), scope.name(), &container], &asked);
        return pass_on(&asked, Some(upgrade.0), node, &target).await;
    }
    let command: Vec<String> = scope.query.all("command").iter().map(ToString::to_string).collect();
    let request = ExecRequest {
        node: node.into(),
        namespace: scope.namespace().into(),
        pod: scope.name().into(),
        container,
        command,
        ..ExecRequest::default()
    };
    exec_over(&asked, request, CommandStreams::of(scope), upgrade)
}

/// Goes on with a command that is known.
pub(super) fn exec_over(
    asked: &AskedStreams<'_>,
    request: ExecRequest,
    streams: CommandStreams,
    upgrade: (OnUpgrade, UpgradeTo),
) -> Result<Answer, Status> {
    if request.command.is_empty() {
        return Err(Status::bad_request("you must specify at least one command for the container"));
    }
    let window = streams.is_terminal.then(WindowSize::default);
    let request = ExecRequest { window, ..request };
    let session = Session { kubelets: asked.kubelets.clone(), request, streams, unread: None };
    let talk = move |mut io: Box<dyn Channels>, outcomes| {
        // A client that hangs up ends it.
        async move { drop(session.converse(&mut *io, outcomes).await) }.boxed()
    };
    streams.accept(asked, upgrade, Box::new(talk))
}

/// One command, or a shell that somebody types into.
struct Session {
    kubelets: Arc<dyn KubeletLookup>,
    request: ExecRequest,
    streams: CommandStreams,
    /// What came before the command was begun.
    unread: Option<Message>,
}

impl Session {
    async fn converse(mut self, io: &mut dyn Channels, outcomes: Outcomes) -> std::io::Result<()> {
        self.streams.begin(io).await?;
        self.look_at_window(io)?;
        let outcome = if !self.streams.reads {
            self.run(io).await.map(Some)?
        } else if !self.streams.is_terminal && repeats(&self.request.command) {
            self.repeat(io).await?
        } else {
            self.sit(io).await?
        };
        if let Some(outcome) = outcome {
            outcomes.tell(io, "executing command in", outcome).await?;
        }
        io.close().await
    }

    /// What the client has said so far of its window.
    fn look_at_window(&mut self, io: &mut dyn Channels) -> std::io::Result<()> {
        while self.streams.is_terminal && self.unread.is_none() {
            match io.next().now_or_never().transpose()? {
                Some(Message::Data(RESIZE, bytes)) => self.resize(&bytes),
                None => break,
                unread => self.unread = unread,
            }
        }
        Ok(())
    }

    fn resize(&mut self, bytes: &[u8]) {
        if self.streams.is_terminal {
            self.request.window = window_of(bytes).or(self.request.window);
        }
    }

    /// What the client says next, beside the size of its window; pings are answered.
    async fn receive(&mut self, io: &mut dyn Channels) -> std::io::Result<Message> {
        loop {
            let message = match self.unread.take() {
                Some(message) => message,
                None => io.receive().await?,
            };
            match message {
                Message::Ping(payload) => io.pong(&payload).await?,
                Message::Data(RESIZE, bytes) => self.resize(&bytes),
                message => return Ok(message),
            }
        }
    }

    /// A command to which nothing is said.
    async fn run(&self, io: &mut dyn Channels) -> std::io::Result<CommandOutcome> {
        let executed = self.kubelets.exec(self.request.clone()).await;
        self.tell(io, executed).await
    }

    /// Sends what it says; its code, or why it could not be started.
    async fn tell(
        &self,
        io: &mut dyn Channels,
        executed: Result<ExecOutcome, Status>,
    ) -> std::io::Result<CommandOutcome> {
        let ExecOutcome { code, out, errors } = match executed {
            Ok(executed) => executed,
            Err(status) => return Ok(Err(status.message)),
        };
        let errors_to = if self.streams.is_terminal {
            (OUT, self.streams.sends.0)
        } else {
            (ERRORS, self.streams.sends.1)
        };
        for ((channel, is_sent), said) in [((OUT, self.streams.sends.0), out), (errors_to, errors)] {
            if is_sent && !said.is_empty() {
                let said = if self.streams.is_terminal { typewritten(&said) } else { said };
                io.send(channel, &said).await?;
            }
        }
        Ok(Ok(code))
    }

    /// `cat`: what comes goes back.
    async fn repeat(&mut self, io: &mut dyn Channels) -> std::io::Result<Option<CommandOutcome>> {
        let begun = self.begin().await;
        while begun.is_ok() {
            match self.receive(io).await? {
                Message::Data(0, bytes) if self.streams.sends.0 => io.send(OUT, &bytes).await?,
                Message::Data(CLOSED, _) => break,
                Message::Data(..) | Message::Ping(_) => {}
                Message::Close => return Ok(None),
            }
        }
        Ok(Some(begun))
    }

    /// Whether there is a container to run anything in.
    async fn begin(&self) -> CommandOutcome {
        let request = ExecRequest { command: vec!["true".into()], ..self.request.clone() };
        self.kubelets.exec(request).await.map(|executed| executed.code).map_err(|status| status.message)
    }

    /// The command hears what is typed or comes through a pipe while it runs.
    async fn sit(&mut self, io: &mut dyn Channels) -> std::io::Result<Option<CommandOutcome>> {
        let begun = self.kubelets.exec_at_terminal(self.request.clone()).await;
        let TerminalStreams { streams, ended } = match begun {
            Ok(begun) => begun,
            Err(status) => return Ok(Some(Err(status.message))),
        };
        let unheard = match self.unread.take() {
            Some(Message::Data(0, bytes)) => Some(bytes),
            Some(Message::Ping(payload)) => {
                io.pong(&payload).await?;
                None
            }
            Some(Message::Close) => return Ok(None),
            Some(Message::Data(..)) | None => None,
        };
        if !pass(io, self.streams, streams, unheard).await? {
            return Ok(None);
        }
        // The kubelet has stopped.
        Ok(Some(Ok(ended.await.unwrap_or(137))))
    }
}

/// With ends of lines as a terminal has them.
fn typewritten(said: &[u8]) -> Vec<u8> {
    said.split_inclusive(|byte| *byte == b'\n').fold(Vec::with_capacity(said.len()), |mut out, line| {
        match line.strip_suffix(b"\n") {
            Some(line) => out.extend([line, b"\r\n"].concat()),
            None => out.extend_from_slice(line),
        }
        out
    })
}

/// `cat`, also as a shell's only command.
fn repeats(command: &[String]) -> bool {
    let name = |program: &String| program.rsplit('/').next().unwrap_or_default().to_owned();
    match command {
        [program] => name(program) == "cat",
        [shell, flag, script] => {
            matches!(name(shell).as_str(), "sh" | "bash" | "ash") && flag == "-c" && script.trim() == "cat"
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use futures::future::BoxFuture;
    use tokio::sync::{mpsc, oneshot, watch};

    use super::super::streams::{ChannelEncoding, WebSocket};
    use super::*;
    use crate::kubelet_client::{AttachedStreams, LogRequest};

    /// Says how large the window is, whatever it is asked.
    struct Windows;

    impl KubeletLookup for Windows {
        fn logs(&self, _: LogRequest) -> BoxFuture<'_, Result<Body, Status>> {
            unreachable!("nobody asks for logs")
        }

        fn exec(&self, request: ExecRequest) -> BoxFuture<'_, Result<ExecOutcome, Status>> {
            assert_eq!(request.window, None);
            async move { Ok(ExecOutcome { out: "<none>".into(), ..ExecOutcome::default() }) }.boxed()
        }

        fn exec_at_terminal(&self, request: ExecRequest) -> BoxFuture<'_, Result<TerminalStreams, Status>> {
            let (says, mut heard) = mpsc::channel::<Vec<u8>>(1);
            let (to_client, said) = mpsc::channel(1);
            let (tells_end, ended) = oneshot::channel();
            let mut shown = request.window.unwrap_or(WindowSize { width: 0, height: 0 });
            let (sizes, size) = watch::channel(shown);
            tokio::spawn(async move {
                loop {
                    let WindowSize { width, height } = shown;
                    to_client.send((false, format!("<{height} {width}>").into_bytes())).await.unwrap();
                    if heard.recv().await.is_none_or(|bytes| bytes == b"\x04") {
                        break;
                    }
                    shown = *size.borrow();
                }
                tells_end.send(0).unwrap();
            });
            let resize = Box::new(move |window| {
                sizes.send_replace(window);
            });
            let streams = AttachedStreams { says, resize, said };
            async move { Ok(TerminalStreams { streams, ended }) }.boxed()
        }
    }

    fn session(command: &str, is_terminal: bool) -> Session {
        let window = is_terminal.then(WindowSize::default);
        let request = ExecRequest { command: vec![command.into()], window, ..ExecRequest::default() };
        let streams = CommandStreams { reads: true, is_terminal, sends: (true, false) };
        Session { kubelets: Arc::new(Windows), request, streams, unread: None }
    }

    async fn said(command: &str, is_terminal: bool, messages: &[(u8, &str)]) -> String {
        let (client, server) = tokio::io::duplex(1 << 16);
        let socket = |io| WebSocket::new(Box::new(io), ChannelEncoding::Binary);
        let mut client = socket(client);
        for (channel, text) in messages {
            client.send(*channel, text.as_bytes()).await.unwrap();
        }
        let mut io = socket(server);
        let outcomes = Outcomes::of_statuses();
        session(command, is_terminal).converse(&mut io, outcomes).await.unwrap();
        drop(io);
        let mut out = String::new();
        while let Message::Data(channel, bytes) = client.receive().await.unwrap() {
            if channel == OUT {
                out.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
        out
    }

    #[tokio::test]
    async fn a_command_sees_how_large_its_window_is() {
        let wide = (RESIZE, r#"{"Width":132,"Height":43}"#);
        let end = (0, "\u{4}");
        assert_eq!(said("top", true, &[wide, end]).await, "<43 132>");
        assert_eq!(said("top", true, &[end, wide]).await, "<24 80>", "it comes later");
        let no_more = (CLOSED, "\0");
        assert_eq!(said("top", false, &[wide, no_more]).await, "<0 0>", "it has none");
    }

    #[tokio::test]
    async fn a_shell_sees_that_its_window_changes() {
        let sizes = [r#"{"Width":132,"Height":43}"#, r#"{"Width":90,"Height":30}"#];
        let typed =
            [(0, "a\n"), (RESIZE, sizes[0]), (0, "b\n"), (RESIZE, sizes[1]), (0, "c\n"), (0, "\u{4}")];
        let out = said("sh", true, &typed).await;
        let shown: Vec<&str> = out.split('<').skip(1).filter_map(|it| it.split('>').next()).collect();
        // It is as large as whoever sits there has said by then.
        assert_eq!((shown[0], *shown.last().unwrap()), ("24 80", "30 90"), "{shown:?}");
    }
}
