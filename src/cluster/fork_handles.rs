//! The handles of forks: each that is made over HTTP has a name, and listens on a port of its own.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::config::Listen;
use super::fork::ForkError;
use super::forked::NamedForks;
use super::inside::{Inside, for_masters};
use apimachinery::names::dns1123_label;
use apimachinery::status::Status;
use handles::{ClusterHandle, Handles, answer};

/// So many forks a cluster keeps by name. At the bound another is refused with 429 until one is deleted.
const MAX_FORKS: usize = 100;

/// Why only administrators make forks.
const MAY_DO_ALL: &str = "a fork's kubeconfig is an administrator's, of its parent too";

/// What is asked for.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WantedFork {
    name: Option<String>,
    /// A text as in objects, or a number.
    resource_version: Option<Value>,
}

/// A name that is taken until there is a fork.
struct Reservation {
    inside: Arc<Inside>,
    name: String,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut forks = self.inside.forks.0.lock();
        if forks.get(&self.name).is_some_and(Option::is_none) {
            forks.remove(&self.name);
        }
    }
}

impl NamedForks {
    fn describe(&self) -> Value {
        let forks = self.0.lock();
        let described = forks.iter().filter_map(|(name, fork)| {
            let access = fork.as_ref()?.access()?;
            Some(json!({"name": name, "server": access.server}))
        });
        json!({"forks": described.collect::<Vec<Value>>()})
    }
}

/// Takes a name, the one that is wanted or the first that is free.
fn reserve(inside: &Arc<Inside>, wanted: Option<String>) -> Result<Reservation, Status> {
    let mut forks = inside.forks.0.lock();
    if forks.len() >= MAX_FORKS {
        let text = format!("there are {MAX_FORKS} forks, and no more are kept: delete one");
        return Err(Status::failure(429, "TooManyRequests", text));
    }
    let free = || (1..).map(|number| format!("fork-{number}")).find(|name| !forks.contains_key(name));
    let name = wanted.or_else(free).unwrap_or_default();
    if let Some(wrong) = dns1123_label(&name).first() {
        return Err(Status::bad_request(format!("name {name:?}: {wrong}")));
    }
    if forks.contains_key(&name) {
        return Err(Status::failure(409, "AlreadyExists", format!("there is a fork {name:?} already")));
    }
    forks.insert(name.clone(), None);
    Ok(Reservation { inside: inside.clone(), name })
}

fn resource_version(wanted: &Value) -> Result<u64, Status> {
    let number = wanted.as_u64().or_else(|| wanted.as_str()?.parse().ok());
    number.ok_or_else(|| Status::bad_request(format!("resourceVersion {wanted} is no number")))
}

async fn make(inside: Arc<Inside>, wanted: WantedFork) -> Result<Value, Status> {
    let at = wanted.resource_version.as_ref().map(resource_version).transpose()?;
    let reservation = reserve(&inside, wanted.name)?;
    let fork = inside.fork(at, Some(Listen::loopback())).await.map_err(refusal)?;
    let access = fork.access().expect("it was told to listen");
    let name = reservation.name.clone();
    let made = json!({
        "name": name,
        "server": access.server,
        "resourceVersion": fork.resource_version().to_string(),
        "kubeconfig": access.kubeconfig(&name),
    });
    inside.forks.0.lock().insert(name, Some(fork));
    if inside.is_stopping() {
        // It has let go of its forks already.
        inside.forks.stop().await;
        return Err(refusal(ForkError::Stopping));
    }
    Ok(made)
}

fn refusal(error: ForkError) -> Status {
    let text = error.to_string();
    match error {
        ForkError::Stopping => Status::failure(503, "ServiceUnavailable", text),
        ForkError::TooOld { .. } => Status::failure(410, "Expired", text),
        ForkError::Future { .. } | ForkError::NotSetUp { .. } => Status::bad_request(text),
        ForkError::Start(_) => Status::internal(text),
    }
}

async fn delete(inside: Arc<Inside>, name: &str) -> Result<Value, Status> {
    let found = match inside.forks.0.lock().get_mut(name) {
        Some(found) => found.take(),
        None => None,
    };
    let none = || Status::failure(404, "NotFound", format!("there is no fork {name:?}"));
    let fork = found.ok_or_else(none)?;
    inside.forks.0.lock().remove(name);
    fork.stop().await;
    Ok(json!({"name": name}))
}

/// Makes, lists and ends forks.
pub(super) fn handles(handles: Handles, inside: &Arc<Inside>) -> Handles {
    let text = json!({"type": "string"});
    let fork =
        ClusterHandle::post("/forks", "Makes a fork of the cluster, which listens on a port of its own.")
            .body(json!({"type": "object", "properties": {"name": text, "resourceVersion": text}}))
            .answers(json!({
                "type": "object",
                "properties": {"name": text, "server": text, "resourceVersion": text, "kubeconfig": text},
            }));
    let list = ClusterHandle::get("/forks", "Lists the forks that were made over HTTP.");
    let end = ClusterHandle::delete("/forks/{name}", "Ends a fork.");
    let (making, listing, ending) = (inside.clone(), inside.clone(), inside.clone());
    handles
        .with(fork, move |call| {
            let inside = making.clone();
            async move {
                for_masters(&call, MAY_DO_ALL)?;
                answer(&make(inside, call.json().await?).await?)
            }
        })
        .with(list, move |call| {
            let allowed = for_masters(&call, MAY_DO_ALL);
            let forks = listing.forks.describe();
            async move { allowed.and_then(|()| answer(&forks)) }
        })
        .with(end, move |call| {
            let inside = ending.clone();
            async move {
                for_masters(&call, MAY_DO_ALL)?;
                answer(&delete(inside, call.path("name")).await?)
            }
        })
}
