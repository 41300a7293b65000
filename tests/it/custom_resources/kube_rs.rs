//! kube-rs, over memory and over TLS: a derived kind, a controller for it, a reflector, discovery.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kubarium::cluster::Listen;
use kubarium::{Cluster, Config};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::core::{CustomResourceExt, GroupVersionKind, Resource, ResourceExt};
use kube::discovery::Discovery;
use kube::runtime::controller::Action;
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{Controller, reflector, watcher};
use kube::{Client, Error};
use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::support::wire::Target;

const MANAGER: &str = "foo-controller";

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "rs.example.com", version = "v1", kind = "Foo", plural = "foos", namespaced)]
#[kube(status = "FooStatus", shortname = "fo", schema = "disabled")]
#[kube(scale(spec_replicas_path = ".spec.size", status_replicas_path = ".status.size"))]
struct FooSpec {
    size: i64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct FooStatus {
    size: i64,
}

/// What the derive makes, with the schema that it leaves out.
fn definition() -> CustomResourceDefinition {
    let size = || json!({"type": "object", "properties": {"size": {"type": "integer"}}});
    let schema = json!({"type": "object", "properties": {"spec": size(), "status": size()}});
    let mut definition = Foo::crd();
    let schema = serde_json::from_value(json!({"openAPIV3Schema": schema})).unwrap();
    definition.spec.versions[0].schema = Some(schema);
    definition
}

/// A ConfigMap for each Foo, and its size in the status.
async fn reconcile(one: Arc<Foo>, client: Arc<Client>) -> Result<Action, Error> {
    let (name, namespace) = (one.name_any(), one.namespace().unwrap_or_default());
    let owner = one.controller_owner_ref(&()).expect("it is stored");
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": [owner]}, "data": {"size": one.spec.size.to_string()}});
    let maps: Api<ConfigMap> = Api::namespaced((*client).clone(), &namespace);
    maps.patch(&name, &PatchParams::apply(MANAGER), &Patch::Apply(&settings)).await?;
    let status = json!({"apiVersion": "rs.example.com/v1", "kind": "Foo", "status": {"size": one.spec.size}});
    let foos: Api<Foo> = Api::namespaced((*client).clone(), &namespace);
    foos.patch_status(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&status)).await?;
    Ok(Action::await_change())
}

async fn an_operator_does_its_work(client: Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &definition()).await.unwrap();
    await_condition(definitions, Foo::crd_name(), conditions::is_crd_established()).await.unwrap();
    let (foos, maps): (Api<Foo>, Api<ConfigMap>) =
        (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));
    let again =
        |_: Arc<Foo>, _: &Error, _: Arc<Client>| Action::requeue(std::time::Duration::from_millis(50));
    let running = Controller::new(foos.clone(), watcher::Config::default())
        .owns(maps.clone(), watcher::Config::default())
        .run(reconcile, again, Arc::new(client.clone()));
    let running = tokio::spawn(running.for_each(|_| std::future::ready(())));
    let (store, writer) = reflector::store();
    let reflecting = reflector(writer, watcher(foos.clone(), watcher::Config::default().streaming_lists()));
    let reflecting = tokio::spawn(reflecting.try_for_each(|_| std::future::ready(Ok(()))));

    foos.create(&PostParams::default(), &Foo::new("one", FooSpec { size: 2 })).await.unwrap();
    let has_size = |size: i64| {
        move |one: Option<&Foo>| {
            one.and_then(|one| one.status.as_ref()).is_some_and(|status| status.size == size)
        }
    };
    await_condition(foos.clone(), "one", has_size(2)).await.unwrap();
    let first = maps.get("one").await.unwrap();
    assert_eq!(first.data.as_ref().unwrap()["size"], "2");
    let owner = &first.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((owner.kind.as_str(), owner.controller), ("Foo", Some(true)));

    // What somebody takes away comes back, and what somebody scales follows.
    maps.delete("one", &Default::default()).await.unwrap();
    let first = first.metadata.uid;
    let is_another = |map: Option<&ConfigMap>| map.is_some_and(|map| map.metadata.uid != first);
    await_condition(maps.clone(), "one", is_another).await.unwrap();
    let scale = Patch::Merge(json!({"spec": {"replicas": 5}}));
    let scaled = foos.patch_scale("one", &PatchParams::default(), &scale).await.unwrap();
    assert_eq!(scaled.spec.and_then(|spec| spec.replicas), Some(5));
    await_condition(foos.clone(), "one", has_size(5)).await.unwrap();
    store.wait_until_ready().await.unwrap();
    assert_eq!(store.state()[0].name_any(), "one");

    let discovery = Discovery::new(client.clone()).run_aggregated().await.unwrap();
    let (resource, found) =
        discovery.resolve_gvk(&GroupVersionKind::gvk("rs.example.com", "v1", "Foo")).unwrap();
    assert_eq!((resource.plural.as_str(), found.subresources.len()), ("foos", 2));

    let uid = foos.get("one").await.unwrap().meta().uid.clone().unwrap();
    foos.delete("one", &Default::default()).await.unwrap();
    await_condition(foos, "one", conditions::is_deleted(&uid)).await.unwrap();
    await_condition(maps, "one", |map: Option<&ConfigMap>| map.is_none()).await.unwrap();
    running.abort();
    reflecting.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_of_kube_rs_works_over_memory() {
    let cluster = Cluster::start(Config::default()).await.unwrap();
    an_operator_does_its_work(cluster.kube_client()).await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn and_over_tls() {
    let listen = Listen::loopback();
    let cluster = Cluster::start(Config::new().listen(listen)).await.unwrap();
    let access = cluster.access().unwrap();
    let identity =
        access.identity.map(|identity| [identity.certificate_pem, identity.key_pem].map(String::into_bytes));
    let authority = access.authority_pem.unwrap();
    let target = Target::new(&access.server, authority.as_bytes(), identity);
    let sender = target.http2_sender::<kube::client::Body>().await.unwrap();
    let service = tower::service_fn(move |mut request: http::Request<kube::client::Body>| {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
        *request.uri_mut() = format!("{}{path}", access.server).parse().expect("both are parts of one");
        let mut sender = sender.clone();
        async move { sender.send_request(request).await }
    });
    an_operator_does_its_work(Client::new(service, "default")).await;
    cluster.stop().await;
}
