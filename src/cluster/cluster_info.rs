//! The ConfigMap `kube-public/cluster-info`: where the cluster is and whom to trust, for those who join it
//! with a bootstrap token (kubeadm's `phases/bootstraptoken/clusterinfo`). The bootstrap signer adds a
//! signature for each token; what is there of an earlier start is kept.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::config::Access;
use apimachinery::status::Status;
use apis::core::config_map::CONFIG_MAPS;
use client_go::client::Client;

const NAMESPACE: &str = "kube-public";
const NAME: &str = "cluster-info";
const CONTENT: &str = "kubeconfig";

/// Writes down how the cluster is reached; nothing where there is nobody to be trusted.
///
/// # Errors
/// The server's refusal.
pub(crate) async fn publish(client: &Client, access: &Access) -> Result<(), Status> {
    let Some(authority) = &access.authority_pem else { return Ok(()) };
    let content = kubeconfig(&access.server, authority);
    let config_map = json!({"metadata": {"name": NAME, "namespace": NAMESPACE}, "data": {CONTENT: content}});
    match client.create(&CONFIG_MAPS, NAMESPACE, config_map).await {
        Err(status) if status.is_already_exists() => replace(client, &content).await,
        created => created.map(drop),
    }
}

/// The port may be another one now; signatures are the signer's.
async fn replace(client: &Client, content: &str) -> Result<(), Status> {
    let mut tree = client.get(&CONFIG_MAPS, NAMESPACE, NAME).await?.to_value();
    if tree["data"][CONTENT] == content {
        return Ok(());
    }
    tree["data"][CONTENT] = Value::from(content);
    client.update(&CONFIG_MAPS, NAMESPACE, NAME, tree).await.map(drop)
}

/// As clientcmd writes it: a cluster without a name, and nobody who uses it.
fn kubeconfig(server: &str, authority_pem: &str) -> String {
    let authority = STANDARD.encode(authority_pem);
    format!(
        "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: {authority}\n    server: \
         {server}\n  name: \"\"\ncontexts: null\ncurrent-context: \"\"\nkind: Config\nusers: null\n"
    )
}
