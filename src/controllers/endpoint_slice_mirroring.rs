//! EndpointSlices of Endpoints that somebody else writes (`pkg/controller/endpointslicemirroring`).
//!
//! In: services without a selector, and their Endpoints. Out: slices that the Endpoints own, so that they go
//! with them. Endpoints of services with a selector are the endpoint slice controller's.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use super::controller_ref::controller_reference;
use super::endpoint_slice::counts::SliceSync;
use super::endpoint_slice::desired::EndpointGroup;
use super::endpoint_slice::pack::{self, Packed};
use super::endpoint_slice::tracker::SliceTracker;
use super::endpoint_slice_mirroring_counts::MirrorCounts;
use super::pod_control::is_namespace_terminating;
use apimachinery::object::{Object, object_key, split_key};
use apimachinery::options::DeleteOptions;
use apimachinery::status::Status;
use apis::core::endpoints::ENDPOINTS;
use apis::core::service::SERVICES;
use apis::discovery::endpoint_slice::ENDPOINT_SLICES;
use apis::tree::{self, items, text};
use apis::views::endpoints::{Endpoint, EndpointConditions, EndpointPort, Endpoints, TargetRef};
use apis::views::service::Service;
use client_go::component::ComponentContext;
use client_go::lister::Lister;

const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const CONTROLLER: &str = "endpointslicemirroring-controller.k8s.io";
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
/// Leader election of old kept its record in Endpoints.
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
/// What the mirror does not copy.
const NOT_COPIED: &[&str] =
    &["kubectl.kubernetes.io/last-applied-configuration", "endpoints.kubernetes.io/over-capacity"];
/// Finds the mirrors of Endpoints by their key.
const INDEX: &str = "mirrored";
/// Addresses of one subset that are mirrored, and endpoints of one slice (upstream's
/// `--mirroring-max-endpoints-per-subset`).
const MAX_ENDPOINTS_PER_SUBSET: usize = 1000;

/// The controller of mirrored EndpointSlices.
pub(crate) struct EndpointSliceMirroringController {
    services: Lister,
    endpoints: Lister,
    slices: Lister,
    /// By Endpoints.
    written: SliceTracker,
    counts: Arc<MirrorCounts>,
}

impl EndpointSliceMirroringController {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> EndpointSliceMirroringController {
        let slices = ctx.informers.informer(&ENDPOINT_SLICES);
        slices.add_index(INDEX, |slice| mirrored_key(slice).into_iter().collect());
        let [services, endpoints] = [&SERVICES, &ENDPOINTS].map(|kind| ctx.informers.informer(kind).lister());
        let (slices, written) = (slices.lister(), SliceTracker::default());
        let counts = MirrorCounts::new(slices.clone(), mirrored_key, MAX_ENDPOINTS_PER_SUBSET);
        let counts = Arc::new(counts);
        ctx.metrics.add("endpoint-slice-mirroring", counts.clone());
        EndpointSliceMirroringController { services, endpoints, slices, written, counts }
    }

    async fn sync(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let (namespace, name) = split_key(key);
        let slices = self.slices.by_index(INDEX, key);
        let Some(endpoints) = self.mirrored(namespace, name) else {
            self.delete(ctx, key, slices).await?;
            self.written.forget(key);
            return Ok(Action::Done);
        };
        if self.written.is_stale(&self.slices, key) {
            return Err(Status::internal("EndpointSlice informer cache is out of date"));
        }
        let (groups, skipped) = groups(&endpoints);
        for (reason, message) in skipped.events() {
            ctx.event(&ENDPOINTS, &endpoints, "Warning", reason, message);
        }
        let slices = slices.into_iter().filter(|slice| !slice.is_deleting()).collect();
        let plan = pack::plan(slices, groups, &labels(&endpoints), MAX_ENDPOINTS_PER_SUBSET);
        let sync = SliceSync::of(&plan);
        self.carry_out(ctx, &endpoints, plan).await?;
        self.counts.synced(sync, skipped.all);
        Ok(Action::Done)
    }

    /// The Endpoints of that key, if they are to be mirrored.
    fn mirrored(&self, namespace: &str, name: &str) -> Option<Arc<Object>> {
        let endpoints = self.endpoints.get(namespace, name).filter(|endpoints| !endpoints.is_deleting())?;
        let service = self.services.get(namespace, name)?;
        let is_ours = service.view::<Service>().spec.selector.is_empty() && should_mirror(&endpoints);
        is_ours.then_some(endpoints)
    }

    async fn carry_out(
        &self,
        ctx: &Reconcile,
        endpoints: &Object,
        plan: pack::SlicePlan,
    ) -> Result<(), Status> {
        let (namespace, key) = (&endpoints.metadata.namespace, endpoints.key());
        for packed in plan.write {
            let written = match &packed.slice {
                None => ctx.client.create(&ENDPOINT_SLICES, namespace, new_slice(endpoints, &packed)).await,
                Some(slice) => {
                    let mut tree = slice.to_value();
                    put(&mut tree, endpoints, &packed);
                    ctx.client.update(&ENDPOINT_SLICES, namespace, &slice.metadata.name, tree).await
                }
            };
            match written {
                Err(error) if is_namespace_terminating(&error) => return Ok(()),
                written => self.written.note_written(&key, written?),
            };
            self.counts.changed(if packed.slice.is_none() { "create" } else { "update" });
        }
        self.delete(ctx, &key, plan.delete).await
    }

