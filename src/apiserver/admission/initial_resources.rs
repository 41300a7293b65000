//! InitialResources: containers that do not say what they need get what others of their image needed
//! (`plugin/pkg/admission/initialresources`, Kubernetes 1.2 to 1.8, an experiment).
//!
//! Upstream asked a database of measured usage. Nothing is measured here, where containers are simulated: one
//! is taken to have used what it requested, and each container that is in the store is one sample.

use chrono::TimeDelta;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::lister::AdmissionLister;
use super::{AdmissionPlugin, Attributes, Initializer, Operation};
use apimachinery::quantity::{Format, Quantity};
use apimachinery::status::Status;
use apimachinery::time::{Time, parse};
use apis::resources::amounts;
use apis::tree::{items, object_mut, text};
use clock::Clock;

const ANNOTATION: &str = "kubernetes.io/initial-resources";
/// With fewer samples the search goes wider.
const SAMPLES_THRESHOLD: usize = 30;
const WEEK: TimeDelta = TimeDelta::days(7);
const MONTH: TimeDelta = TimeDelta::days(30);

/// Estimates CPU and memory from the pods that are there.
pub(super) struct InitialResources {
    pods: AdmissionLister,
    clock: Clock,
    /// `--ir-percentile`
    percentile: usize,
    /// `--ir-namespace-only`
    namespace_only: bool,
}

/// One container that ran, or runs.
struct Sample {
    namespace: String,
    image: String,
    at: Time,
    requests: apis::resources::Amounts,
}

/// Where samples are looked for.
struct SampleSearch<'a> {
    namespace: Option<&'a str>,
    image: &'a str,
    /// Or any tag of the image.
    exact: bool,
    age: TimeDelta,
}

impl InitialResources {
    /// With its configuration: `percentile` (90) and `namespaceOnly`, which were flags.
    pub(super) fn new(with: &Initializer) -> InitialResources {
        let configuration = with.configuration("InitialResources");
        let percentile = configuration["percentile"].as_u64().unwrap_or(90).clamp(1, 100);
        InitialResources {
            pods: AdmissionLister::new(with, "", "v1", "pods"),
            clock: with.clock.clone(),
            percentile: percentile as usize,
            namespace_only: configuration["namespaceOnly"] == true,
        }
    }

    async fn samples(&self) -> Result<Vec<Sample>, Status> {
        let mut samples = Vec::new();
        for pod in self.pods.list("").await?.iter() {
            let tree = pod.to_value();
            let Some(at) = parse(text(&tree, "metadata.creationTimestamp")) else { continue };
            samples.extend(items(&tree, "spec.containers").iter().map(|container| Sample {
                namespace: pod.metadata.namespace.clone(),
                image: text(container, "image").into(),
                at,
                requests: amounts(container, "resources.requests"),
            }));
        }
        Ok(samples)
    }

    /// Wider and wider, until there are enough samples; the last search counts with what it has.
    fn estimate(&self, samples: &[Sample], resource: &str, image: &str, namespace: &str) -> Option<Quantity> {
        let own = Some(namespace);
        let base = image.split(':').next().unwrap_or_default();
        let mut searches = vec![
            SampleSearch { namespace: own, image, exact: true, age: WEEK },
            SampleSearch { namespace: own, image, exact: true, age: MONTH },
        ];
        if self.namespace_only {
            searches.push(SampleSearch { namespace: own, image: base, exact: false, age: MONTH });
        } else {
            searches.extend([
                SampleSearch { namespace: None, image, exact: true, age: WEEK },
                SampleSearch { namespace: None, image, exact: true, age: MONTH },
                SampleSearch { namespace: None, image: base, exact: false, age: MONTH },
            ]);
        }
        let mut found = Vec::new();
        for search in &searches {
            found = search.find(samples, resource, self.clock.now());
            if found.len() >= SAMPLES_THRESHOLD {
                break;
            }
        }
        found.sort();
        let rank = (found.len() * self.percentile).div_ceil(100);
        let amount = found.get(rank.checked_sub(1)?)?;
        Some(match resource {
            "cpu" => Quantity::new_milli(amount.milli_value(), Format::DecimalSi),
            _ => Quantity::new(amount.value(), Format::DecimalSi),
        })
    }

    fn fill_in(&self, samples: &[Sample], namespace: &str, pod: &mut Value) {
        let mut notes = Vec::new();
        for container in apis::tree::items_mut(pod, "spec.containers") {
            let image = text(container, "image").to_owned();
            let mut set = Vec::new();
            for resource in ["cpu", "memory"] {
                let has = |list: &str| amounts(container, list).contains_key(resource);
                if has("resources.requests") || has("resources.limits") {
                    continue;
                }
                if let Some(amount) = self.estimate(samples, resource, &image, namespace) {
                    let requests = object_mut(container, "resources.requests");
                    requests.insert(resource.into(), json!(amount.to_string()));
                    set.push(resource);
                }
            }
            if !set.is_empty() {
                notes.push(format!("{} request for container {}", set.join(", "), text(container, "name")));
            }
        }
        if !notes.is_empty() {
            let note = format!("Initial Resources plugin set: {}", notes.join("; "));
            object_mut(pod, "metadata.annotations").insert(ANNOTATION.into(), note.into());
        }
    }
}

impl SampleSearch<'_> {
    fn find(&self, samples: &[Sample], resource: &str, now: Time) -> Vec<Quantity> {
        let is_meant = |sample: &&Sample| {
            let image = sample.image.as_str();
            let image = if self.exact { image } else { image.split(':').next().unwrap_or_default() };
            self.namespace.is_none_or(|namespace| namespace == sample.namespace)
                && image == self.image
                && now - sample.at <= self.age
        };
        let meant = samples.iter().filter(is_meant);
        meant.filter_map(|sample| sample.requests.get(resource).cloned()).collect()
    }
}

impl AdmissionPlugin for InitialResources {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Create && attributes.writes("", "pods")
    }

    fn validates(&self) -> bool {
        false
    }

    fn admit<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a mut Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            if let Some(pod) = object {
                self.fill_in(&self.samples().await?, attributes.namespace, pod);
            }
            Ok(())
        })
    }
}
