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
use crate::kubelet_client::{ExecRequest, Executed, KubeletLookup, TerminalStreams, WindowSize};
use apimachinery::status::Status;
use apis::tree::text;

/// A command reads no more: that is more than fits on a container's disk.
const MAX_INPUT_BYTES: usize = 3 << 20;

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
        let outcome = match (self.streams.reads, is_shell(&self.request.command)) {
            (true, _) if self.streams.is_terminal => self.sit(io).await?,
            (true, true) => self.feed_lines(io).await?,
            (true, false) if repeats(&self.request.command) => self.repeat(io).await?,
            _ => self.run_fed(io).await?,
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

    /// All that the client sends, until it says that there is no more.
    async fn input(&mut self, io: &mut dyn Channels) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while let Message::Data(channel, data) = self.receive(io).await? {
            match channel {
                0 if bytes.len() < MAX_INPUT_BYTES => bytes.extend_from_slice(&data),
                CLOSED => break,
                _ => {}
            }
        }
        Ok(bytes)
    }

    /// A command that reads is given all that there is to read.
    async fn run_fed(&mut self, io: &mut dyn Channels) -> std::io::Result<Option<CommandOutcome>> {
        self.request.is_fed = self.streams.reads;
        let executed = self.kubelets.exec(self.request.clone()).await;
        if !self.streams.reads || !executed.as_ref().is_ok_and(|executed| executed.is_waiting) {
            return self.tell(io, executed).await.map(Some);
        }
        self.request.standard_input = Some(self.input(io).await?);
        self.request.is_fed = false;
        let executed = self.kubelets.exec(self.request.clone()).await;
        self.tell(io, executed).await.map(Some)
    }

    /// Sends what it says; its code, or why it could not be started.
    async fn tell(
        &self,
        io: &mut dyn Channels,
        executed: Result<Executed, Status>,
    ) -> std::io::Result<CommandOutcome> {
        let Executed { code, out, errors, .. } = match executed {
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

    /// A line for the shell. It has ended when what it remembers is gone.
    async fn enter(&mut self, io: &mut dyn Channels, line: String) -> std::io::Result<Entered> {
        let shell = self.request.shell.take().unwrap_or_default();
        let program = self.request.command[0].clone();
        let (command, is_fed) = ([program, line].to_vec(), true);
        let request = ExecRequest { command, is_fed, shell: Some(shell.clone()), ..self.request.clone() };
        let executed = self.kubelets.exec(request).await;
        if executed.as_ref().is_ok_and(|executed| executed.is_waiting) {
            self.request.shell = Some(shell);
            return Ok(Entered::GoesOn);
        }
        self.request.shell = executed.as_ref().ok().and_then(|executed| executed.shell.clone());
        let outcome = self.tell(io, executed).await?;
        Ok(if self.request.shell.is_some() { Entered::Done(outcome) } else { Entered::Ended(outcome) })
    }

    /// A shell without a terminal: what comes is run as soon as its last line is whole.
    async fn feed_lines(&mut self, io: &mut dyn Channels) -> std::io::Result<Option<CommandOutcome>> {
        let (mut pending, mut last) = (Vec::new(), self.begin().await);
        while last.is_ok() {
            let is_over = match self.receive(io).await? {
                Message::Data(0, bytes) if pending.len() < MAX_INPUT_BYTES => {
                    pending.extend_from_slice(&bytes);
                    false
                }
                Message::Data(CLOSED, _) => true,
                Message::Data(..) | Message::Ping(_) => continue,
                Message::Close => return Ok(None),
            };
            let whole = if is_over {
                pending.len()
            } else {
                pending.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
            };
            let lines = String::from_utf8_lossy(&pending[..whole]).into_owned();
            if !lines.trim().is_empty() {
                match self.enter(io, lines).await? {
                    Entered::GoesOn if !is_over => continue,
                    Entered::GoesOn => {
                        let errors =
                            format!("{}: syntax error: unexpected end of file\n", self.request.command[0]);
                        let executed = Executed { code: 2, errors: errors.into(), ..Executed::default() };
                        last = self.tell(io, Ok(executed)).await?;
                    }
                    Entered::Done(outcome) => last = outcome,
                    Entered::Ended(outcome) => return Ok(Some(outcome)),
                }
            }
            pending.drain(..whole);
            if is_over {
                break;
            }
        }
        Ok(Some(last))
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

    /// A terminal: the command hears what is typed while it runs.
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

/// What became of a line.
enum Entered {
    Done(CommandOutcome),
    /// The shell ended with it.
    Ended(CommandOutcome),
    /// The next line belongs to it.
    GoesOn,
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

fn is_shell(command: &[String]) -> bool {
    let name = command.first().map_or("", |program| program.rsplit('/').next().unwrap_or(program));
    matches!(name, "sh" | "bash" | "ash") && command.len() == 1
}

/// `cat`, also as a shell's only command.
fn repeats(command: &[String]) -> bool {
    match command {
        [program] => program.rsplit('/').next() == Some("cat"),
        [shell, flag, script] => {
            is_shell(std::slice::from_ref(shell)) && flag == "-c" && script.trim() == "cat"
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
    use crate::kubelet_client::{AttachedStreams, LogRequest, Shell};

    /// Says how large the window is, whatever it is asked.
    struct Windows;

    impl KubeletLookup for Windows {
        fn logs(&self, _: LogRequest) -> BoxFuture<'_, Result<Body, Status>> {
            unreachable!("nobody asks for logs")
        }

        fn exec(&self, request: ExecRequest) -> BoxFuture<'_, Result<Executed, Status>> {
            assert_eq!(request.window, None);
            let shell = Some(Shell::new());
            async move { Ok(Executed { out: "<none>".into(), shell, ..Executed::default() }) }.boxed()
        }

        fn exec_at_terminal(&self, request: ExecRequest) -> BoxFuture<'_, Result<TerminalStreams, Status>> {
            let (says, mut heard) = mpsc::channel::<Vec<u8>>(1);
            let (to_client, said) = mpsc::channel(1);
            let (tells_end, ended) = oneshot::channel();
            let mut shown = request.window.unwrap();
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
        assert_eq!(said("top", false, &[wide]).await, "<none>");
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
