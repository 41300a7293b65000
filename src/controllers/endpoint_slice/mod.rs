//! EndpointSlices: the endpoints of each service in slices of at most a hundred
//! (`pkg/controller/endpointslice`).
//!
//! In: services, their pods, and nodes for their zones. Out: slices that the service owns, so that they go
//! with it. It must not know what a proxy makes of them. Slices of Endpoints that somebody else writes are
//! not made here.

pub(super) mod counts;
pub(super) mod desired;
mod owned;
pub(super) mod pack;
mod topology;
pub(super) mod tracker;
mod zone_shares;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use self::counts::{SliceCounts, SliceSync};
use self::desired::EndpointGroup;
use self::owned::{CONTROLLER, MANAGED_BY, SERVICE_NAME, service_key};
use self::pack::{Packed, SlicePlan};
use self::topology::{HintEvent, TopologyCache};
use self::tracker::SliceTracker;
use self::zone_shares::CpuRatios;
use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use super::controller_ref::controller_reference;
use super::pod_control::is_namespace_terminating;
use super::service_pods::{self, LAST_CHANGE_TRIGGER_TIME, TriggerTimes};
use apimachinery::labels::Selector;
use apimachinery::object::{Object, split_key};
use apimachinery::options::DeleteOptions;
use apimachinery::status::Status;
use apimachinery::time::{Time, rfc3339};
use apis::core::node::NODES;
use apis::core::pod::PODS;
use apis::core::service::SERVICES;
use apis::discovery::endpoint_slice::ENDPOINT_SLICES;
use apis::views::service::Service;
use client_go::component::ComponentContext;
use client_go::lister::Lister;

/// Finds the slices of a service by its key.
const SERVICE_INDEX: &str = "service";

/// The controller of EndpointSlices.
pub(crate) struct EndpointSliceController {
    services: Lister,
    pods: Lister,
    nodes: Lister,
    slices: Lister,
    trigger_times: TriggerTimes,
    /// By service.
    written: SliceTracker,
    topology: TopologyCache,
    counts: Arc<SliceCounts>,
}

impl EndpointSliceController {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> EndpointSliceController {
        let slices = ctx.informers.informer(&ENDPOINT_SLICES);
        slices.add_index(SERVICE_INDEX, |slice| service_key(slice).into_iter().collect());
        let [services, pods, nodes] =
            [&SERVICES, &PODS, &NODES].map(|kind| ctx.informers.informer(kind).lister());
        let counts = Arc::new(SliceCounts::new(services.clone(), slices.lister()));
        ctx.metrics.add("endpoint-slice", counts.clone());
        EndpointSliceController {
            services,
            pods,
            nodes,
            slices: slices.lister(),
            trigger_times: TriggerTimes::default(),
            written: SliceTracker::default(),
            topology: TopologyCache::default(),
            counts,
        }
    }

    async fn carry_out(
        &self,
        ctx: &Reconcile,
        key: &Key,
        service: &Owner<'_>,
        plan: SlicePlan,
    ) -> Result<(), Status> {
        let namespace = &service.object.metadata.namespace;
        let sync = SliceSync::of(&plan);
        for Packed { slice, group, endpoints } in plan.write {
            let what = if slice.is_some() { "update" } else { "create" };
            let written = match &slice {
                None => {
                    self.counts.changed("create");
                    let tree = service.new_slice(&group, &endpoints);
                    ctx.client.create(&ENDPOINT_SLICES, namespace, tree).await
                }
                Some(slice) => {
                    self.counts.changed("update");
                    let mut tree = slice.to_value();
                    service.put(&mut tree, &group, &endpoints);
                    ctx.client.update(&ENDPOINT_SLICES, namespace, &slice.metadata.name, tree).await
                }
            };
            match written {
                Ok(slice) => self.written.note_written(key, slice),
                // The slices would go with the namespace.
                Err(error) if is_namespace_terminating(&error) => return Ok(()),
                Err(error) => return Err(failed(what, slice.as_deref(), service.object, error)),
            }
        }
        for slice in plan.delete {
            self.counts.changed("delete");
            let (name, options) = (&slice.metadata.name, DeleteOptions::default());
            match ctx.client.delete(&ENDPOINT_SLICES, namespace, name, &options).await {
                Err(error) if !error.is_not_found() => {
                    return Err(failed("delete", Some(&slice), service.object, error));
                }
                _ => self.written.note_deleted(key, name),
            }
        }
        self.counts.synced(service.object, sync);
        Ok(())
    }
}

impl Controller for EndpointSliceController {
    const NAME: &'static str = "endpointslice";
    const EVENT_SOURCE: &'static str = "endpoint-slice-controller";
    const SERVICE_ACCOUNT: &'static str = "endpointslice-controller";

