//! What every cluster starts with (upstream's post-start hooks): applied through the API, kept when it is
//! there.

use std::net::IpAddr;
use std::path::Path;

use futures::future::try_join_all;
use serde_json::{Value, json};

use super::config::Config;
use super::manifests::Error;
use super::{bootstrap_roles, kwok_kinds, metrics};
use apimachinery::status::Status;
use apis::core::namespace::NAMESPACES;
use apis::core::service::SERVICES;
use apis::scheme::Scheme;
use apis::storage::storage_class::STORAGE_CLASSES;
use apiserver::registry::Registry;
use apiserver::storage::store::full_key;
use client_go::client::Client;
use controllers::SIMULATED_DISK_PROVISIONER;
use etcd::Kv;

/// `controlplane/controller/systemnamespaces`
const SYSTEM_NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];
/// Those of them that nobody can delete.
const IMMORTAL_NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-public"];
/// Who manages the fields of what the server makes for itself.
const SERVER: &str = "kube-apiserver";

/// Creates what is not there yet of what components build on; somebody may have changed the rest.
///
/// Roles, priority classes and the like are made by the server itself when somebody first asks for them; what
/// there is of roles from an earlier start is looked after here.
///
/// # Errors
/// The server's refusal, which is a bug of ours or a damaged data dir.
pub(crate) async fn before_components(client: &Client, registry: &Registry) -> Result<(), Error> {
    namespaces(client).await.map_err(about("the system namespaces"))?;
    let failed = about("manifests/bootstrap/rbac.txt");
    bootstrap_roles::reconcile_stored(client, registry).await.map_err(failed)
}

/// The system's namespaces, those that are not there.
///
/// # Errors
/// The server's refusal.
pub(super) async fn namespaces(client: &Client) -> Result<(), Status> {
    try_join_all(SYSTEM_NAMESPACES.iter().map(|name| make_namespace(client, name))).await.map(drop)
}

/// Whether a namespace is the system's.
pub(super) fn is_system(namespace: &str) -> bool {
    SYSTEM_NAMESPACES.contains(&namespace)
}

/// Whether the system's namespaces are in a store. They were made before everything else, and stay.
pub(super) fn is_begun(kv: &Kv) -> bool {
    let is_there = |name: &str| matches!(kv.get(&full_key(&NAMESPACES, name), None), Ok((Some(_), _)));
    IMMORTAL_NAMESPACES.iter().all(|name| is_there(name))
}

/// The rest: no component waits for it. The Service `default/kubernetes` gets this address.
///
/// # Errors
/// As [`before_components`].
pub(crate) async fn beside_components(client: &Client, api_server: IpAddr) -> Result<(), Error> {
    make_service(client, api_server).await.map_err(about("service default/kubernetes"))
}

/// What a cluster has because somebody wants it; of an earlier start it may be more.
///
/// # Errors
/// As [`before_components`].
pub(super) async fn by_choice(
    client: &Client,
    scheme: &Scheme,
    config: &Config,
    is_new: bool,
) -> Result<(), Error> {
    kwok_kinds::bring(client, scheme, &config.kwok_kinds, config.stages.as_deref()).await?;
    if config.default_storage_class {
        default_storage_class(client).await?;
    }
    metrics::register(client, config, is_new).await.map_err(about("the APIs of metrics"))
}

/// The StorageClass that claims get which name none.
async fn default_storage_class(client: &Client) -> Result<(), Error> {
    let class = json!({
        "metadata": {
            "name": "standard",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": SIMULATED_DISK_PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    });
    match client.create(&STORAGE_CLASSES, "", class).await {
        Err(refused) if !refused.is_already_exists() => Err(about("storageclass standard")(refused)),
        _ => Ok(()),
    }
}

fn about(what: &'static str) -> impl Fn(Status) -> Error {
    move |status| Error::new(Path::new(what), status)
}

async fn make_namespace(client: &Client, name: &str) -> Result<(), Status> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    match client.create_strictly(&NAMESPACES, "", &namespace, SERVER).await {
        Err(refused) if !refused.is_already_exists() => Err(refused),
        _ => Ok(()),
    }
}

/// Asked for first: a second create would be refused for its address, which is taken, not for its name.
pub(super) async fn make_service(client: &Client, address: IpAddr) -> Result<(), Status> {
    match client.get(&SERVICES, "default", "kubernetes").await {
        Err(status) if status.is_not_found() => {
            let made = client.create_strictly(&SERVICES, "default", &service(address), SERVER).await;
            let Err(refused) = made else { return Ok(()) };
            // Another server may have been faster, and then the address is taken before the Service is there.
            client.get(&SERVICES, "default", "kubernetes").await.map(drop).map_err(|_| refused)
        }
        found => found.map(drop),
    }
}

fn service(address: IpAddr) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": address.to_string(),
            "sessionAffinity": "None",
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}],
        },
    })
}
