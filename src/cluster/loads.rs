//! Requests that Services are said to get (`kubarium.dev/requests`), and among which endpoints they are
//! divided: for pods whose use follows them. Nothing is watched before there is such a pod.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::inside::{Inside, MASTERS};
use apimachinery::object::{Object, object_key};
use apimachinery::user::UserInfo;
use apis::core::service::SERVICES;
use apis::discovery::endpoint_slice::ENDPOINT_SLICES;
use apis::tree::annotation;
use apis::views::endpoints::EndpointSlice;
use client_go::ComponentContext;
use client_go::shared_informer::{Deleted, ResourceEventHandler};
use clock::Clock;
use sync::Mutex;
use usage::{Against, Curve, LoadBook};

/// Who watches.
const NAME: &str = "kubarium:loads";
/// How many requests a second a Service gets, as a curve.
const REQUESTS: &str = "kubarium.dev/requests";
/// The label of a slice that names its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// [`follow`], which settles with everything else.
pub(super) fn following(inside: Arc<Inside>) -> impl Future<Output = ()> {
    inside.clock.named(NAME).tracked(follow(inside))
}

/// Keeps the book for as long as it is polled; does nothing before somebody wants it.
async fn follow(inside: Arc<Inside>) {
    let loads = inside.running.loads.clone();
    loads.wanted().await;
    let client = inside.client().acting_as(UserInfo::authenticated(NAME, &[MASTERS]));
    let (clock, entropy) = (inside.clock.clone(), inside.config.entropy.clone());
    let context = ComponentContext::new(NAME, (NAME, ""), client, clock.clone(), entropy);
    let _tasks = context.tasks.stop_on_drop();
    let follower = LoadFollower { loads, clock, context: context.clone(), endpoints: Arc::default() };
    context.informers.informer(&SERVICES).add_handler(ServicesHeard(follower.clone()));
    context.informers.informer(&ENDPOINT_SLICES).add_handler(SlicesHeard(follower));
    context.informers.start(&context.tasks);
    std::future::pending::<()>().await;
}

/// The addresses that are ready, by slice.
type BySlice = BTreeMap<String, BTreeSet<IpAddr>>;

#[derive(Clone)]
struct LoadFollower {
    loads: LoadBook,
    clock: Clock,
    context: ComponentContext,
    /// By Service. Bound: the slices that there are.
    endpoints: Arc<Mutex<BTreeMap<String, BySlice>>>,
}

impl LoadFollower {
    fn now(&self) -> f64 {
        self.clock.now().timestamp_millis() as f64 / 1000.0
    }

    fn put_service(&self, service: &Object) {
        let tree = service.to_value();
        let key = service.key();
        let text = annotation(&tree, REQUESTS);
        if text.is_empty() {
            return self.loads.remove(&key);
        }
        match Curve::parse(text) {
            Ok(curve) => {
                let requests = move |seconds: f64| curve.value(seconds, &Against::default());
                self.loads.put(&key, text, Box::new(requests), self.now());
                self.divide(&key);
            }
            Err(why) => {
                self.loads.remove(&key);
                let about = (&**SERVICES, service);
                self.context.recorder.event(
                    about,
                    "Warning",
                    "InvalidRequests",
                    format!("{REQUESTS}: {why}"),
                );
            }
        }
    }

    fn put_slice(&self, slice: &Object, is_there: bool) {
        let Some(name) = slice.metadata.labels.get(SERVICE_NAME) else { return };
        let service = object_key(&slice.metadata.namespace, name).to_string();
        let mut endpoints = self.endpoints.lock();
        let slices = endpoints.entry(service.clone()).or_default();
        if is_there {
            slices.insert(slice.metadata.name.to_string(), ready(slice));
        } else {
            slices.remove(&*slice.metadata.name);
        }
        if slices.is_empty() {
            endpoints.remove(&service);
        }
        drop(endpoints);
        self.divide(&service);
    }

    fn divide(&self, service: &str) {
        let endpoints = self.endpoints.lock();
        let all = endpoints.get(service).into_iter().flat_map(BTreeMap::values).flatten().copied().collect();
        self.loads.divide(service, &all, self.now());
    }
}

fn ready(slice: &Object) -> BTreeSet<IpAddr> {
    let view = slice.view::<EndpointSlice>();
    let ready = view.endpoints.iter().filter(|endpoint| endpoint.conditions.ready != Some(false));
    ready.flat_map(|endpoint| &endpoint.addresses).filter_map(|address| address.parse().ok()).collect()
}

struct ServicesHeard(LoadFollower);

impl ResourceEventHandler for ServicesHeard {
    fn on_add(&self, new: &Arc<Object>, _is_initial_list: bool) {
        self.0.put_service(new);
    }

    fn on_update(&self, _: &Arc<Object>, new: &Arc<Object>) {
        self.0.put_service(new);
    }

    fn on_delete(&self, last: &Deleted) {
        self.0.loads.remove(&last.last().key());
    }
}

struct SlicesHeard(LoadFollower);

impl ResourceEventHandler for SlicesHeard {
    fn on_add(&self, new: &Arc<Object>, _is_initial_list: bool) {
        self.0.put_slice(new, true);
    }

    /// It may be another Service's now.
    fn on_update(&self, old: &Arc<Object>, new: &Arc<Object>) {
        if old.metadata.labels.get(SERVICE_NAME) != new.metadata.labels.get(SERVICE_NAME) {
            self.0.put_slice(old, false);
        }
        self.0.put_slice(new, true);
    }

    fn on_delete(&self, last: &Deleted) {
        self.0.put_slice(last.last(), false);
    }
}
