//! What every cluster has, and has again when somebody deletes it: the namespaces of the system, the Service
//! `default/kubernetes` with its endpoints, and the day since when the use of tokens is noted
//! (`controlplane/controller/systemnamespaces`, `kubernetesservice`, `legacytokentracking`). Nothing is done
//! until something is deleted or changed, but where servers share an etcd.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::select_all;
use tokio::sync::mpsc::Receiver;

use super::inside::Inside;
use super::{api_endpoints, bootstrap, legacy_token_tracking};
use apimachinery::fields::FieldSelector;
use apimachinery::options::ListOptions;
use apimachinery::selectable::Predicate;
use apimachinery::status::Status;
use apimachinery::watch::WatchEvent;
use apis::core::config_map::CONFIG_MAPS;
use apis::core::endpoints::ENDPOINTS;
use apis::core::namespace::NAMESPACES;
use apis::core::secret::LEGACY_TOKEN_TRACKING;
use apis::core::service::SERVICES;
use apis::discovery::endpoint_slice::ENDPOINT_SLICES;
use apis::kind::Kind;
use client_go::client::Client;

/// How long after it was deleted it is there again, as upstream's loop for the Service.
const PERIOD: Duration = Duration::from_secs(10);

/// Looks after them for as long as it is polled; the address is where the server listens.
pub(super) fn following(inside: Arc<Inside>, address: Option<SocketAddr>) -> impl Future<Output = ()> {
    inside.clock.named("kube-apiserver").tracked(follow(inside, address))
}

async fn follow(inside: Arc<Inside>, address: Option<SocketAddr>) {
    let client = inside.kit();
    loop {
        // Who shares the store with others looks at it all the same: they come and go.
        if !inside.kv.is_shared()
            && let Err(status) = wait_for_loss(&client, inside.config.listen.is_some()).await
        {
            tracing::debug!(status.message, "the system's objects are not watched just now");
        }
        inside.clock.sleep(PERIOD).await;
        if let Err(status) = put_back(&inside, &client, address).await {
            tracing::debug!(status.message, "the system's objects are not put back yet");
        }
    }
}

/// Comes back when one of them is not what it was, or a watch ends.
async fn wait_for_loss(client: &Client, has_clients: bool) -> Result<(), Status> {
    let named = |name: &str| ListOptions {
        predicate: Predicate { fields: FieldSelector::equal("metadata.name", name), ..Predicate::default() },
        ..ListOptions::default()
    };
    let watch = |kind: &'static Kind, namespace: &'static str, options| async move {
        client.watch(kind, namespace, &options).await
    };
    let mut watches: Vec<(Receiver<WatchEvent>, bool)> = vec![
        (watch(&NAMESPACES, "", ListOptions::default()).await?, true),
        (watch(&SERVICES, api_endpoints::NAMESPACE, named(api_endpoints::NAME)).await?, false),
        (watch(&ENDPOINTS, api_endpoints::NAMESPACE, named(api_endpoints::NAME)).await?, false),
        (watch(&ENDPOINT_SLICES, api_endpoints::NAMESPACE, named(api_endpoints::NAME)).await?, false),
    ];
    if has_clients {
        let (namespace, name) = (legacy_token_tracking::NAMESPACE, LEGACY_TOKEN_TRACKING);
        watches.push((watch(&CONFIG_MAPS, namespace, named(name)).await?, false));
    }
    loop {
        let next = watches.iter_mut().map(|(events, of_namespaces)| {
            let of_namespaces = *of_namespaces;
            Box::pin(async move { (events.recv().await, of_namespaces) })
        });
        match select_all(next).await.0 {
            (Some(WatchEvent::Deleted(object)), of_namespaces)
                if !of_namespaces || bootstrap::is_system(&object.metadata.name) =>
            {
                return Ok(());
            }
            (Some(WatchEvent::Modified(_)), false) | (None, _) => return Ok(()),
            _ => {}
        }
    }
}

async fn put_back(inside: &Inside, client: &Client, address: Option<SocketAddr>) -> Result<(), Status> {
    bootstrap::namespaces(client).await?;
    if inside.config.listen.is_some() {
        legacy_token_tracking::publish(client, inside.clock.now()).await?;
    }
    let ranges = inside.config.apiserver.services.service_cluster_ip_range;
    bootstrap::make_service(client, ranges.api_server()).await?;
    // One that ends has taken itself off the list.
    match address.filter(|_| !inside.is_stopping()) {
        Some(address) => {
            let servers = inside.storage.renew_master_lease(address).await?;
            api_endpoints::publish(client, &servers).await
        }
        None => Ok(()),
    }
}
