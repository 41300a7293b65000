//! An operator with kube-rs, tested against a whole cluster: it turns each `Website` into a Deployment, and the
//! cluster turns that into pods. The client is kube's own, over memory instead of a socket.
//!
//! With envtest the Deployment would stay without pods; with kind the same test takes a minute to start.
//!
//! `cargo run --features kube --example operator`

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kubarium::{Cluster, Config};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::core::{CustomResourceExt, Resource, ResourceExt};
use kube::runtime::controller::Action;
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{Controller, watcher};
use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Who owns the fields that the operator applies.
const MANAGER: &str = "website-operator";

/// What a user writes.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Website", namespaced, schema = "disabled")]
struct WebsiteSpec {
    replicas: i32,
}

/// From here on it is the operator that you would ship.
async fn reconcile(website: Arc<Website>, client: Arc<kube::Client>) -> Result<Action, kube::Error> {
    let (name, namespace) = (website.name_any(), website.namespace().unwrap_or_default());
    let labels = json!({"website": name});
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "ownerReferences": [website.controller_owner_ref(&())]},
        "spec": {
            "replicas": website.spec.replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]},
            },
        },
    });
    let deployments: Api<Deployment> = Api::namespaced((*client).clone(), &namespace);
    deployments.patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&deployment)).await?;
    Ok(Action::await_change())
}

async fn operate(client: kube::Client) {
    let websites: Api<Website> = Api::all(client.clone());
    let deployments: Api<Deployment> = Api::all(client.clone());
    let again =
        |_: Arc<Website>, _: &kube::Error, _: Arc<kube::Client>| Action::requeue(Duration::from_millis(50));
    let controller = Controller::new(websites, watcher::Config::default());
    let controller = controller.owns(deployments, watcher::Config::default());
    controller.run(reconcile, again, Arc::new(client)).for_each(|_| std::future::ready(())).await;
}

/// And this is its test.
#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = Cluster::start(Config::default()).await?;
    let client = cluster.kube_client();

    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &definition()?).await?;
    await_condition(definitions, Website::crd_name(), conditions::is_crd_established()).await?;
    let operator = tokio::spawn(operate(client.clone()));

    let websites: Api<Website> = Api::default_namespaced(client.clone());
    let deployments: Api<Deployment> = Api::default_namespaced(client);
    websites.create(&PostParams::default(), &Website::new("blog", WebsiteSpec { replicas: 2 })).await?;
    await_condition(deployments.clone(), "blog", has_available(2)).await?;

    // What somebody takes away comes back: not only the object, but the running pods.
    let first = deployments.get("blog").await?.uid();
    deployments.delete("blog", &Default::default()).await?;
    let is_another = |found: Option<&Deployment>| found.is_some_and(|found| found.uid() != first);
    await_condition(deployments.clone(), "blog", is_another).await?;
    await_condition(deployments, "blog", has_available(2)).await?;

    operator.abort();
    cluster.stop().await;
    Ok(())
}

fn has_available(wanted: i32) -> impl Fn(Option<&Deployment>) -> bool {
    move |found| {
        let status = found.and_then(|deployment| deployment.status.as_ref());
        status.and_then(|status| status.available_replicas) == Some(wanted)
    }
}

/// What the derive makes, with a schema. With `schemars` the derive writes that, too.
fn definition() -> Result<CustomResourceDefinition, serde_json::Error> {
    let mut definition = Website::crd();
    let spec = json!({"type": "object", "properties": {"replicas": {"type": "integer"}}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    definition.spec.versions[0].schema = Some(serde_json::from_value(schema)?);
    Ok(definition)
}
