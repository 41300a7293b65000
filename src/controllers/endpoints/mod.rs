//! Endpoints: the addresses behind each service that has a selector (`pkg/controller/endpoint`).
//!
//! In: services and pods. Out: one Endpoints per service. It must not know what a proxy makes of them.

mod subsets;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use super::pod_control::is_namespace_terminating;
use super::service_pods::{self, LAST_CHANGE_TRIGGER_TIME, TriggerTimes};
use apimachinery::labels::Selector;
use apimachinery::object::{Object, split_key};
use apimachinery::options::DeleteOptions;
use apimachinery::status::Status;
use apimachinery::time::rfc3339;
use apis::core::endpoints::ENDPOINTS;
use apis::core::pod::PODS;
use apis::core::service::SERVICES;
use apis::views::endpoints::Endpoints;
use apis::views::service::Service;
use client_go::component::ComponentContext;
use client_go::lister::Lister;

const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";

/// The controller of Endpoints.
pub(crate) struct EndpointsController {
    services: Lister,
    pods: Lister,
    endpoints: Lister,
    trigger_times: TriggerTimes,
}

impl EndpointsController {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> EndpointsController {
        let [services, pods, endpoints] =
            [&SERVICES, &PODS, &ENDPOINTS].map(|kind| ctx.informers.informer(kind).lister());
        EndpointsController { services, pods, endpoints, trigger_times: TriggerTimes::default() }
    }

    async fn service_gone(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        self.trigger_times.forget(key);
        let (namespace, name) = split_key(key);
        // Endpoints without a service that were never ours have no such label; upstream deletes all the same.
        match ctx.client.delete(&ENDPOINTS, namespace, name, &DeleteOptions::default()).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(Action::Done),
        }
    }

    async fn write(&self, ctx: &Reconcile, service: &Object, new: Desired) -> Result<(), Status> {
        let (namespace, name) = (&service.metadata.namespace, &service.metadata.name);
        let Some(current) = self.endpoints.get(namespace, name) else {
            let mut tree = json!({"metadata": {"name": name}});
            new.put(&mut tree);
            let created = ctx.client.create(&ENDPOINTS, namespace, tree).await;
            if let Err(error) = &created {
                let message = format!("Failed to create endpoint for service {namespace}/{name}: {error}");
                ctx.event(&SERVICES, service, "Warning", "FailedToCreateEndpoint", message);
            }
            // One that is there already is not in the cache yet: it is looked at again.
            return match created {
                Err(error) if is_namespace_terminating(&error) => Ok(()),
                created => created.map(drop),
            };
        };
        let view = current.view::<Endpoints>();
        let is_over = view.metadata.annotations.contains_key(OVER_CAPACITY);
        let current_subsets = if view.subsets.is_null() { json!([]) } else { view.subsets.clone() };
        if current_subsets == new.subsets
            && current.metadata.labels == new.labels
            && is_over == new.is_truncated
        {
            return Ok(());
        }
        let mut tree = current.to_value();
        new.put(&mut tree);
        let updated = ctx.client.update(&ENDPOINTS, namespace, name, tree).await;
        if let Err(error) = &updated {
            let message = format!("Failed to update endpoint {namespace}/{name}: {error}");
            ctx.event(&ENDPOINTS, &current, "Warning", "FailedToUpdateEndpoint", message);
        }
        updated.map(drop)
    }
}

impl Controller for EndpointsController {
    const NAME: &'static str = "endpoint";
    const EVENT_SOURCE: &'static str = "endpoint-controller";
    const SERVICE_ACCOUNT: &'static str = "endpoint-controller";

    fn watches(&self) -> Watches {
        let services = self.services.clone();
        let endpoints = |change: &Change<'_>, enqueue: &Enqueue| {
            if matches!(change, Change::Deleted(_)) {
                enqueue.now(change.object().key());
            }
        };
        Watches::of(&SERVICES)
            .maps(&PODS, move |change, enqueue| service_pods::enqueue_services(&services, change, enqueue))
            .maps(&ENDPOINTS, endpoints)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let (namespace, name) = split_key(key);
        let Some(object) = self.services.get(namespace, name) else {
            return self.service_gone(ctx, key).await;
        };
        let service = object.view::<Service>();
        if !service_pods::has_managed_endpoints(&service) {
            return Ok(Action::Done);
        }
        let pods = self.pods.list(namespace, &Selector::from_labels(&service.spec.selector));
        let trigger_time = self.trigger_times.changed(key, &object, &pods);
        let (subsets, is_truncated) = subsets::of(&object, &service, &pods);
        let mut labels = object.metadata.labels.clone();
        service_pods::put_headless_label(&service, &mut labels);
        labels.insert(MANAGED_BY.into(), "endpoint-controller".into());
        let new = Desired { subsets, is_truncated, labels, trigger_time: trigger_time.map(rfc3339) };
        self.write(ctx, &object, new).await?;
        Ok(Action::Done)
    }
}

/// What the Endpoints should have.
struct Desired {
    subsets: Value,
    is_truncated: bool,
    labels: BTreeMap<String, String>,
    trigger_time: Option<String>,
}

impl Desired {
    fn put(self, tree: &mut Value) {
        if self.subsets.as_array().is_none_or(Vec::is_empty) {
            // As Go leaves out what is empty.
            tree.as_object_mut().map(|tree| tree.remove("subsets"));
        } else {
            tree["subsets"] = self.subsets;
        }
        tree["metadata"]["labels"] = json!(self.labels);
        let mut annotations = tree["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
        put_or_remove(&mut annotations, LAST_CHANGE_TRIGGER_TIME, self.trigger_time);
        put_or_remove(&mut annotations, OVER_CAPACITY, self.is_truncated.then(|| "truncated".to_owned()));
        tree["metadata"]["annotations"] = annotations.into();
    }
}

fn put_or_remove(annotations: &mut Map<String, Value>, key: &str, value: Option<String>) {
    match value {
        Some(value) => annotations.insert(key.into(), value.into()),
        None => annotations.remove(key),
    };
}
