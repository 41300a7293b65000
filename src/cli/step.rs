//! `kubarium step`: holds a cluster between two steps, and lets them happen one by one.

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use super::asked::{WhichCluster, encoded};
use super::{Failure, say};

/// Of who is held so many are told.
const TOLD: usize = 10;

/// Hold a cluster between two steps, and let them happen one by one.
///
/// Without more it lets one step happen, and holds the cluster first if it was not held: its clock stands,
/// its queues hold. Steps are requests that change something, admission plugins, writes to etcd, watch events
/// that informers take in, reconciles, scheduling cycles, and syncs of kubelets' pods.
#[derive(Args)]
pub struct StepCommand {
    /// What to do.
    #[command(subcommand)]
    what: Option<StepWhat>,
    /// Of one step, as `step next` takes it.
    #[command(flatten)]
    next: StepNumber,
    /// How long to wait for the next step, in real time (30s).
    #[arg(long, value_name = "DURATION", global = true)]
    within: Option<String>,
    /// The cluster's name; else the only one that runs, or that of kubectl's current context.
    #[arg(long, env = "KUBARIUM_NAME", value_name = "NAME", global = true)]
    name: Option<String>,
}

/// What to do with a cluster that is held.
#[derive(Subcommand)]
enum StepWhat {
    /// Let one step happen; when nobody is held, let time pass until somebody is.
    Next(StepNumber),
    /// Let steps happen until the next is of another stage: request, admission, write, watch, reconcile,
    /// scheduling, sync.
    Stage,
    /// Let steps happen until an object is as it should be, or a breakpoint is reached.
    Until(StepUntil),
    /// Let everything go on, up to the next breakpoint.
    Continue,
    /// Hold the cluster, and its clock.
    Pause,
    /// Show who is held, and the breakpoints.
    Show,
    /// Let the cluster stand still before what is named.
    ///
    /// As in `kubarium step break write pods`, `break reconcile deployment default/web`,
    /// `break admission ResourceQuota`, `break scheduling`, `break sync pods default/web`.
    Break(BreakAt),
    /// Remove a breakpoint, by what it is called; all without a name.
    Unbreak {
        /// As `write pods default/web`.
        #[arg(value_name = "BREAKPOINT")]
        breakpoint: Vec<String>,
    },
}

/// Which step.
#[derive(Args, Clone, Copy)]
struct StepNumber {
    /// The number of a step that is held; else the one that is held longest.
    #[arg(long, value_name = "N")]
    number: Option<u64>,
}

/// What to wait for.
#[derive(Args)]
struct StepUntil {
    /// Which object, as deploy/web.
    object: String,
    /// What is waited for, as kubectl wait --for takes it, or the type of a condition alone.
    #[arg(value_name = "CONDITION")]
    wanted: String,
    /// Its namespace; else that of kubectl's context.
    #[arg(short, long, env = "KUBARIUM_NAMESPACE")]
    namespace: Option<String>,
}

/// Where to stand still.
#[derive(Args)]
struct BreakAt {
    /// What is about to happen.
    #[arg(value_parser = ["request", "admission", "write", "watch", "reconcile", "scheduling", "sync"])]
    stage: String,
    /// The resource, controller, admission plugin or verb; else any.
    #[arg(default_value = "", hide_default_value = true)]
    of: String,
    /// The object, as NAMESPACE/NAME or its name; else any.
    #[arg(default_value = "", hide_default_value = true)]
    object: String,
}

/// How long is waited for the next step, if nobody says otherwise.
const WITHIN: &str = "30s";

impl StepCommand {
    /// Asks the cluster.
    pub fn run(self) -> Result<(), Failure> {
        let StepCommand { what, next, within, name } = self;
        if next.number.is_some() && what.is_some() {
            return Err(Failure("--number is about one step: `kubarium step next --number N`".into()));
        }
        let what = what.unwrap_or(StepWhat::Next(next));
        if within.is_some() && !what.waits() {
            return Err(Failure("--within is for who waits: step next, step stage and step until".into()));
        }
        let said = what.ask(&WhichCluster { cluster: name }, within.as_deref().unwrap_or(WITHIN))?;
        for line in lines(&said) {
            say(line);
        }
        let StepWhat::Until(until) = what else { return Ok(()) };
        match breakpoint_reached(&said) {
            _ if said["reached"] != false => Ok(()),
            Some(name) => {
                let StepUntil { object, wanted, .. } = until;
                let instead = instead(&said);
                say(format!("it stands at the breakpoint {name:?}; {object} is not {wanted} yet{instead}"));
                Ok(())
            }
            None => Err(not_yet(&said)),
        }
    }
}

