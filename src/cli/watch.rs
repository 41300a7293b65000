//! `kubarium watch`: a cluster at work, live in a terminal, lane by lane.

mod columns;
mod keys;
mod lane_table;
mod picture;
mod queue_table;
mod screen;
mod taken;

use std::cell::Cell;
use std::io::IsTerminal;
use std::mem;
use std::time::Duration;

use clap::Args;
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::asked::WhichCluster;
use super::connection::Context;
use super::stop::Stop;
use super::{Failure, block_on, choice};
use clock::Clock;
use flow::TraceStep;
use keys::{FromTerminal, KeyPressed};
use picture::LivePicture;
use taken::TakenTerminal;

/// How often the screen is drawn at most.
const FRAME: Duration = Duration::from_millis(100);
/// How often it is asked whether the cluster is held: somebody else may step it.
const PERIOD: Duration = Duration::from_secs(1);
/// A cluster that has not answered for so long is shown as one that does not; also to a key.
const PATIENCE: Duration = Duration::from_secs(5);
/// Messages between the tasks of this command; who brings more waits.
const QUEUE: usize = 64;

/// Show a cluster at work: what flows through its components, how deep each queue is, what each worker holds.
///
/// Keys: space holds the cluster or lets it go on, n lets one step happen, s a stage, q ends the view.
#[derive(Args)]
pub struct WatchCommand {
    /// Which cluster.
    #[command(flatten)]
    pub which: WhichCluster,
}

/// A line of `/kubarium/v1/flow`.
#[derive(Deserialize)]
struct FollowedLine {
    steps: Vec<TraceStep>,
    missed: u64,
}

/// What there is to be looked at next.
enum Happened {
    Steps(FollowedLine),
    /// Who is held, as the cluster said when it was asked behind so many keys.
    Held(u64, Value),
    Terminal(FromTerminal),
    /// The cluster answers no more, or why it never did.
    Ended(Failure),
}

impl WatchCommand {
    /// Shows it until q; the cluster's end before that is a failure.
    pub fn run(self) -> Result<(), Failure> {
        if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
            return Err(Failure(
                "kubarium watch draws on a terminal, and this is none; `kubarium trace --since 1m --follow` \
                 tells the same in lines, and `kubarium ui` shows it in a browser"
                    .into(),
            ));
        }
        let (record, context) = choice::reached(self.which.cluster.as_deref())?;
        block_on(watch(&context, &record.name))
    }
}

async fn watch(context: &Context, name: &str) -> Result<(), Failure> {
    let mut stop = Stop::listen()?;
    let (sender, mut came) = mpsc::channel(QUEUE);
    let screen = TakenTerminal::enter()?;
    let keys = sender.clone();
    keys::read(move |told| keys.blocking_send(Happened::Terminal(told)).is_ok());
    let acted = Cell::new(0);
    let picture = LivePicture::default();
    let mut view = LiveView { picture, held: Value::Null, acted: &acted, name, screen };
    tokio::select! {
        () = follow(context, name, sender.clone()) => Ok(()),
        () = ask_who_is_held(context, &acted, sender) => Ok(()),
        () = stop.wait() => Ok(()),
        outcome = view.show(context, &mut came) => outcome,
    }
}

/// Tells what is recorded, from the oldest step on: so what waits in queues is known.
async fn follow(context: &Context, name: &str, to: mpsc::Sender<Happened>) {
    let path = format!("{}/flow?follow=true", handles::ROOT);
    let (lines, mut line) = mpsc::channel(QUEUE);
    let reading = context.lines(&path, lines);
    let telling = async {
        while let Some(bytes) = line.recv().await {
            let happened = match read_line(&bytes) {
                Ok(line) => Happened::Steps(line),
                Err(error) => Happened::Ended(Failure::new("the cluster's answer is not understood", error)),
            };
            let _ = to.send(happened).await;
        }
    };
    let (outcome, ()) = tokio::join!(reading, telling);
    let _ = to.send(Happened::Ended(outcome.err().unwrap_or_else(|| ended(context, name)))).await;
    std::future::pending().await
}

/// The record is told until there is nobody who tells it: no end that was asked for here.
fn ended(context: &Context, name: &str) -> Failure {
    Failure(format!("the cluster {name} at {} has ended: it tells no more", context.access.server))
}

/// By way of a tree: where a step happened stands twice in it, once for all of them.
fn read_line(bytes: &[u8]) -> serde_json::Result<FollowedLine> {
    let tree: Value = serde_json::from_slice(bytes)?;
    serde_json::from_value(tree)
}

