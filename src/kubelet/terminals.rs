//! Commands that somebody runs in a container and says something to (CRI `Exec` with `stdin`), at a terminal
//! or through a pipe: what they say is told as they say it, and they hear what is said while they run.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot, watch};

use super::attach::{Attachment, PIECES, next_said, refusal};
use super::container_runtime::services::{AttachInput, ExecCommand, ExecResponse, RuntimeError};
use super::kubelet::Kubelet;
use apimachinery::time::Time;
use clock::after;
use machine::byte_text;
use machine::questions::{Answered, Question};
use machine::standard_input::{MAX_PIPED_BYTES, StandardInput, TerminalSize};
use machine::terminals::{AtTerminal, Sitting};

/// A command whose container ends is killed.
const KILLED: i32 = 137;

/// A command at a terminal, or behind a pipe.
pub struct TerminalSession {
    /// Both ways to it.
    pub streams: Attachment,
    /// Its code, when it has ended.
    pub ended: oneshot::Receiver<i32>,
}

/// One command, and what was typed since it began, or since its shell began anew.
struct SittingClient {
    kubelet: Kubelet,
    namespace: String,
    pod: String,
    command: ExecCommand,
    size: TerminalSize,
    sitting: Sitting,
    begun: Time,
    /// How much of what the terminal shows is told already.
    seen: usize,
}

/// What it has said by a time.
struct LookedAt {
    at: Time,
    response: ExecResponse,
}

/// What it asks the network, and the answer that is on its way.
struct AskingSession {
    question: Question,
    answer: BoxFuture<'static, Answered>,
}

/// The answer, if anything was asked.
async fn answer_to(asking: &mut Option<AskingSession>) -> Answered {
    match asking {
        Some(asking) => (&mut asking.answer).await,
        None => std::future::pending().await,
    }
}

impl Kubelet {
    /// Runs a command at a terminal, where it has one; else what is said to it comes through a pipe.
    ///
    /// # Errors
    /// Why it could not be started, in the words of kubelet and runtime.
    pub async fn exec_at_terminal(
        &self,
        namespace: &str,
        pod: &str,
        command: ExecCommand,
    ) -> Result<TerminalSession, RuntimeError> {
        let size = command.terminal.unwrap_or_default();
        let mut client = SittingClient {
            kubelet: self.clone(),
            namespace: namespace.to_owned(),
            pod: pod.to_owned(),
            command,
            size,
            sitting: Sitting::default(),
            begun: self.shared.context.clock.now(),
            seen: 0,
        };
        client.begin(client.begun);
        let first = client.look().await?;
        let (says, to_process) = mpsc::channel(PIECES);
        let (from_process, said) = mpsc::channel(PIECES);
        let (sizes, resized) = watch::channel(size);
        let (tells_end, ended) = oneshot::channel();
        let talk = async move {
            let code = client.talk(first, (to_process, resized), from_process).await;
            // Whoever has hung up does not ask.
            let _ = tells_end.send(code.unwrap_or(KILLED));
        };
        // With the kubelet it ends, too.
        let begun = self.shared.context.tasks.spawn("exec at a terminal", talk);
        begun
            .map(|_| TerminalSession { streams: Attachment { says, sizes, said }, ended })
            .ok_or_else(|| refusal("the kubelet has stopped".to_owned()))
    }
}

impl SittingClient {
    /// A new beginning: nothing is typed yet.
    fn begin(&mut self, now: Time) {
        let mut input = match &self.sitting.memory {
            Some(_) => self.sitting.input.anew(),
            None => StandardInput::new(self.is_terminal()),
        };
        input.resize(std::time::Duration::ZERO, self.size);
        self.sitting = Sitting { input, memory: self.sitting.memory.take(), ..Sitting::default() };
        (self.begun, self.seen) = (now, 0);
    }

    fn is_terminal(&self) -> bool {
        self.command.terminal.is_some()
    }

    /// What it has said by now.
    async fn look(&mut self) -> Result<LookedAt, RuntimeError> {
        let at = self.kubelet.shared.context.clock.now();
        self.sitting.ran = (at - self.begun).to_std().unwrap_or_default();
        let command = ExecCommand { sitting: Some(Box::new(self.sitting.clone())), ..self.command.clone() };
        let response = self.kubelet.exec_at(&self.namespace, &self.pod, &command, at).await?;
        Ok(LookedAt { at, response })
    }