impl StepWhat {
    /// Whether there is a next step that it waits for.
    fn waits(&self) -> bool {
        matches!(self, StepWhat::Next(_) | StepWhat::Stage | StepWhat::Until(_))
    }

    fn ask(&self, which: &WhichCluster, within: &str) -> Result<Value, Failure> {
        let post = |path: &str, body: Value| which.ask(Method::POST, path, &body);
        match self {
            StepWhat::Next(StepNumber { number }) => {
                post("/step/next", json!({"number": number, "within": within}))
            }
            StepWhat::Stage => post("/step/stage", json!({"within": within})),
            StepWhat::Until(StepUntil { object, wanted, namespace }) => {
                let namespace = which.namespace(namespace.as_deref())?;
                let body = json!({"object": object, "for": wanted, "namespace": namespace, "within": within});
                post("/step/until", body)
            }
            StepWhat::Continue => post("/step/continue", Value::Null),
            StepWhat::Pause => post("/step/pause", Value::Null),
            StepWhat::Show => which.ask(Method::GET, "/step", &Value::Null),
            StepWhat::Break(BreakAt { stage, of, object }) => {
                post("/step/breakpoints", json!({"stage": stage, "of": of, "object": object}))
            }
            StepWhat::Unbreak { breakpoint } => {
                let name = breakpoint.join(" ");
                which.ask(Method::DELETE, &format!("/step/breakpoints?name={}", encoded(&name)), &Value::Null)
            }
        }
    }
}

/// With what is there instead: what a misspelt condition waits for never comes.
fn not_yet(said: &Value) -> Failure {
    let now = if said["paused"] == false {
        "somebody has let the cluster go on by itself"
    } else {
        "the cluster stands where it is"
    };
    Failure(format!("that did not come true yet{}; {now}", instead(said)))
}

/// As a part of a sentence.
fn instead(said: &Value) -> String {
    said["instead"].as_str().map(|instead| format!(": {instead}")).unwrap_or_default()
}

/// At which breakpoint the steps have ended that were let happen, if at one: the first who is held ran into
/// it.
fn breakpoint_reached(said: &Value) -> Option<&str> {
    said["held"][0]["breakpoint"].as_str().filter(|_| said["releasedCount"] != 0)
}

/// What happened, who is held, and where it would stand still.
fn lines(said: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let count = |field: &str| said[field].as_u64().unwrap_or_default();
    lines.extend(words(&said["released"]).map(|words| format!("let go  {words}")));
    match (said["releasedCount"].as_u64(), said["reached"].as_bool()) {
        (Some(0), Some(true)) => lines.push("that is so already: nothing was let happen".into()),
        (Some(0), Some(false)) => {
            lines.push(format!("nobody was held; it is {}", said["now"].as_str().unwrap_or_default()));
        }
        _ => {}
    }
    let numbered = said["held"].as_array().into_iter().flatten().take(TOLD);
    lines.extend(numbered.map(|step| {
        let at = if step["breakpoint"].is_string() { " (breakpoint)" } else { "" };
        let number = step["number"].as_u64().unwrap_or_default();
        format!("held {number:>3}  {}{at}", step["words"].as_str().unwrap_or_default())
    }));
    let more = count("heldCount").saturating_sub(TOLD as u64);
    if more > 0 {
        lines.push(format!("and {more} more are held"));
    }
    lines.extend(words(&said["gone"]).map(|words| format!("gave up  {words}: its client waits no longer")));
    let names = said["breakpoints"].as_array().into_iter().flatten().filter_map(|one| one["name"].as_str());
    lines.extend(names.map(|name| format!("breakpoint  {name}")));
    lines.push(match (said["paused"].as_bool(), count("heldCount")) {
        (Some(true), 0) => "held, and nobody wants to take a step: the next lets time pass".into(),
        (Some(true), _) => "held; `kubarium step` lets the first go on, `kubarium step continue` all".into(),
        _ => "the cluster goes on by itself".into(),
    });
    lines
}

