//! When a cluster is ready: whoever is told so may create a pod at once, and sees all nodes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::Config;
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apimachinery::watch::WatchEvent;
use apis::core::node::NODES;
use apis::core::pod::PODS;
use apis::core::service_account::SERVICE_ACCOUNTS;
use apis::kind::Kind;
use apis::views::meta::is_true;
use apis::views::node::Node;
use client_go::client::Client;
use clock::Clock;

/// After so many looks there is a pause between them.
const MANY_LOOKS: u32 = 10_000;
const PAUSE: Duration = Duration::from_millis(10);

/// Waits until the authorizers know the roles that the components ask under: they hear of them as everybody
/// does, a moment after the write.
pub(super) async fn wait_for_roles(client: &Client) {
    const PATH: &str = "/readyz/poststarthook/rbac/bootstrap-roles";
    for attempt in 0_u32.. {
        let request = http::Request::builder().uri(PATH).body(Default::default());
        let request = request.expect("the path is one");
        if client.raw(request).await.status().is_success() {
            return;
        }
        tokio::task::yield_now().await;
        if attempt > MANY_LOOKS {
            // The roles are in an etcd, which may be away. No cluster on one has a time of its own.
            Clock::real().sleep(PAUSE).await;
        }
    }
}

/// Waits for what the running components make at the start: the default service account, and nodes that are
/// ready.
///
/// # Errors
/// The server's, when it cannot be watched.
pub(super) async fn wait(client: &Client, config: &Config, nodes: &[String]) -> Result<(), Status> {
    let selection = config.controller_manager.selection().unwrap_or_default();
    if config.components.controllers && selection.runs("serviceaccount-controller") {
        wait_for(client, &SERVICE_ACCOUNTS, "default", 1, |account| account.metadata.name == "default")
            .await?;
    }
    if config.components.kubelets {
        wait_for(client, &NODES, "", nodes.len(), is_ready).await?;
    }
    Ok(())
}

/// Waits for these nodes to be ready.
///
/// # Errors
/// The server's, when it cannot be watched.
pub(super) async fn nodes(client: &Client, names: &BTreeSet<String>) -> Result<(), Status> {
    let is_one = |node: &Object| names.contains(&*node.metadata.name) && is_ready(node);
    wait_for(client, &NODES, "", names.len(), is_one).await
}

/// Waits for the mirror pods of these names.
///
/// # Errors
/// The server's, when it cannot be watched.
pub(super) async fn control_plane(client: &Client, names: &BTreeSet<String>) -> Result<(), Status> {
    let is_one = |pod: &Object| names.contains(&*pod.metadata.name);
    wait_for(client, &PODS, "kube-system", names.len(), is_one).await
}

fn is_ready(node: &Object) -> bool {
    is_true(&node.view::<Node>().status.conditions, "Ready")
}

async fn wait_for(
    client: &Client,
    kind: &Arc<Kind>,
    namespace: &str,
    wanted: usize,
    is_there: impl Fn(&Object) -> bool,
) -> Result<(), Status> {
    let mut there = BTreeSet::new();
    while there.len() < wanted {
        let mut events = client.watch(kind, namespace, &ListOptions::default()).await?;
        while there.len() < wanted {
            // A watch that ends early is asked for again.
            let Some(event) = events.recv().await else { break };
            if let WatchEvent::Added(object) | WatchEvent::Modified(object) = &event
                && is_there(object)
            {
                there.insert(object.key());
            }
        }
    }
    Ok(())
}