    /// Until the command has ended, or nobody hears it any more; nothing when it did not end by itself.
    async fn talk(
        mut self,
        mut looked: LookedAt,
        (to_process, mut resized): (mpsc::Receiver<Vec<u8>>, watch::Receiver<TerminalSize>),
        from_process: mpsc::Sender<(bool, Vec<u8>)>,
    ) -> Option<i32> {
        let mut to_process = Some(to_process);
        let mut asking: Option<AskingSession> = None;
        loop {
            let LookedAt { at, response } = looked;
            let Some(sat) = response.sat else {
                // What it does somebody has declared.
                let said = response.executed?;
                self.send((false, &said.out), &from_process).await?;
                self.send((true, &said.errors), &from_process).await?;
                return said.end.map(|(_, code)| code);
            };
            self.tell(&sat, &from_process).await?;
            if sat.end.is_some() {
                return sat.end;
            }
            let next = self.go_on(&sat, at);
            // Whatever is typed meanwhile, nothing is asked twice.
            asking = asking
                .filter(|asking| sat.question.as_ref().is_some_and(|(_, asked)| *asked == asking.question));
            if let Some((asks_after, question)) = sat.question.filter(|_| asking.is_none()) {
                asking = Some(self.ask(after(self.begun, asks_after), question));
            }
            let heard = tokio::select! {
                biased;
                () = from_process.closed() => return None,
                Ok(()) = resized.changed() => AttachInput::Resized(*resized.borrow_and_update()),
                heard = next_said(&mut to_process) => heard,
                answered = answer_to(&mut asking) => {
                    asking = None;
                    Arc::make_mut(&mut self.sitting.answers).push(answered);
                    AttachInput::Nothing
                }
                () = self.pause(next) => AttachInput::Nothing,
            };
            self.hear(heard);
            self.hear_rest(&mut to_process).await;
            if self.sitting.input.is_over() {
                let why = format!("stopped: over {MAX_PIPED_BYTES} bytes of standard input\n");
                self.send((true, &why), &from_process).await?;
                return None;
            }
            looked = self.look().await.ok()?;
        }
    }

    /// When it says more by itself. A shell at its prompt begins anew.
    fn go_on(&mut self, sat: &AtTerminal, at: Time) -> Option<Time> {
        if sat.memory.is_some() {
            self.sitting.memory.clone_from(&sat.memory);
            self.begin(at);
            return None;
        }
        self.sitting.ground = Some(sat.ground.clone());
        self.sitting.told = Arc::new(sat.written.clone());
        sat.next.map(|next| after(self.begun, next))
    }

    /// Asks the network at a time.
    fn ask(&self, at: Time, question: Question) -> AskingSession {
        let (kubelet, namespace, pod) = (self.kubelet.clone(), self.namespace.clone(), self.pod.clone());
        let asked = question.clone();
        let answer = async move {
            let clock = &kubelet.shared.context.clock;
            clock.sleep((at - clock.now()).to_std().unwrap_or_default()).await;
            kubelet.answer(&namespace, &pod, &asked).await
        };
        AskingSession { question, answer: answer.boxed() }
    }

    async fn pause(&self, until: Option<Time>) {
        let clock = &self.kubelet.shared.context.clock;
        match until {
            Some(until) => clock.sleep((until - clock.now()).to_std().unwrap_or_default()).await,
            None => std::future::pending().await,
        }
    }

    fn hear(&mut self, heard: AttachInput) {
        let now = self.kubelet.shared.context.clock.now();
        let ran = (now - self.begun).to_std().unwrap_or_default();
        match heard {
            AttachInput::Bytes(bytes) if self.is_terminal() => self.sitting.input.say(ran, &bytes),
            AttachInput::Bytes(bytes) => self.sitting.input.pipe(ran, &bytes),
            AttachInput::Resized(size) => {
                self.size = size;
                self.sitting.input.resize(ran, size);
            }
            AttachInput::End => self.sitting.input.close(ran),
            AttachInput::Begins | AttachInput::Nothing => {}
        }
    }

    /// What else has come through a pipe is heard at once: the command is played once for all of it.
    async fn hear_rest(&mut self, to_process: &mut Option<mpsc::Receiver<Vec<u8>>>) {
        while !self.is_terminal() && !self.sitting.input.is_over() {
            // Whoever has more brings it now.
            tokio::task::yield_now().await;
            let Some(says) = to_process else { return };
            match says.try_recv() {
                Ok(bytes) => self.hear(AttachInput::Bytes(bytes)),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    *to_process = None;
                    self.hear(AttachInput::End);
                }
            }
        }
    }

    /// Sends what is new; nothing when nobody takes it.
    async fn tell(&mut self, sat: &AtTerminal, to: &mpsc::Sender<(bool, Vec<u8>)>) -> Option<()> {
        let AtTerminal { transcript, .. } = sat;
        for (is_error, text) in transcript.behind(self.seen, self.sitting.ran) {
            self.send((is_error, &text), to).await?;
        }
        self.seen = self.seen.max(transcript.said_by(self.sitting.ran));
        Some(())
    }

    /// A terminal has one output, whose lines end as a typewriter's.
    async fn send(&self, (is_error, text): (bool, &str), to: &mpsc::Sender<(bool, Vec<u8>)>) -> Option<()> {
        let typed = self.is_terminal().then(|| text.replace('\n', "\r\n"));
        let bytes = byte_text::bytes_of(typed.as_deref().unwrap_or(text)).into_owned();
        if bytes.is_empty() {
            return Some(());
        }
        to.send((is_error && !self.is_terminal(), bytes)).await.ok()
    }
}
