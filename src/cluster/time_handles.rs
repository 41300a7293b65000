//! Time and rest of a cluster over HTTP.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::condition::WaitFor;
use super::inside::Inside;
use super::settle::{Settle, WITHIN};
use super::time::{TimeError, parse_duration};
use apimachinery::status::Status;
use apimachinery::time::rfc3339_micro;
use clock::Clock;
use handles::{ClusterHandle, HandleCall, Handles, answer};

/// How much of its time a stepped cluster lets pass for a condition, if nobody says otherwise.
const STEPPED_WITHIN: Duration = Duration::from_secs(3600);
/// As `kubectl wait`: how long somebody sits and waits for a condition elsewhere, in real time.
const REAL_WITHIN: Duration = Duration::from_secs(30);

/// All of them.
pub(super) fn add(handles: Handles, inside: &Arc<Inside>) -> Handles {
    settle(time(handles, inside), inside)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SettleBody {
    quiet: String,
    ignore: Vec<String>,
    within: String,
}

impl Default for SettleBody {
    fn default() -> SettleBody {
        SettleBody { quiet: "0s".into(), ignore: vec![], within: format!("{}s", WITHIN.as_secs()) }
    }
}

/// How to settle, for people.
fn settle_of(quiet: &str, ignore: Vec<String>) -> Result<Settle, Status> {
    let settle = Settle::new().quiet(duration("quiet", quiet)?);
    Ok(ignore.into_iter().fold(settle, Settle::ignore))
}

/// The fields of that in the document.
fn settle_schema(mut body: Value) -> Value {
    body["properties"]["quiet"] =
        json!({"type": "string", "description": "For so long no client outside has asked for anything."});
    body["properties"]["ignore"] =
        json!({"type": "array", "items": {"type": "string"}, "description": "Users who may ask on."});
    body
}

/// To wait until nothing moves.
fn settle(handles: Handles, inside: &Arc<Inside>) -> Handles {
    let within = json!({"type": "string", "description": "A duration, as 500ms or 1h."});
    let body = settle_schema(json!({"type": "object", "properties": {"within": within}}));
    let settle = ClusterHandle::post("/settle", "Waits until nothing moves; else 504 with what does.");
    handles.with(
        settle.body(body).answers(time_schema()),
        acting(inside, |inside, call: HandleCall| async move {
            let SettleBody { quiet, ignore, within } = call.json().await?;
            let settle = settle_of(&quiet, ignore)?.within(duration("within", &within)?);
            let settled = inside.settle(&settle).await;
            settled.map_err(|unsettled| Status::failure(504, "Timeout", unsettled.to_string()))?;
            Ok(time_of(&inside))
        }),
    )
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PassBody {
    duration: String,
    #[serde(default = "no_time")]
    quiet: String,
    #[serde(default)]
    ignore: Vec<String>,
}

fn no_time() -> String {
    "0s".into()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UntilBody {
    object: String,
    #[serde(default)]
    namespace: String,
    #[serde(rename = "for")]
    wanted: String,
    within: Option<String>,
    #[serde(default = "no_time")]
    quiet: String,
    #[serde(default)]
    ignore: Vec<String>,
}

/// What the cluster's clock says, and to let it pass.
fn time(handles: Handles, inside: &Arc<Inside>) -> Handles {
    let text = |description: &str| json!({"type": "string", "description": description});
    let now = ClusterHandle::get("/time", "The cluster's time, and who wakes next.");
    let pass = ClusterHandle::post("/time/pass", "Lets time pass on a stepped clock, from wake to wake.");
    let until = ClusterHandle::post("/time/until", "Waits for a condition; on a stepped clock time passes.");
    let pass_body = settle_schema(json!({
        "type": "object", "required": ["duration"], "properties": {"duration": text("As 1h, or 30d.")},
    }));
    let until_body = settle_schema(json!({
        "type": "object",
        "required": ["object", "for"],
        "properties": {
            "object": text("As deploy/web."),
            "namespace": text("Else default."),
            "for": text("As kubectl wait takes it, or the type of a condition."),
            "within": text(UNTIL_WITHIN),
        },
    }));
    let handles = handles
        .with(now.answers(time_schema()), acting(inside, |inside, _| async move { Ok(time_of(&inside)) }));
    let handles = handles.with(
        pass.body(pass_body).answers(time_schema()),
        acting(inside, |inside, call: HandleCall| async move {
            let PassBody { duration: text, quiet, ignore } = call.json().await?;
            let settle = settle_of(&quiet, ignore)?;
            let wakes = inside.pass(duration("duration", &text)?, &settle).await?;
            let mut said = time_of(&inside);
            said["wakes"] = wakes.into();
            Ok(said)
        }),
    );
    handles.with(
        until.body(until_body).answers(time_schema()),
        acting(inside, |inside, call: HandleCall| async move {
            let client = inside.kit_for(&call.user);
            let UntilBody { object, namespace, wanted, within, quiet, ignore } = call.json().await?;
            let settle = settle_of(&quiet, ignore)?;
            let condition = WaitFor::parse(&object, &namespace, &wanted);
            let condition = condition.map_err(|bad| Status::bad_request(bad.to_string()))?;
            let within = within.map(|text| duration("within", &text)).transpose()?;
            let at_most = within.unwrap_or_else(|| until_within(&inside.clock));
            let waited = inside.until(&client, &condition, at_most, &settle).await;
            waited.map_err(|why| if within.is_none() { with_advice(why) } else { why.into() })?;
            Ok(time_of(&inside))
        }),
    )
}

/// Of [`until_within`], for people.
const UNTIL_WITHIN: &str =
    "How much of the cluster's time it may take; else 30s of real time, with a stepped clock 1h.";

/// How much of a cluster's time a condition may take, if nobody says otherwise.
fn until_within(clock: &Clock) -> Duration {
    clock.within_real(REAL_WITHIN).unwrap_or(STEPPED_WITHIN)
}

/// Who has said no bound is told that there is one.
fn with_advice(error: TimeError) -> Status {
    let is_late = matches!(error, TimeError::TooLate { .. });
    let mut status = Status::from(error);
    if is_late {
        status.message +=
            "; to wait longer, say how long: kubarium time until --timeout (\"within\" over HTTP)";
    }
    status
}

/// What a handle does, in a task of its own: that of the connection is the cluster's, and while it is awake
/// nothing is at rest. It ends with the request.
pub(super) fn acting<F, Fut>(
    inside: &Arc<Inside>,
    act: F,
) -> impl Fn(HandleCall) -> BoxFuture<'static, Result<Response, Status>> + Clone + use<F, Fut>
where
    F: Fn(Arc<Inside>, HandleCall) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<Value, Status>> + Send + 'static,
{
    let inside = inside.clone();
    move |call| {
        let acted = act(inside.clone(), call);
        Box::pin(async move {
            let mut apart = JoinSet::new();
            apart.spawn(acted);
            match apart.join_next().await {
                Some(Ok(said)) => answer(&said?),
                Some(Err(error)) => Err(Status::internal(error)),
                None => Err(Status::internal("it did not begin")),
            }
        })
    }
}

pub(super) fn duration(field: &str, text: &str) -> Result<Duration, Status> {
    parse_duration(text).map_err(|why| Status::bad_request(format!("{field}: {why}")))
}

fn time_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "now": {"type": "string", "format": "date-time"},
            "stepped": {"type": "boolean", "description": "Whether it stands until it is stepped."},
            "next": {
                "type": "object",
                "description": "Who wakes next on a stepped clock.",
                "properties": {
                    "after": {"type": "string"},
                    "who": {"type": "array", "items": {"type": "string"}},
                },
            },
            "wakes": {"type": "integer", "description": "How often somebody woke while time passed."},
        },
    })
}

fn time_of(inside: &Inside) -> Value {
    let clock = &inside.clock;
    let mut said = json!({"now": rfc3339_micro(clock.now()), "stepped": clock.is_stepped()});
    if let Some(wake) = clock.next_waker() {
        let who: Vec<&str> = wake.who.iter().map(|name| &**name).collect();
        said["next"] = json!({"after": golang::duration::format(wake.after), "who": who});
    }
    said
}

impl From<TimeError> for Status {
    fn from(error: TimeError) -> Status {
        let text = error.to_string();
        match error {
            TimeError::RealClock | TimeError::Held | TimeError::TooFar { .. } | TimeError::Condition(_) => {
                Status::bad_request(text)
            }
            TimeError::Unsettled(_) | TimeError::TooLate { .. } => Status::failure(504, "Timeout", text),
            TimeError::Refused(status) => status,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_waited_for_as_long_as_somebody_may_sit_and_wait() {
        assert_eq!(until_within(&Clock::real()), Duration::from_secs(30));
        assert_eq!(until_within(&Clock::faster(60)), Duration::from_secs(30 * 60));
        assert_eq!(until_within(&Clock::stepped(chrono::DateTime::UNIX_EPOCH)), Duration::from_secs(3600));
    }
}
