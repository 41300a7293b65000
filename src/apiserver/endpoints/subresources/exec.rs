//! `exec`: a command in a container, over a websocket or SPDY
//! (`registry/core/pod/rest/subresources.go`, and what a kubelet makes of it). The kubelets here are
//! simulated, and so is what the command does.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use hyper::upgrade::OnUpgrade;
use serde_json::json;

use super::log;
use super::spdy_channels::{self, SpdyChannels};
use super::streams::{self, Channels, Conversation, Message, UpgradeTo, WebSocket};
use crate::endpoints::handlers::request_scope::Scope;
use crate::endpoints::response::answer::Answer;
use crate::kubelet_client::{Duplex, ExecRequest, Executed, KubeletLookup};
use apimachinery::status::Status;

/// The newest first among those that say the same.
const PROTOCOLS: &[&str] = &["v5.channel.k8s.io", "v4.channel.k8s.io", "channel.k8s.io"];
/// The newest first over SPDY, where an older one has a text for the outcome, and none is the oldest.
const SPDY_PROTOCOLS: &[&str] = &["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", ""];
const OUT: u8 = 1;
const ERRORS: u8 = 2;
/// Where the outcome goes.
const STATUS: u8 = 3;
/// `v5`: the channel that is named has ended.
const CLOSED: u8 = 255;
/// A command reads no more.
const MAX_INPUT_BYTES: usize = 1 << 20;
const PROMPT: &str = "/ # ";

/// Goes on over a websocket or SPDY.
pub(crate) async fn exec(scope: &Scope, upgrade: OnUpgrade, wanted: UpgradeTo) -> Result<Answer, Status> {
    let pod = scope.server.registry.get(&scope.kind, scope.namespace(), scope.name(), None).await?;
    let tree = pod.to_value();
    let container = log::container(&tree, scope.name(), scope.query.text("container"))?;
    let command: Vec<String> = scope.query.all("command").iter().map(ToString::to_string).collect();
    if command.is_empty() {
        return Err(Status::bad_request("you must specify at least one command for the container"));
    }
    let flag = |name| scope.query.flag(name).unwrap_or(false);
    let session = Session {
        kubelets: scope.server.kubelets.clone(),
        request: ExecRequest {
            node: tree["spec"]["nodeName"].as_str().unwrap_or_default().into(),
            namespace: scope.namespace().into(),
            pod: scope.name().into(),
            container,
            command,
            standard_input: None,
            is_fed: false,
            shell: None,
        },
        reads: flag("stdin"),
        is_terminal: flag("tty"),
        sends: (flag("stdout"), flag("stderr")),
        tells_status: true,
    };
    match wanted {
        UpgradeTo::WebSocket => {
            streams::accept(&scope.headers, upgrade, PROTOCOLS, |protocol| session.over_websocket(protocol))
        }
        UpgradeTo::Spdy => streams::accept_spdy(&scope.headers, upgrade, SPDY_PROTOCOLS, |protocol| {
            session.over_spdy(protocol)
        }),
    }
}

/// One command, or a shell that somebody types into.
struct Session {
    kubelets: Arc<dyn KubeletLookup>,
    request: ExecRequest,
    reads: bool,
    is_terminal: bool,
    /// Which of its outputs are sent.
    sends: (bool, bool),
    /// The oldest protocol has a text where the others have a Status.
    tells_status: bool,
}

/// The code of a command, or why it could not be started.
type Outcome = Result<i32, String>;