fn words(steps: &Value) -> impl Iterator<Item = &str> {
    steps.as_array().into_iter().flatten().filter_map(|step| step["words"].as_str())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        step: StepCommand,
    }

    fn typed(words: &str) -> Result<StepCommand, String> {
        let words = std::iter::once("step").chain(words.split_whitespace());
        Typed::try_parse_from(words).map(|typed| typed.step).map_err(|error| error.to_string())
    }

    /// Each flag stands where a person puts it: before what is to be done, or behind.
    #[test]
    fn flags_stand_on_either_side() {
        for what in [
            "",
            "next",
            "stage",
            "until deploy/web Available",
            "continue",
            "pause",
            "show",
            "break write pods default/web",
            "unbreak write pods",
        ] {
            for words in [format!("--name x {what}"), format!("{what} --name x")] {
                let step = typed(&words).unwrap_or_else(|why| panic!("{words}: {why}"));
                assert_eq!(step.name.as_deref(), Some("x"), "{words}");
            }
        }
        for what in ["", "next", "stage", "until deploy/web Available"] {
            for words in [format!("--within 5s {what}"), format!("{what} --within 5s")] {
                let step = typed(&words).unwrap_or_else(|why| panic!("{words}: {why}"));
                assert_eq!(step.within.as_deref(), Some("5s"), "{words}");
            }
        }
        assert_eq!(typed("--number 3").unwrap().next.number, Some(3));
        assert!(matches!(
            typed("next --number 3").unwrap().what,
            Some(StepWhat::Next(StepNumber { number: Some(3) }))
        ));
        assert!(matches!(
            typed("until pod/a Ready -n b").unwrap().what,
            Some(StepWhat::Until(StepUntil { namespace: Some(namespace), .. })) if namespace == "b"
        ));
    }

    #[test]
    fn a_flag_that_would_be_ignored_is_refused() {
        let refused = |words: &str| typed(words).unwrap().run().unwrap_err().0;
        assert!(refused("--number 3 pause").contains("step next --number"), "of one step alone");
        assert!(refused("--within 5s pause").contains("step until"), "nobody waits");
        assert!(refused("show --within 5s").contains("step until"));
    }

    #[test]
    fn it_is_said_who_was_let_go_and_who_is_held() {
        let said = json!({
            "paused": true, "reached": true, "releasedCount": 1, "heldCount": 12,
            "released": [{"words": "a"}],
            "held": [{"number": 7, "words": "b", "breakpoint": "write pods"}],
            "gone": [{"words": "c"}],
            "breakpoints": [{"name": "write pods"}],
        });
        assert_eq!(breakpoint_reached(&said), Some("write pods"));
        assert_eq!(
            lines(&said),
            [
                "let go  a",
                "held   7  b (breakpoint)",
                "and 2 more are held",
                "gave up  c: its client waits no longer",
                "breakpoint  write pods",
                "held; `kubarium step` lets the first go on, `kubarium step continue` all",
            ]
        );
        let waited =
            json!({"paused": true, "reached": false, "releasedCount": 0, "heldCount": 0, "now": "T"});
        assert_eq!((&*lines(&waited)[0], breakpoint_reached(&waited)), ("nobody was held; it is T", None));
        let already = json!({"paused": true, "reached": true, "releasedCount": 0, "heldCount": 1,
                             "held": [{"number": 7, "words": "b"}]});
        assert_eq!(lines(&already)[..2], ["that is so already: nothing was let happen", "held   7  b"]);
        assert_eq!(lines(&json!({"paused": false})), ["the cluster goes on by itself"]);
    }

    #[test]
    fn what_did_not_come_true_says_what_is_there_instead() {
        let told = not_yet(&json!({"reached": false, "instead": "it has no conditions"})).0;
        assert_eq!(told, "that did not come true yet: it has no conditions; the cluster stands where it is");
        let told = not_yet(&json!({"reached": false})).0;
        assert_eq!(told, "that did not come true yet; the cluster stands where it is");
        let told = not_yet(&json!({"reached": false, "paused": false})).0;
        assert_eq!(told, "that did not come true yet; somebody has let the cluster go on by itself");
    }
}
