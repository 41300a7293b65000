//! `exec`: a command in a container, over a websocket (`registry/core/pod/rest/subresources.go`, and what
//! a kubelet makes of it). The kubelets here are simulated, and so is what the command does.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use hyper::upgrade::OnUpgrade;
use serde_json::json;

use super::log::{self, ExecRequest, Executed, KubeletLookup};
use super::request_scope::Scope;
use super::response::Answer;
use super::streams::{self, Conversation, Duplex, Message};
use crate::apimachinery::status::Status;

/// The newest first among those that say the same.
const PROTOCOLS: &[&str] = &["v5.channel.k8s.io", "v4.channel.k8s.io", "channel.k8s.io"];
const OUT: u8 = 1;
const ERRORS: u8 = 2;
/// Where the outcome goes.
const STATUS: u8 = 3;
/// `v5`: the channel that is named has ended.
const CLOSED: u8 = 255;
/// A command reads no more.
const MAX_INPUT_BYTES: usize = 1 << 20;
const PROMPT: &str = "/ # ";

/// Goes on over a websocket.
pub(super) async fn exec(scope: &Scope, upgrade: OnUpgrade) -> Result<Answer, Status> {
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
        },
        reads: flag("stdin"),
        is_terminal: flag("tty"),
        tells_status: true,
    };
    streams::accept(&scope.headers, upgrade, PROTOCOLS, |protocol| session.over(protocol))
}

/// One command, or a shell that somebody types into.
struct Session {
    kubelets: Arc<dyn KubeletLookup>,
    request: ExecRequest,
    reads: bool,
    is_terminal: bool,
    /// The oldest protocol has a text where the others have a Status.
    tells_status: bool,
}

impl Session {
    fn over(mut self, protocol: &'static str) -> Conversation {
        self.tells_status = protocol != "channel.k8s.io";
        Box::new(move |mut io: Box<dyn Duplex>| -> BoxFuture<'static, ()> {
            // A client that hangs up ends it.
            async move { drop(self.converse(&mut *io).await) }.boxed()
        })
    }

    async fn converse(mut self, io: &mut dyn Duplex) -> std::io::Result<()> {
        if self.reads && self.is_terminal && is_shell(&self.request.command) {
            self.type_into(io).await?;
        } else {
            if self.reads {
                self.request.standard_input = Some(input(io).await?);
            }
            let outcome = self.run(io, &self.request).await?;
            self.finish(io, outcome).await?;
        }
        streams::close(io).await
    }

    /// Runs it and sends what it says; its code, or why it could not be started.
    async fn run(&self, io: &mut dyn Duplex, request: &ExecRequest) -> std::io::Result<Result<i32, String>> {
        match self.kubelets.exec(request.clone()).await {
            Ok(Executed { code, out, errors }) => {
                let text = |text: String| if self.is_terminal { text.replace('\n', "\r\n") } else { text };
                for (channel, said) in [(OUT, out), (if self.is_terminal { OUT } else { ERRORS }, errors)] {
                    if !said.is_empty() {
                        streams::send(io, Some(channel), text(said).as_bytes()).await?;
                    }
                }
                Ok(Ok(code))
            }
            Err(status) => Ok(Err(status.message)),
        }
    }

    async fn finish(&self, io: &mut dyn Duplex, outcome: Result<i32, String>) -> std::io::Result<()> {
        if !self.tells_status {
            return match outcome {
                Ok(0) => Ok(()),
                Ok(code) => {
                    let text = format!("command terminated with non-zero exit code: exit status {code}");
                    streams::send(io, Some(STATUS), text.as_bytes()).await
                }
                Err(why) => streams::send(io, Some(STATUS), why.as_bytes()).await,
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
        streams::send(io, Some(STATUS), status.to_string().as_bytes()).await
    }

    /// A terminal: what is typed is echoed, and each line is a command of its own.
    async fn type_into(&self, io: &mut dyn Duplex) -> std::io::Result<()> {
        let (mut line, mut last) = (String::new(), Ok(0));
        streams::send(io, Some(OUT), PROMPT.as_bytes()).await?;
        loop {
            let Message::Data(channel, typed) = streams::receive(io).await? else { return Ok(()) };
            match channel {
                0 => {}
                CLOSED => return self.finish(io, last).await,
                _ => continue,
            }
            for c in String::from_utf8_lossy(&typed).chars() {
                let echo = match c {
                    '\r' | '\n' => {
                        streams::send(io, Some(OUT), b"\r\n").await?;
                        let text = std::mem::take(&mut line);
                        if text.trim() == "exit" {
                            return self.finish(io, last).await;
                        }
                        if !text.trim().is_empty() {
                            let command = ["sh".to_owned(), "-c".to_owned(), text].to_vec();
                            last = self.run(io, &ExecRequest { command, ..self.request.clone() }).await?;
                        }
                        PROMPT.to_owned()
                    }
                    // Control-D ends an empty line, control-C throws one away.
                    '\u{4}' if line.is_empty() => return self.finish(io, last).await,
                    '\u{3}' => {
                        line.clear();
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
                    streams::send(io, Some(OUT), echo.as_bytes()).await?;
                }
            }
        }
    }
}

/// All that the client sends, until it says that there is no more.
async fn input(io: &mut dyn Duplex) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    while let Message::Data(channel, data) = streams::receive(io).await? {
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