    fn watches(&self) -> Watches {
        let (services, written) = (self.services.clone(), self.written.clone());
        // Our own writes come back as additions and updates; what others undo has to be done again.
        let slices = move |change: &Change<'_>, enqueue: &Enqueue| {
            if let (Change::Deleted(slice), Some(key)) = (change, service_key(change.object())) {
                written.note_deleted(&key, &slice.metadata.name);
            }
            if !matches!(change, Change::Added(_)) {
                service_key(change.object()).into_iter().for_each(|key| enqueue.batched(key));
            }
        };
        let (topology, all) = (self.topology.clone(), self.nodes.clone());
        let nodes = move |change: &Change<'_>, enqueue: &Enqueue| {
            // Few services ask for hints, and nodes seldom change what these depend on.
            if topology.is_empty() {
                return;
            }
            let (before, now) = match change {
                Change::Added(node) => (None, zone_shares::cpu_of(node)),
                Change::Updated { old, new } => (zone_shares::cpu_of(old), zone_shares::cpu_of(new)),
                Change::Deleted(node) => (zone_shares::cpu_of(node), None),
            };
            if before == now {
                return;
            }
            topology.overloaded(&CpuRatios::of(&all.all())).into_iter().for_each(|key| enqueue.now(key));
        };
        Watches::of(&SERVICES)
            .maps(&PODS, move |change, enqueue| service_pods::enqueue_services(&services, change, enqueue))
            .maps(&ENDPOINT_SLICES, slices)
            .maps(&NODES, nodes)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let (namespace, name) = split_key(key);
        let Some(object) = self.services.get(namespace, name) else {
            self.trigger_times.forget(key);
            self.written.forget(key);
            self.topology.forget(key);
            return Ok(Action::Done);
        };
        let service = object.view::<Service>();
        if !service_pods::has_managed_endpoints(&service) || object.is_deleting() {
            return Ok(Action::Done);
        }
        if self.written.is_stale(&self.slices, key) {
            self.counts.ended("stale");
            return Err(Status::internal("EndpointSlice informer cache is out of date"));
        }
        let pods = self.pods.list(namespace, &Selector::from_labels(&service.spec.selector));
        let trigger_time = self.trigger_times.changed(key, &object, &pods);
        let mut groups = desired::groups(&object, &service, &pods, &self.nodes);
        let owner = Owner { object: &object, service: &service, trigger_time };
        let mut slices = self.slices.by_index(SERVICE_INDEX, key);
        slices.retain(|slice| !slice.is_deleting());
        let labels = owner.labels();
        let is_by_zone = desired::asks_for_zones(&service.metadata.annotations);
        if is_by_zone {
            topology::keep_hints(&mut groups, &slices);
        }
        let types = groups.keys().map(|group| group.address_type).collect();
        let mut plan = pack::plan(slices.clone(), groups, &labels, pack::MAX_ENDPOINTS_PER_SLICE);
        let events = if is_by_zone {
            let ratios = CpuRatios::of(&self.nodes.all());
            self.topology.add_hints(key, types, &ratios, &mut plan, &slices)
        } else {
            self.topology.forget(key).into_iter().collect()
        };
        let done = self.carry_out(ctx, key, &owner, plan).await;
        tell(ctx, &object, events, done.as_ref().err());
        self.counts.ended(if done.is_ok() { "success" } else { "error" });
        done.map(|()| Action::Done)
    }
}

/// Tells a service of its hints, and of what went wrong.
fn tell(ctx: &Reconcile, service: &Object, hints: Vec<HintEvent>, error: Option<&Status>) {
    for HintEvent { event_type, reason, message } in hints {
        ctx.event(&SERVICES, service, event_type, reason, message);
    }
    if let Some(error) = error {
        let key = service.key();
        let message = format!("Error updating Endpoint Slices for Service {key}: {}", error.message);
        ctx.event(&SERVICES, service, "Warning", "FailedToUpdateEndpointSlices", message);
    }
}

/// What could not be done to a slice of a service, in upstream's words.
fn failed(what: &str, slice: Option<&Object>, service: &Object, mut error: Status) -> Status {
    let name = slice.map(|slice| format!("{} ", slice.metadata.name)).unwrap_or_default();
    let key = service.key();
    error.message = format!("failed to {what} {name}EndpointSlice for Service {key}: {}", error.message);
    error
}

/// The service, as the owner of slices.
struct Owner<'a> {
    object: &'a Object,
    service: &'a Service,
    trigger_time: Option<Time>,
}

impl Owner<'_> {
    fn labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.object.metadata.labels.clone();
        service_pods::put_headless_label(self.service, &mut labels);
        labels.insert(SERVICE_NAME.into(), self.object.metadata.name.clone());
        labels.insert(MANAGED_BY.into(), CONTROLLER.into());
        labels
    }

    fn new_slice(&self, group: &EndpointGroup, endpoints: &[apis::views::endpoints::Endpoint]) -> Value {
        let mut tree = json!({"metadata": {
            "generateName": format!("{}-", self.object.metadata.name),
            "namespace": self.object.metadata.namespace,
            "ownerReferences": [controller_reference(self.object, &SERVICES)],
        }});
        tree["addressType"] = group.address_type.into();
        self.put(&mut tree, group, endpoints);
        tree
    }

    fn put(&self, tree: &mut Value, group: &EndpointGroup, endpoints: &[apis::views::endpoints::Endpoint]) {
        tree["metadata"]["labels"] = json!(self.labels());
        if let Some(time) = self.trigger_time {
            tree["metadata"]["annotations"][LAST_CHANGE_TRIGGER_TIME] = rfc3339(time).into();
        }
        tree["endpoints"] = json!(endpoints);
        tree["ports"] = json!(group.ports);
    }
}