    async fn delete(&self, ctx: &Reconcile, key: &Key, slices: Vec<Arc<Object>>) -> Result<(), Status> {
        for slice in slices {
            let (namespace, name) = (&slice.metadata.namespace, &slice.metadata.name);
            match ctx.client.delete(&ENDPOINT_SLICES, namespace, name, &DeleteOptions::default()).await {
                Err(error) if !error.is_not_found() => return Err(error),
                deleted => {
                    self.written.note_deleted(key, name);
                    if deleted.is_ok() {
                        self.counts.changed("delete");
                    }
                }
            }
        }
        Ok(())
    }
}

impl Controller for EndpointSliceMirroringController {
    const NAME: &'static str = "endpointslicemirroring";
    const EVENT_SOURCE: &'static str = "endpoint-slice-mirroring-controller";
    const SERVICE_ACCOUNT: &'static str = "endpointslicemirroring-controller";

    fn watches(&self) -> Watches {
        // Most Endpoints are the endpoints controller's, and are of no interest here.
        let services = self.services.clone();
        let endpoints = move |change: &Change<'_>, enqueue: &Enqueue| {
            let (namespace, name) = (&change.object().metadata.namespace, &change.object().metadata.name);
            let service = services.get(namespace, name);
            if service.is_none_or(|service| service.view::<Service>().spec.selector.is_empty()) {
                enqueue.now(change.object().key());
            }
        };
        let written = self.written.clone();
        let slices = move |change: &Change<'_>, enqueue: &Enqueue| {
            if let (Change::Deleted(slice), Some(key)) = (change, mirrored_key(change.object())) {
                written.note_deleted(&key, &slice.metadata.name);
            }
            if !matches!(change, Change::Added(_)) {
                mirrored_key(change.object()).into_iter().for_each(|key| enqueue.batched(key));
            }
        };
        // A service that gains or loses its selector changes hands.
        let services = |change: &Change<'_>, enqueue: &Enqueue| {
            let has_none = |service: &Object| service.view::<Service>().spec.selector.is_empty();
            if has_none(change.object()) || change.old().is_some_and(|old| has_none(old)) {
                enqueue.now(change.object().key());
            }
        };
        Watches::none().maps(&ENDPOINTS, endpoints).maps(&SERVICES, services).maps(&ENDPOINT_SLICES, slices)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let started = ctx.clock.elapsed();
        let outcome = self.sync(ctx, key).await;
        self.counts.took(ctx.clock.elapsed().saturating_sub(started));
        outcome
    }
}

fn should_mirror(endpoints: &Object) -> bool {
    let is_skipped = endpoints.metadata.labels.get(SKIP).is_some_and(|value| value == "true");
    let annotations = &endpoints.view::<Endpoints>().metadata.annotations;
    !is_skipped && !annotations.contains_key(LEADER)
}

fn mirrored_key(slice: &Object) -> Option<Key> {
    let labels = &slice.metadata.labels;
    let is_ours = labels.get(MANAGED_BY).is_some_and(|manager| manager == CONTROLLER);
    let name = labels.get(SERVICE_NAME).filter(|_| is_ours)?;
    Some(object_key(&slice.metadata.namespace, name))
}

fn labels(endpoints: &Object) -> BTreeMap<String, String> {
    let mut labels = endpoints.metadata.labels.clone();
    labels.insert(SERVICE_NAME.into(), endpoints.metadata.name.clone());
    labels.insert(MANAGED_BY.into(), CONTROLLER.into());
    labels
}

/// The addresses that are not mirrored.
#[derive(Default)]
struct SkippedAddresses {
    /// Of any reason.
    all: usize,
    invalid: usize,
}

impl SkippedAddresses {
    /// What the Endpoints are told.
    fn events(&self) -> Vec<(&'static str, String)> {
        let mut events = Vec::new();
        if self.invalid > 0 {
            let message =
                format!("Skipped {} invalid IP addresses when mirroring to EndpointSlices", self.invalid);
            events.push(("InvalidIPAddress", message));
        }
        if self.all > self.invalid {
            let message = format!(
                "A max of {MAX_ENDPOINTS_PER_SUBSET} addresses can be mirrored to EndpointSlices per Endpoints \
                 subset. {} addresses were skipped",
                self.all
            );
            events.push(("TooManyAddressesToMirror", message));
        }
        events
    }
}

