//! Stepping over HTTP: hold a cluster, let it go on step by step, and where it is to stand still.

mod breakpoints;

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::condition::WaitFor;
use super::inside::Inside;
use super::stepping::{STEP_WITHIN, StepError, StepsTaken};
use super::time_handles::{acting, duration};
use apimachinery::status::Status;
use apimachinery::time::rfc3339_micro;
use flow::{Breakpoint, Gate, HeldStep};
use handles::{ClusterHandle, HandleCall, Handles};

/// Of so many who are held, or were let go, it is told; of the others, how many there are.
const MAX_TOLD: usize = 200;

/// All of them.
pub(super) fn add(handles: Handles, inside: &Arc<Inside>) -> Handles {
    breakpoints(conditions(steps(handles, inside), inside), inside)
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct StepBody {
    number: Option<u64>,
    within: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepUntilBody {
    object: String,
    #[serde(default)]
    namespace: String,
    #[serde(rename = "for")]
    wanted: String,
    within: Option<String>,
}

fn steps(handles: Handles, inside: &Arc<Inside>) -> Handles {
    let integer =
        json!({"type": "integer", "description": "Of the step; else the one that is held longest."});
    let body = json!({"type": "object", "properties": {"number": integer, "within": text(WITHIN)}});
    let stage_body = json!({"type": "object", "properties": {"within": text(WITHIN)}});
    let state =
        ClusterHandle::get("/step", "Whether the cluster is held between two steps, and who is held.");
    let pause = ClusterHandle::post("/step/pause", "Holds the cluster between two steps, and its clock.");
    let next = ClusterHandle::post("/step/next", "Lets one step happen; when nobody is held, time pass.");
    let stage = ClusterHandle::post("/step/stage", "Lets steps happen until the next is of another stage.");
    let go_on = ClusterHandle::post("/step/continue", "Lets everything go on, up to the next breakpoint.");
    handles
        .with(state.answers(schema()), acting(inside, |inside, _| async move { told(&inside, None) }))
        .with(
            pause.answers(schema()),
            acting(inside, |inside, _| async move {
                inside.hold().await?;
                told(&inside, None)
            }),
        )
        .with(
            next.body(body).answers(schema()),
            acting(inside, |inside, call: HandleCall| async move {
                let StepBody { number, within } = call.json().await?;
                let taken = inside.take_step(number, within_of(within)?).await?;
                told(&inside, Some(taken))
            }),
        )
        .with(
            stage.body(stage_body).answers(schema()),
            acting(inside, |inside, call: HandleCall| async move {
                let StepBody { within, .. } = call.json().await?;
                let taken = inside.take_stage(within_of(within)?).await?;
                told(&inside, Some(taken))
            }),
        )
        .with(
            go_on.answers(schema()),
            acting(inside, |inside, _| async move {
                let gate = inside.stepped_by()?;
                gate.open();
                let said = told(&inside, None)?;
                // Nobody was held from now on who could have given up.
                gate.forget_gone();
                Ok(said)
            }),
        )
}

fn conditions(handles: Handles, inside: &Arc<Inside>) -> Handles {
    let until = ClusterHandle::post("/step/until", "Lets steps happen until a condition is true.");
    let body = json!({
        "type": "object",
        "required": ["object", "for"],
        "properties": {
            "object": text("As deploy/web."),
            "namespace": text("Else default."),
            "for": text("As kubectl wait takes it, or the type of a condition."),
            "within": text(WITHIN),
        },
    });
    handles.with(
        until.body(body).answers(schema()),
        acting(inside, |inside, call: HandleCall| async move {
            let client = inside.kit_for(&call.user);
            let StepUntilBody { object, namespace, wanted, within } = call.json().await?;
            let condition = WaitFor::parse(&object, &namespace, &wanted);
            let condition = condition.map_err(|bad| Status::bad_request(bad.to_string()))?;
            let taken = inside.take_steps_until(&client, condition, within_of(within)?).await?;
            told(&inside, Some(taken))
        }),
    )
}

fn breakpoints(handles: Handles, inside: &Arc<Inside>) -> Handles {
    let add = ClusterHandle::post("/step/breakpoints", "Adds a place where the cluster stands still.");
    let remove = ClusterHandle::delete("/step/breakpoints", "Removes a breakpoint, or all.")
        .query("name", "Its name; else all.");
    let stages: Vec<&str> = flow::HeldStage::ALL.iter().map(|stage| stage.name()).collect();
    let body = json!({
        "type": "object",
        "required": ["stage"],
        "properties": {
            "stage": {"type": "string", "enum": stages},
            "of": text("A resource, controller, admission plugin or verb; else any."),
            "object": text("NAMESPACE/NAME, or a name in any namespace; else any."),
        },
    });
    handles
        .with(
            add.body(body).answers(schema()),
            acting(inside, |inside, call: HandleCall| async move {
                let breakpoint: Breakpoint = call.json().await?;
                let added = inside.stepped_by()?.add(inside.meant(breakpoint)?);
                added.map_err(|error| Status::bad_request(error.to_string()))?;
                told(&inside, None)
            }),
        )
        .with(
            remove.answers(schema()),
            acting(inside, |inside, call: HandleCall| async move {
                let name = call.query("name").map(|name| inside.breakpoint_called(name));
                let removed = inside.stepped_by()?.remove(name.as_deref());
                match name {
                    Some(name) if removed == 0 => {
                        let how = "`kubarium step show` (GET /kubarium/v1/step) lists them";
                        let text = format!("there is no breakpoint {name:?}; {how}");
                        Err(Status::failure(404, "NotFound", text))
                    }
                    _ => told(&inside, None),
                }
            }),
        )
}

const WITHIN: &str = "How long to wait for the next step in real time; else 30s.";

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn within_of(within: Option<String>) -> Result<Duration, Status> {
    within.map_or(Ok(STEP_WITHIN), |text| duration("within", &text))
}

fn schema() -> Value {
    let steps = json!({"type": "array", "items": {"type": "object"}});
    let integer = json!({"type": "integer"});
    json!({
        "type": "object",
        "properties": {
            "paused": {"type": "boolean"},
            "now": {"type": "string", "format": "date-time"},
            "released": steps, "releasedCount": integer, "held": steps, "heldCount": integer,
            "gone": steps, "breakpoints": steps,
            "reached": {"type": "boolean", "description": "Whether what was asked for has come true."},
            "instead": text("Of what has not come true: how the object is."),
        },
    })
}

/// How things stand.
fn told(inside: &Inside, taken: Option<StepsTaken>) -> Result<Value, Status> {
    let gate: &Gate = inside.stepped_by()?;
    let (held, gone) = (gate.held(), gate.gone());
    let breakpoints = gate.breakpoints();
    let name = |(name, breakpoint)| {
        let mut told = json!(breakpoint);
        told["name"] = json!(name);
        told
    };
    let mut said = json!({
        "paused": gate.is_closed(),
        "now": rfc3339_micro(inside.clock.now()),
        "held": in_words(&held),
        "heldCount": held.len(),
        "gone": in_words(&gone),
        "breakpoints": breakpoints.into_iter().map(name).collect::<Vec<Value>>(),
    });
    if let Some(StepsTaken { released, reached, instead }) = taken {
        let last = released.len().saturating_sub(MAX_TOLD);
        said["released"] = in_words(&released[last..]);
        said["releasedCount"] = released.len().into();
        said["reached"] = reached.into();
        if !instead.is_empty() {
            said["instead"] = instead.into();
        }
    }
    Ok(said)
}

fn in_words(steps: &[HeldStep]) -> Value {
    let tell = |step: &HeldStep| {
        let mut told = json!(step);
        told["words"] = step.to_string().into();
        told
    };
    steps.iter().take(MAX_TOLD).map(tell).collect()
}

impl From<StepError> for Status {
    fn from(error: StepError) -> Status {
        match error {
            StepError::Until(error) => (*error).into(),
            StepError::NotHeld(_) => Status::failure(404, "NotFound", error.to_string()),
            StepError::NoRecord => Status::bad_request(error.to_string()),
        }
    }
}
