//! kube-rs over memory: a derived kind, a watcher and a controller.

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kubarium::{Cluster, Config};
use kube::api::{Api, PostParams};
use kube::core::Resource;
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{WatchStreamExt, watcher};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What `derive(CustomResource)` would make, written out: the derive needs a crate that nothing else does.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Foo {
    metadata: kube::core::ObjectMeta,
    spec: FooSpec,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct FooSpec {
    size: i64,
}

impl Resource for Foo {
    type DynamicType = ();
    type Scope = kube::core::NamespaceResourceScope;

    fn kind(_: &()) -> std::borrow::Cow<'_, str> {
        "Foo".into()
    }

    fn group(_: &()) -> std::borrow::Cow<'_, str> {
        "rs.example.com".into()
    }

    fn version(_: &()) -> std::borrow::Cow<'_, str> {
        "v1".into()
    }

    fn plural(_: &()) -> std::borrow::Cow<'_, str> {
        "foos".into()
    }

    fn meta(&self) -> &kube::core::ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut kube::core::ObjectMeta {
        &mut self.metadata
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kube_rs_installs_a_kind_and_watches_it() {
    let cluster = Cluster::start(Config::default()).await.unwrap();
    let to_ours = |request: http::Request<kube::client::Body>| request.map(axum::body::Body::new);
    let service = tower::util::MapRequest::new(cluster.service(), to_ours);
    let client = kube::Client::new(service, "default");
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let definition = super::definition("rs.example.com", &json!({"spec": {"versions": [version]}}));
    let definition: CustomResourceDefinition = serde_json::from_value(definition).unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    let served = conditions::is_crd_established();
    await_condition(definitions, "foos.rs.example.com", served).await.unwrap();

    let foos: Api<Foo> = Api::default_namespaced(client);
    let mut seen = watcher(foos.clone(), watcher::Config::default()).applied_objects().boxed();
    let metadata = kube::core::ObjectMeta { name: Some("one".into()), ..Default::default() };
    let mut foo = json!(Foo { metadata, spec: FooSpec { size: 1 } });
    (foo["apiVersion"], foo["kind"]) = (json!("rs.example.com/v1"), json!("Foo"));
    let made = kube::core::DynamicObject::deserialize(&foo).unwrap();
    let resource = kube::core::ApiResource::erase::<Foo>(&());
    let untyped: Api<kube::core::DynamicObject> =
        Api::default_namespaced_with(foos.clone().into_client(), &resource);
    untyped.create(&PostParams::default(), &made).await.unwrap();
    let found = seen.try_next().await.unwrap().expect("a watch has no end");
    assert_eq!((found.metadata.name.as_deref(), found.spec.size), (Some("one"), 1));
    cluster.stop().await;
}
