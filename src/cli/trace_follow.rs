//! `kubarium trace --follow`: stages, or steps, as they happen.

use std::collections::HashSet;
use std::io::Write;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::mpsc;

use super::trace_bodies::{KeptExchanges, requests};
use super::trace_source::{TraceSource, look};
use super::{Failure, block_on, say, terminal};
use flow::story::StoryStage;
use flow::{StepId, Trace, WantedSteps};

/// How often it is asked at most what is new.
const PERIOD: Duration = Duration::from_millis(300);
/// Where it is told that something was recorded.
const FOLLOWED: &str = "/kubarium/v1/flow?since=now&follow=true";
/// And while bodies are kept.
const FOLLOWED_WITH_BODIES: &str = "/kubarium/v1/flow?since=now&follow=true&bodies=true";
/// A stage that has grown no more for so long is told.
const SETTLED_MICROSECONDS: u64 = 200_000;

/// Tells what is there and then what comes, until the cluster answers no more.
pub(super) fn follow(
    asking: &TraceSource,
    wanted: &WantedSteps,
    (is_full, has_bodies): (bool, bool),
) -> Result<(), Failure> {
    block_on(async {
        let mut told = StagesTold::default();
        let mut has_answered = false;
        let mut bodies = has_bodies.then(BodiesTold::default);
        let mut news = News::follow(asking, has_bodies);
        loop {
            let mut trace = match asking.ask().await {
                Ok(trace) => trace,
                // It was there and is gone: the story is at its end.
                Err(_) if has_answered => return Ok(()),
                Err(failure) => return Err(failure),
            };
            if !has_answered && trace.steps.is_empty() {
                tell_of_waiting(asking);
            }
            has_answered = true;
            wanted.of(&mut trace);
            if is_full {
                told.steps(&trace, wanted)
            } else {
                told.stages(&trace, wanted)
            }
            if let Some(bodies) = &mut bodies {
                bodies.tell(asking, &trace).await?;
            }
            news.wait().await;
        }
    })
}

