//! What was seen of a cluster's users, and why objects are as they are; over HTTP, too.

use std::sync::Arc;
use std::time::Duration;

use super::inside::{Inside, for_masters};
use apimachinery::fields::FieldSelector;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apis::kind::Kind;
use apis::rbac::role::{CLUSTER_ROLES, ROLES};
use apis::rbac::role_binding::{CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS};
use axum::response::Response;
use client_go::client::Client;
use handles::{ClusterHandle, HandleCall, Handles, answer};
use serde_json::{Value, json};
use witness::unused::{UnusedGrant, unused};
use witness::why::{Explanation, Witnesses};
use witness::{REMEMBERED, roles};

/// The label of the roles that every cluster begins with.
const BOOTSTRAPPING: &str = "kubernetes.io/bootstrapping";

impl Inside {
    /// As far as `client` may look.
    pub(super) async fn why(
        &self,
        client: &Client,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Explanation, Status> {
        Witnesses { client, scheme: &self.scheme }.why(kind, namespace, name).await
    }

    pub(super) async fn wait_for(
        &self,
        kind: &Kind,
        [namespace, name]: [&str; 2],
        patience: Duration,
        mut is_so: impl FnMut(Option<&Value>) -> bool,
    ) -> Result<(), Status> {
        let looking = async {
            loop {
                if self.look(kind, [namespace, name], &mut is_so).await? {
                    return Ok(());
                }
            }
        };
        if let Ok(done) = self.clock.timeout(patience, looking).await {
            return done;
        }
        let why = self.why(&self.kit(), &kind.plural, namespace, name).await;
        let why = why.map(|told| told.render()).unwrap_or_default();
        Err(Status::timeout(format!(
            "{} {name} did not become so within {patience:?}:\n{why}",
            kind.singular
        )))
    }

    /// Looks at the object and then at its changes; false when the watch ends.
    async fn look(
        &self,
        kind: &Kind,
        [namespace, name]: [&str; 2],
        is_so: &mut impl FnMut(Option<&Value>) -> bool,
    ) -> Result<bool, Status> {
        let client = self.kit();
        let mut options = ListOptions::default();
        options.predicate.fields = FieldSelector::equal("metadata.name", name);
        let list = client.list(kind, namespace, &options).await?;
        let found = list.items.first().map(|object| object.to_value());
        if is_so(found.as_ref()) {
            return Ok(true);
        }
        options.resource_version = Some(list.resource_version.to_string());
        let mut events = client.watch(kind, namespace, &options).await?;
        while let Some(event) = events.recv().await {
            let Some(object) = event.object() else { continue };
            let object = Some(object.to_value()).filter(|_| event.type_name() != "DELETED");
            if is_so(object.as_ref()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What roles allow and nobody has used; those of the bootstrap are looked at on demand.
    async fn unused(&self, client: &Client, with_bootstrap: bool) -> Result<Vec<UnusedGrant>, Status> {
        let mut roles = [trees(client, &CLUSTER_ROLES).await?, trees(client, &ROLES).await?].concat();
        let of_bootstrap = |role: &Value| !role["metadata"]["labels"][BOOTSTRAPPING].is_null();
        roles.retain(|role| with_bootstrap || !of_bootstrap(role));
        let bindings =
            [trees(client, &CLUSTER_ROLE_BINDINGS).await?, trees(client, &ROLE_BINDINGS).await?].concat();
        Ok(unused(&self.interceptors.requests.uses(), &roles, &bindings))
    }
}

async fn trees(client: &Client, kind: &Kind) -> Result<Vec<Value>, Status> {
    let list = client.list(kind, "", &ListOptions::default()).await?;
    let typed = |mut tree: Value| {
        tree["kind"] = json!(*kind.kind);
        tree
    };
    Ok(list.items.iter().map(|object| typed(object.to_value())).collect())
}

/// Requests, roles, and why.
pub(super) fn add(handles: Handles, inside: &Arc<Inside>) -> Handles {
    let requests = ClusterHandle::get("/requests", "The last requests of users, oldest first.")
        .query("user", "Whose; else of all.")
        .query("limit", "At most so many, the last ones.");
    let forget =
        ClusterHandle::delete("/requests", "Forgets the requests: what comes is of what begins now.");
    let infer = ClusterHandle::get("/rbac/infer", "The least roles that would have been enough for a user.")
        .query("user", "Whose.")
        .query("resourceNames", "true: only the objects that were asked for.");
    let idle = ClusterHandle::get("/rbac/unused", "What roles allow and nobody has used.")
        .query("bootstrap", "true: of the roles that every cluster has, too.");
    let why = ClusterHandle::get("/why", "Why an object is as it is, or why it is not there.")
        .query("resource", "As kubectl takes it: pod, deploy, widgets.example.com.")
        .query("namespace", "Its namespace.")
        .query("name", "Its name.");
    let on = |act: fn(&Inside, HandleCall) -> Result<Response, Status>| {
        let inside = Arc::downgrade(inside);
        move |call: HandleCall| {
            let inside = inside.upgrade();
            std::future::ready(inside.ok_or_else(ended).and_then(|inside| act(&inside, call)))
        }
    };
    let (to_idle, to_why) = (Arc::downgrade(inside), Arc::downgrade(inside));
    handles
        .with(requests, on(show_requests))
        .with(forget, on(forget_requests))
        .with(infer, on(show_roles))
        .with(idle, move |call| {
            let inside = to_idle.upgrade();
            async move {
                let inside = inside.ok_or_else(ended)?;
                let client = inside.kit_for(&call.user);
                let found = inside.unused(&client, is_true(&call, "bootstrap")).await?;
                answer(&json!({"unused": found}))
            }
        })
        .with(why, move |call| {
            let inside = to_why.upgrade();
            async move {
                let (kind, name) = (needed(&call, "resource")?, needed(&call, "name")?);
                let namespace = call.query("namespace").unwrap_or("default");
                let inside = inside.ok_or_else(ended)?;
                answer(&inside.why(&inside.kit_for(&call.user), &kind, namespace, &name).await?)
            }
        })
}

/// Whose requests may be shown: everybody's own, and to those who may do everything those of others, too:
/// they name objects that a role may hide.
fn whose(call: &HandleCall) -> Result<&str, Status> {
    let user = call.query("user").unwrap_or_default();
    if user != &*call.user.name {
        for_masters(call, "requests of others name objects that they alone may read; ask for user=YOURSELF")?;
    }
    Ok(user)
}

fn show_requests(inside: &Inside, call: HandleCall) -> Result<Response, Status> {
    let mut seen = inside.interceptors.requests.of(whose(&call)?);
    let limit = match call.query("limit") {
        Some(text) => {
            text.parse().map_err(|_| Status::bad_request(format!("limit {text:?} is no number")))?
        }
        None => REMEMBERED,
    };
    seen.drain(..seen.len().saturating_sub(limit));
    answer(&json!({"requests": seen}))
}

fn forget_requests(inside: &Inside, _: HandleCall) -> Result<Response, Status> {
    inside.interceptors.requests.clear();
    answer(&json!({"requests": []}))
}

fn show_roles(inside: &Inside, call: HandleCall) -> Result<Response, Status> {
    let requests = &inside.interceptors.requests;
    needed(&call, "user")?;
    let items = roles::infer(&requests.uses(), whose(&call)?, is_true(&call, "resourceNames"));
    answer(&json!({"apiVersion": "v1", "kind": "List", "items": items, "leftOut": requests.left_out()}))
}

fn is_true(call: &HandleCall, name: &str) -> bool {
    call.query(name) == Some("true")
}

fn needed(call: &HandleCall, name: &str) -> Result<String, Status> {
    let missing = || Status::bad_request(format!("the parameter {name} is missing"));
    call.query(name).map(str::to_owned).ok_or_else(missing)
}

fn ended() -> Status {
    Status::failure(503, "ServiceUnavailable", "the cluster has ended")
}
