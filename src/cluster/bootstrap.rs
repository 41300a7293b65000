//! What every cluster starts with (upstream's post-start hooks): applied through the API, kept when it is
//! there.

use std::net::Ipv4Addr;
use std::path::Path;

use serde_json::json;

use super::bootstrap_roles;
use super::manifests::{Error, IfPresent, apply_text};
use crate::apis::core::service::SERVICES;
use crate::apis::scheme::Scheme;
use crate::client_go::client::Client;

/// The address of the Service `default/kubernetes`: the first of the service range.
pub const API_SERVICE_IP: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);

/// In this order: namespaces before what lives in them.
const MANIFESTS: &[(&str, &str)] = &[
    ("manifests/bootstrap/namespaces.yaml", include_str!("../../manifests/bootstrap/namespaces.yaml")),
    (
        "manifests/bootstrap/priority-classes.yaml",
        include_str!("../../manifests/bootstrap/priority-classes.yaml"),
    ),
];

/// Creates what is not there yet; somebody may have changed the rest.
///
/// # Errors
/// The server's refusal, which is a bug of ours or a damaged data dir.
pub async fn apply(client: &Client, scheme: &Scheme) -> Result<(), Error> {
    for (origin, text) in MANIFESTS {
        apply_text(client, scheme, Path::new(origin), text, IfPresent::Keep).await?;
    }
    let failed = |status| Error::new(Path::new("manifests/bootstrap/rbac.txt"), status);
    bootstrap_roles::ensure(client).await.map_err(failed)?;
    let service = json!({
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": API_SERVICE_IP.to_string(),
            "sessionAffinity": "None",
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}],
        },
    });
    // Asked for first: a second create would be refused for its address, which is taken, not for its name.
    let failed = |status| Error::new(Path::new("service default/kubernetes"), status);
    match client.get(&SERVICES, "default", "kubernetes").await {
        Err(status) if status.is_not_found() => {
            client.create(&SERVICES, "default", service).await.map(drop).map_err(failed)
        }
        found => found.map(drop).map_err(failed),
    }
}