/// Whoever has misspelt a name would wait in vain.
fn tell_of_waiting(asking: &TraceSource) {
    if let Some(traced) = &asking.traced {
        let text = traced.awaited(&asking.namespace, &asking.record.name);
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

/// Whether anything was recorded: while nothing is, nobody is asked.
struct News<'a> {
    lines: mpsc::Receiver<Vec<u8>>,
    reading: BoxFuture<'a, Result<(), Failure>>,
    /// Something came since the last answer: then what had not settled is asked for once more.
    is_new: bool,
    has_ended: bool,
}

impl<'a> News<'a> {
    fn follow(asking: &'a TraceSource, has_bodies: bool) -> News<'a> {
        let (sender, lines) = mpsc::channel(1);
        let reading =
            Box::pin(asking.context.lines(if has_bodies { FOLLOWED_WITH_BODIES } else { FOLLOWED }, sender));
        News { lines, reading, is_new: true, has_ended: false }
    }

    /// Returns when it is worth asking; where the record may not be followed, again and again.
    async fn wait(&mut self) {
        let clock = clock::Clock::real();
        clock.sleep(PERIOD).await;
        if self.has_ended || std::mem::take(&mut self.is_new) {
            return;
        }
        tokio::select! {
            line = self.lines.recv() => self.is_new = line.is_some(),
            _ = &mut self.reading => self.has_ended = true,
        }
    }
}

/// Of which requests headers and bodies have been told. Bound: those that the last trace had.
#[derive(Default)]
struct BodiesTold(HashSet<StepId>);

impl BodiesTold {
    /// Those that are new and whole.
    async fn tell(&mut self, asking: &TraceSource, trace: &Trace) -> Result<(), Failure> {
        if requests(trace).all(|id| self.0.contains(&id)) {
            return Ok(());
        }
        let kept = KeptExchanges::ask(&asking.context).await?;
        kept.of(requests(trace).filter(|id| !self.0.contains(id))).into_iter().for_each(say);
        self.0 = requests(trace).filter(|id| kept.is_whole(*id)).collect();
        Ok(())
    }
}

/// What has been told. Bound: what the last answer had, which is at most what the record holds.
#[derive(Default)]
struct StagesTold {
    ids: HashSet<StepId>,
    /// What stood in the way when everything had settled last.
    standing: Vec<String>,
}

impl StagesTold {
    fn steps(&mut self, trace: &Trace, wanted: &WantedSteps) {
        let mut new = trace.clone();
        new.steps.retain(|step| !self.ids.contains(&step.id));
        self.ids = trace.steps.iter().map(|step| step.id).collect();
        if !new.steps.is_empty() {
            let text = new.render_wanted(terminal::columns(), wanted);
            // Without the line that names the columns, which would come again and again.
            let lines: Vec<&str> = text.trim_end().lines().skip(1).collect();
            lines.into_iter().for_each(say);
        }
    }

    fn stages(&mut self, trace: &Trace, wanted: &WantedSteps) {
        for text in self.new_stages(trace, wanted) {
            say(text);
        }
    }

    /// The lines of those that are settled and were not told yet, and what stands in the way when all are.
    /// They are numbered by their first step, since what is folded is not known before the end.
    fn new_stages(&mut self, trace: &Trace, wanted: &WantedSteps) -> Vec<String> {
        let story = trace.story_unfolded();
        let ids: Vec<StepId> = story.stages.iter().map(first).collect();
        let is_settled = |stage: &StoryStage| {
            stage.until_microseconds.saturating_add(SETTLED_MICROSECONDS) <= trace.now_microseconds
        };
        let mut lines = Vec::new();
        for stage in story.stages.iter().filter(|stage| is_settled(stage)) {
            if wanted.tells(stage) && !self.ids.contains(&first(stage)) {
                let cause = stage.cause.and_then(|cause| ids.get(cause - 1)).map(number);
                let shown = StoryStage { number: number(&first(stage)), cause, ..stage.clone() };
                lines.extend(shown.lines(look(false)));
            }
        }
        let known = story.stages.iter().filter(|stage| is_settled(stage)).map(first);
        self.ids = known.collect();
        if story.stages.iter().all(is_settled) {
            let is_new = |text: &&String| !self.standing.contains(text);
            lines.extend(story.standing.iter().filter(is_new).flat_map(|text| look(false).standing(text)));
            self.standing = story.standing;
        }
        lines
    }
}

fn first(stage: &StoryStage) -> StepId {
    stage.steps.first().copied().unwrap_or_default()
}

fn number(StepId(id): &StepId) -> usize {
    usize::try_from(*id).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use flow::{Flow, Step, WriteOperation};

    use super::*;
    use clock::Clock;

    #[test]
    fn a_stage_is_told_once_and_when_it_grows_no_more() {
        let clock = Clock::stepped(chrono::DateTime::UNIX_EPOCH);
        let flow = Flow::new(clock.clone());
        let path = "/api/v1/namespaces/ns/pods".into();
        let request =
            flow.record(None, Step::RequestReceived { user: "".into(), verb: "create".into(), path });
        let (resource, namespace, name) = ("pods".into(), "ns".into(), "a".into());
        let (operation, uid, bytes) = (WriteOperation::Create, None, 9);
        flow.record(
            request.cause(),
            Step::Stored { resource, namespace, name, revision: 2, operation, uid, bytes },
        );
        let mut told = StagesTold::default();
        let mut new = || told.new_stages(&flow.trace("pods", "ns", "a"), &WantedSteps::default());
        assert_eq!(new(), Vec::<String>::new());
        clock.advance(Duration::from_micros(SETTLED_MICROSECONDS));
        let lines = new();
        assert!(lines.len() == 2 && lines[1].contains("etcd has it created at revision 2"), "{lines:?}");
        assert!(lines[1].ends_with("<- 1") && lines[1].trim_start().starts_with("2 "), "{lines:?}");
        assert_eq!(new(), Vec::<String>::new());
    }
    #[test]
    fn what_stands_in_the_way_is_told_when_everything_has_settled() {
        let clock = Clock::stepped(chrono::DateTime::UNIX_EPOCH);
        let flow = Flow::new(clock.clone());
        let attempt = || {
            let pod = "ns/a".into();
            let attempt = flow.record(None, Step::SchedulingAttempt { pod });
            let (pod, refusals) = ("ns/a".into(), vec![]);
            flow.record(attempt.cause(), Step::Filtered { pod, feasible: 0, nodes: 3, refusals });
            clock.advance(Duration::from_micros(SETTLED_MICROSECONDS / 2));
        };
        let mut told = StagesTold::default();
        let mut new = || told.new_stages(&flow.trace("pods", "ns", "a"), &WantedSteps::default());
        attempt();
        assert_eq!(new(), Vec::<String>::new());
        clock.advance(Duration::from_micros(SETTLED_MICROSECONDS));
        let lines = new();
        let standing = " => pod ns/a has no node: none of 3 fits";
        assert_eq!(lines.last().map(String::as_str), Some(standing), "{lines:?}");
        attempt();
        clock.advance(Duration::from_micros(SETTLED_MICROSECONDS));
        let lines = new();
        assert!(!lines.is_empty() && !lines.iter().any(|line| line == standing), "once: {lines:?}");
    }
}