/// The addresses of every subset, by family and ports.
fn groups(endpoints: &Object) -> (BTreeMap<EndpointGroup, Vec<Endpoint>>, SkippedAddresses) {
    let mut skipped = SkippedAddresses::default();
    let view = endpoints.view::<Endpoints>();
    let mut groups: BTreeMap<EndpointGroup, Vec<Endpoint>> = BTreeMap::new();
    for subset in view.subsets.as_array().into_iter().flatten() {
        let ports = ports(subset);
        let ready = items(subset, "addresses").iter().map(|address| (address, true));
        let not_ready = items(subset, "notReadyAddresses").iter().map(|address| (address, false));
        let all: Vec<(&Value, bool)> = ready.chain(not_ready).collect();
        let is_address = |(address, _): &&(&Value, bool)| text(address, "ip").parse::<IpAddr>().is_ok();
        let valid: Vec<&(&Value, bool)> = all.iter().filter(is_address).collect();
        skipped.invalid += all.len() - valid.len();
        skipped.all += all.len() - valid.len().min(MAX_ENDPOINTS_PER_SUBSET);
        for &&(address, is_ready) in valid.iter().take(MAX_ENDPOINTS_PER_SUBSET) {
            let address_type = if text(address, "ip").contains(':') { "IPv6" } else { "IPv4" };
            let group = EndpointGroup { address_type, ports: ports.clone() };
            groups.entry(group).or_default().push(endpoint(address, is_ready));
        }
    }
    (groups, skipped)
}

fn ports(subset: &Value) -> Vec<EndpointPort> {
    let port = |port: &Value| EndpointPort {
        name: text(port, "name").into(),
        port: tree::at(port, "port").as_i64(),
        protocol: text(port, "protocol").into(),
        app_protocol: tree::at(port, "appProtocol").as_str().map(str::to_owned),
    };
    let mut ports: Vec<EndpointPort> = items(subset, "ports").iter().map(port).collect();
    ports.sort();
    ports
}

fn endpoint(address: &Value, is_ready: bool) -> Endpoint {
    let given = |field: &str| tree::at(address, field).as_str().map(str::to_owned);
    let target = tree::at(address, "targetRef");
    Endpoint {
        addresses: vec![text(address, "ip").into()],
        conditions: EndpointConditions { ready: Some(is_ready), serving: None, terminating: None },
        hostname: given("hostname"),
        node_name: given("nodeName"),
        target_ref: TargetRef::deserialize(target).ok(),
        zone: None,
        hints: None,
    }
}

fn new_slice(endpoints: &Object, packed: &Packed) -> Value {
    let mut tree = json!({"metadata": {
        "generateName": format!("{}-", endpoints.metadata.name),
        "namespace": endpoints.metadata.namespace,
        "ownerReferences": [controller_reference(endpoints, &ENDPOINTS)],
    }});
    tree["addressType"] = packed.group.address_type.into();
    put(&mut tree, endpoints, packed);
    tree
}

fn put(tree: &mut Value, endpoints: &Object, packed: &Packed) {
    let mut annotations = endpoints.view::<Endpoints>().metadata.annotations.clone();
    annotations.retain(|name, _| !NOT_COPIED.contains(&name.as_str()));
    tree["metadata"]["labels"] = json!(labels(endpoints));
    tree["metadata"]["annotations"] = json!(annotations);
    tree["endpoints"] = json!(packed.endpoints);
    tree["ports"] = json!(packed.group.ports);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_mirrored_is_told() {
        let address = |at: usize| json!({"ip": format!("10.0.{}.{}", at / 256, at % 256)});
        let mut addresses: Vec<Value> = (0..MAX_ENDPOINTS_PER_SUBSET + 2).map(address).collect();
        addresses[0] = json!({"ip": "nowhere"});
        let mirror = |addresses: &[Value]| {
            let tree = json!({"metadata": {"name": "a"}, "subsets": [{"addresses": addresses}]});
            let (groups, skipped) = groups(&Object::from_value(&tree, vec![]).unwrap());
            (groups.into_values().map(|endpoints| endpoints.len()).sum::<usize>(), skipped.events())
        };
        let (mirrored, told) = mirror(&addresses);
        assert_eq!(mirrored, MAX_ENDPOINTS_PER_SUBSET);
        let invalid = "Skipped 1 invalid IP addresses when mirroring to EndpointSlices";
        let many = "A max of 1000 addresses can be mirrored to EndpointSlices per Endpoints subset. 2 addresses were \
                    skipped";
        assert_eq!(
            told,
            [("InvalidIPAddress", invalid.to_owned()), ("TooManyAddressesToMirror", many.to_owned())]
        );
        assert_eq!(mirror(&addresses[..2]).1, [("InvalidIPAddress", invalid.to_owned())]);
        assert_eq!(mirror(&addresses[1..3]), (2, vec![]));
    }

    #[test]
    fn what_an_address_belongs_to_is_mirrored_as_it_is() {
        let mirrored = |target: &Value| {
            let address = json!({"ip": "10.0.0.1", "targetRef": target});
            json!(endpoint(&address, true))["targetRef"].take()
        };
        let of_a_pod = json!({"kind": "Pod", "name": "p"});
        assert_eq!(mirrored(&of_a_pod), of_a_pod);
        let whole = json!({"apiVersion": "v1", "kind": "Pod", "namespace": "n", "name": "p", "uid": "u",
            "resourceVersion": "7", "fieldPath": "spec"});
        assert_eq!(mirrored(&whole), whole);
        assert_eq!(mirrored(&Value::Null), Value::Null);
    }
}