async fn ask_who_is_held(context: &Context, acted: &Cell<u64>, to: mpsc::Sender<Happened>) {
    let path = format!("{}/step", handles::ROOT);
    let mut is_silent = false;
    loop {
        let asked = acted.get();
        let answer = answered(context, Method::GET, &path, vec![]).await;
        let was_silent = mem::replace(&mut is_silent, answer.is_none());
        let held = match answer {
            Some(Ok(held)) => Some(held),
            // Who may look and may not step is shown the rest.
            Some(Err(_)) => was_silent.then_some(Value::Null),
            None => Some(silent()),
        };
        if let Some(held) = held {
            let _ = to.send(Happened::Held(asked, held)).await;
        }
        Clock::real().sleep(PERIOD).await;
    }
}

/// What the cluster says of who is held; none when it has not answered in time.
async fn answered(
    context: &Context,
    method: Method,
    path: &str,
    body: Vec<u8>,
) -> Option<Result<Value, Failure>> {
    let answer = Clock::real().timeout(PATIENCE, context.ask(method, path, body)).await.ok()?;
    Some(answer.map(|bytes| serde_json::from_slice(&bytes).unwrap_or_default()))
}

/// Of a cluster that is there and says nothing: stopped, or with more to do than it can.
fn silent() -> Value {
    json!({"refused": format!("no answer for {} s", PATIENCE.as_secs())})
}

struct LiveView<'a> {
    picture: LivePicture,
    held: Value,
    /// Keys that the cluster has heard: what it said before the last of them is the past, and must not turn
    /// the next press of the space bar round.
    acted: &'a Cell<u64>,
    name: &'a str,
    screen: TakenTerminal,
}

impl LiveView<'_> {
    async fn show(&mut self, context: &Context, came: &mut mpsc::Receiver<Happened>) -> Result<(), Failure> {
        let clock = Clock::real();
        loop {
            self.screen.draw(|frame| screen::draw(frame, &mut self.picture, &self.held, self.name))?;
            let Some(first) = came.recv().await else { return Ok(()) };
            let mut next = Some(first);
            while let Some(happened) = next {
                match happened {
                    Happened::Steps(line) => self.picture.add(line.steps, line.missed),
                    Happened::Held(asked, held) if asked == self.acted.get() => self.held = held,
                    Happened::Held(..) => {}
                    Happened::Terminal(FromTerminal::Pressed(KeyPressed::Quit)) => return Ok(()),
                    Happened::Terminal(FromTerminal::Pressed(key)) => self.act(context, key).await,
                    Happened::Terminal(FromTerminal::Resized) => {}
                    Happened::Terminal(FromTerminal::Gone(why)) => {
                        return Err(Failure::new("the terminal tells nothing any more", why));
                    }
                    Happened::Ended(why) => return Err(why),
                }
                next = came.try_recv().ok();
            }
            clock.sleep(FRAME).await;
        }
    }

    /// What a key says is asked for; a refusal is shown where it would have been seen.
    async fn act(&mut self, context: &Context, key: KeyPressed) {
        let is_held = self.held["paused"] == true;
        let path = match key {
            KeyPressed::Hold if is_held => "continue",
            KeyPressed::Hold => "pause",
            KeyPressed::Next => "next",
            KeyPressed::Stage => "stage",
            KeyPressed::Quit => return,
        };
        // Nobody is to look at a screen that stands still, because time has to pass before the next step.
        let body = json!({"within": "2s"}).to_string().into_bytes();
        let body = if key == KeyPressed::Hold { vec![] } else { body };
        let path = format!("{}/step/{path}", handles::ROOT);
        self.held = match answered(context, Method::POST, &path, body).await {
            Some(Ok(held)) => held,
            Some(Err(Failure(why))) => json!({"refused": why}),
            None => silent(),
        };
        self.acted.update(|acted| acted + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_record_is_read_as_it_is_sent() {
        let informed = r#"{"id":2,"cause":1,"atMicroseconds":5,"step":"InformerUpdated","component":"a",
            "resource":"pods","key":"ns/a","revision":7,"component":"a","words":"informed"}"#;
        let line = read_line(format!(r#"{{"steps":[{informed}],"next":3,"missed":4}}"#).as_bytes()).unwrap();
        assert_eq!((line.steps.len(), line.missed), (1, 4));
        assert!(read_line(b"{}").is_err());
    }
}