impl Session {
    fn over_websocket(mut self, protocol: &'static str) -> Conversation {
        self.tells_status = protocol != "channel.k8s.io";
        Box::new(move |io: Box<dyn Duplex>| -> BoxFuture<'static, ()> {
            // A client that hangs up ends it.
            async move { drop(self.converse(&mut WebSocket(io)).await) }.boxed()
        })
    }

    fn over_spdy(mut self, protocol: &'static str) -> Conversation {
        self.tells_status = protocol == SPDY_PROTOCOLS[0];
        let wanted = spdy_channels::WantedStreams {
            reads: self.reads,
            sends: self.sends.0,
            sends_errors: self.sends.1 && !self.is_terminal,
            resizes: self.is_terminal && !matches!(protocol, "" | "v2.channel.k8s.io"),
        };
        Box::new(move |io: Box<dyn Duplex>| -> BoxFuture<'static, ()> {
            let talk = |mut channels: SpdyChannels| -> BoxFuture<'static, ()> {
                async move { drop(self.converse(&mut channels).await) }.boxed()
            };
            spdy_channels::converse(io, wanted, talk).boxed()
        })
    }

    async fn converse(mut self, io: &mut dyn Channels) -> std::io::Result<()> {
        let first = if self.sends.0 { OUT } else { STATUS };
        let first = if !self.sends.0 && self.sends.1 { ERRORS } else { first };
        // Nothing, so that the client knows that the streams are there.
        io.send(first, b"").await?;
        let outcome = match (self.reads, is_shell(&self.request.command)) {
            (true, true) if self.is_terminal => self.type_into(io).await?,
            (true, true) => self.feed_lines(io).await?,
            (true, false) if repeats(&self.request.command) => self.repeat(io).await?,
            _ => self.run_fed(io).await?,
        };
        if let Some(outcome) = outcome {
            self.finish(io, outcome).await?;
        }
        io.close().await
    }

    /// A command that reads is given all that there is to read.
    async fn run_fed(&mut self, io: &mut dyn Channels) -> std::io::Result<Option<Outcome>> {
        self.request.is_fed = self.reads;
        let executed = self.kubelets.exec(self.request.clone()).await;
        if !self.reads || !executed.as_ref().is_ok_and(|executed| executed.is_waiting) {
            return self.tell(io, executed).await.map(Some);
        }
        self.request.standard_input = Some(input(io).await?);
        self.request.is_fed = false;
        let executed = self.kubelets.exec(self.request.clone()).await;
        self.tell(io, executed).await.map(Some)
    }

    /// Sends what it says; its code, or why it could not be started.
    async fn tell(
        &self,
        io: &mut dyn Channels,
        executed: Result<Executed, Status>,
    ) -> std::io::Result<Outcome> {
        let Executed { code, out, errors, .. } = match executed {
            Ok(executed) => executed,
            Err(status) => return Ok(Err(status.message)),
        };
        let text = |text: String| if self.is_terminal { text.replace('\n', "\r\n") } else { text };
        let errors_to = if self.is_terminal { (OUT, self.sends.0) } else { (ERRORS, self.sends.1) };
        for ((channel, is_sent), said) in [((OUT, self.sends.0), out), (errors_to, errors)] {
            if is_sent && !said.is_empty() {
                io.send(channel, text(said).as_bytes()).await?;
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
    async fn feed_lines(&mut self, io: &mut dyn Channels) -> std::io::Result<Option<Outcome>> {
        let (mut pending, mut last) = (Vec::new(), self.begin().await);
        while last.is_ok() {
            let is_over = match io.receive().await? {
                Message::Data(0, bytes) if pending.len() < MAX_INPUT_BYTES => {
                    pending.extend_from_slice(&bytes);
                    false
                }
                Message::Data(CLOSED, _) => true,
                Message::Data(..) => continue,
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
                        let executed = Executed { code: 2, errors, ..Executed::default() };
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
    async fn repeat(&mut self, io: &mut dyn Channels) -> std::io::Result<Option<Outcome>> {
        let begun = self.begin().await;
        while begun.is_ok() {
            match io.receive().await? {
                Message::Data(0, bytes) if self.sends.0 => io.send(OUT, &bytes).await?,
                Message::Data(CLOSED, _) => break,
                Message::Data(..) => {}
                Message::Close => return Ok(None),
            }
        }
        Ok(Some(begun))
    }

    /// Whether there is a container to run anything in.
    async fn begin(&self) -> Outcome {
        let request = ExecRequest { command: vec!["true".into()], ..self.request.clone() };
        self.kubelets.exec(request).await.map(|executed| executed.code).map_err(|status| status.message)
    }

    async fn finish(&self, io: &mut dyn Channels, outcome: Outcome) -> std::io::Result<()> {
        if !self.tells_status {
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
                "message": format!("Internal error occurred: error executing command in container: {why}"),
                "details": {"causes": [{"message": why}]}}),
        };
        io.send(STATUS, status.to_string().as_bytes()).await
    }

    /// A terminal: what is typed is echoed, and each line is a command of its own.
    async fn type_into(&mut self, io: &mut dyn Channels) -> std::io::Result<Option<Outcome>> {
        let (mut line, mut earlier, mut last) = (String::new(), String::new(), self.begin().await);
        if last.is_err() {
            return Ok(Some(last));
        }
        io.send(OUT, PROMPT.as_bytes()).await?;
        loop {
            let Message::Data(channel, typed) = io.receive().await? else { return Ok(None) };
            match channel {
                0 => {}
                CLOSED => return Ok(Some(last)),
                _ => continue,
            }
            for c in String::from_utf8_lossy(&typed).chars() {
                let echo = match c {
                    '\r' | '\n' => {
                        io.send(OUT, b"\r\n").await?;
                        let text = std::mem::take(&mut earlier) + &std::mem::take(&mut line) + "\n";
                        match if text.trim().is_empty() {
                            None
                        } else {
                            Some(self.enter(io, text.clone()).await?)
                        } {
                            Some(Entered::Ended(outcome)) => return Ok(Some(outcome)),
                            Some(Entered::GoesOn) => {
                                earlier = text;
                                "> ".to_owned()
                            }
                            Some(Entered::Done(outcome)) => {
                                last = outcome;
                                PROMPT.to_owned()
                            }
                            None => PROMPT.to_owned(),
                        }
                    }
                    // Control-D ends an empty line, control-C throws one away.
                    '\u{4}' if line.is_empty() => return Ok(Some(last)),
                    '\u{3}' => {
                        (line, earlier) = (String::new(), String::new());
                        format!("^C\r\n{PROMPT}")
                    }
                    '\u{7f}' | '\u{8}' => line.pop().map_or(String::new(), |_| "\u{8} \u{8}".to_owned()),
                    c if c.is_control() => String::new(),
                    c => {
                        if line.len() < MAX_INPUT_BYTES {
                            line.push(c);
                        }
                        c.to_string()
                    }
                };
                if !echo.is_empty() {
                    io.send(OUT, echo.as_bytes()).await?;
                }
            }
        }
    }
}

/// What became of a line.
enum Entered {
    Done(Outcome),
    /// The shell ended with it.
    Ended(Outcome),
    /// The next line belongs to it.
    GoesOn,
}

/// All that the client sends, until it says that there is no more.
async fn input(io: &mut dyn Channels) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    while let Message::Data(channel, data) = io.receive().await? {
        match channel {
            0 if bytes.len() < MAX_INPUT_BYTES => bytes.extend_from_slice(&data),
            CLOSED => break,
            _ => {}
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
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
