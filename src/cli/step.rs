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
#[command(args_conflicts_with_subcommands = true)]
pub struct StepCommand {
    /// What to do.
    #[command(subcommand)]
    what: Option<StepWhat>,
    #[command(flatten)]
    next: NextStep,
}

/// What to do with a cluster that is held.
#[derive(Subcommand)]
enum StepWhat {
    /// Let one step happen; when nobody is held, let time pass until somebody is.
    Next(NextStep),
    /// Let steps happen until the next is of another stage: request, admission, write, watch, reconcile,
    /// scheduling, sync.
    Stage(StepWithin),
    /// Let steps happen until an object is as it should be, or a breakpoint is reached.
    Until(StepUntil),
    /// Let everything go on, up to the next breakpoint.
    Continue(WhichCluster),
    /// Hold the cluster, and its clock.
    Pause(WhichCluster),
    /// Show who is held, and the breakpoints.
    Show(WhichCluster),
    /// Let the cluster stand still before what is named.
    ///
    /// As in `kubarium step break write pods`, `break reconcile deployment default/web`,
    /// `break admission ResourceQuota`, `break scheduling`, `break sync pods default/web`.
    Break(BreakAt),
    /// Remove a breakpoint, by what it is called; all without a name.
    Unbreak {
        /// As `write pods default/web`.
        name: Vec<String>,
        #[command(flatten)]
        which: WhichCluster,
    },
}

/// How long to wait.
#[derive(Args)]
struct StepWithin {
    /// How long to wait for the next step, in real time.
    #[arg(long, default_value = "30s", value_name = "DURATION")]
    within: String,
    #[command(flatten)]
    which: WhichCluster,
}

/// Which step.
#[derive(Args)]
struct NextStep {
    /// The number of a step that is held; else the one that is held longest.
    #[arg(long, value_name = "N")]
    number: Option<u64>,
    #[command(flatten)]
    within: StepWithin,
}

/// What to wait for.
#[derive(Args)]
struct StepUntil {
    /// Which object, as deploy/web.
    object: String,
    /// What is waited for, as kubectl wait --for takes it, or the type of a condition alone.
    #[arg(value_name = "CONDITION")]
    wanted: String,
    /// Its namespace.
    #[arg(short, long, env = "KUBARIUM_NAMESPACE", default_value = "default")]
    namespace: String,
    #[command(flatten)]
    within: StepWithin,
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
    #[command(flatten)]
    which: WhichCluster,
}

impl StepCommand {
    /// Asks the cluster.
    pub fn run(self) -> Result<(), Failure> {
        let what = self.what.unwrap_or(StepWhat::Next(self.next));
        let is_until = matches!(what, StepWhat::Until(_));
        let said = what.ask()?;
        for line in lines(&said) {
            say(line);
        }
        if is_until && said["reached"] == false {
            return Err(Failure("that did not come true yet; the cluster stands where it is".into()));
        }
        Ok(())
    }
}

impl StepWhat {
    fn ask(&self) -> Result<Value, Failure> {
        let post = |which: &WhichCluster, path: &str, body: Value| which.ask(Method::POST, path, &body);
        match self {
            StepWhat::Next(NextStep { number, within }) => {
                post(&within.which, "/step/next", json!({"number": number, "within": within.within}))
            }
            StepWhat::Stage(StepWithin { within, which }) => {
                post(which, "/step/stage", json!({"within": within}))
            }
            StepWhat::Until(StepUntil { object, wanted, namespace, within }) => {
                let within_text = &within.within;
                let body =
                    json!({"object": object, "for": wanted, "namespace": namespace, "within": within_text});
                post(&within.which, "/step/until", body)
            }
            StepWhat::Continue(which) => post(which, "/step/continue", Value::Null),
            StepWhat::Pause(which) => post(which, "/step/pause", Value::Null),
            StepWhat::Show(which) => which.ask(Method::GET, "/step", &Value::Null),
            StepWhat::Break(BreakAt { stage, of, object, which }) => {
                post(which, "/step/breakpoints", json!({"stage": stage, "of": of, "object": object}))
            }
            StepWhat::Unbreak { name, which } => {
                let name = name.join(" ");
                which.ask(Method::DELETE, &format!("/step/breakpoints?name={}", encoded(&name)), &Value::Null)
            }
        }
    }
}

/// What happened, who is held, and where it would stand still.
fn lines(said: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let count = |field: &str| said[field].as_u64().unwrap_or_default();
    lines.extend(words(&said["released"]).map(|words| format!("let go  {words}")));
    if let (Some(0), Some(_)) = (said["releasedCount"].as_u64(), said["reached"].as_bool()) {
        lines.push(format!("nobody was held; it is {}", said["now"].as_str().unwrap_or_default()));
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
    use super::*;

    #[test]
    fn it_is_said_who_was_let_go_and_who_is_held() {
        let said = json!({
            "paused": true, "reached": true, "releasedCount": 1, "heldCount": 12,
            "released": [{"words": "a"}],
            "held": [{"number": 7, "words": "b", "breakpoint": "write pods"}],
            "gone": [{"words": "c"}],
            "breakpoints": [{"name": "write pods"}],
        });
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
        assert_eq!(lines(&waited)[0], "nobody was held; it is T");
        assert_eq!(lines(&json!({"paused": false})), ["the cluster goes on by itself"]);
    }
}
