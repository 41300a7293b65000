//! Which NetworkPolicies keep out who asks a pod, or whom a pod asks.

use serde_json::Value;

use super::told::{Explanation, Witnesses, text};
use apimachinery::labels::Selector;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apis::core::pod::PODS;
use apis::networking::network_policy::NETWORK_POLICIES;
use apis::tree::string_map;
use flow::{JudgedTraffic, TracedObject, TrafficSort};

/// So many sorts of traffic are told of, the last ones.
const MAX_TRAFFIC_TOLD: usize = 5;

impl Witnesses<'_> {
    /// Of a pod: what was kept from it and what it was kept from, unless it got through since then, or those
    /// policies are gone.
    pub(super) async fn kept_out(&self, namespace: &str, pod: &str, told: &mut Explanation) {
        let resource = PODS.group_resource().to_string();
        let subject = TracedObject { resource: &resource, namespace, name: pod, uid: "" };
        let traffic = self.client.flow().traffic_of(&subject);
        let own = format!("{namespace}/{pod}");
        let mut lines = vec![];
        for kept in traffic.iter().rev().filter(|seen| is_kept_out(seen, &traffic)) {
            if lines.len() < MAX_TRAFFIC_TOLD && self.is_any_there(&kept.sort.policies).await {
                lines.push(words(kept, &own));
            }
        }
        lines.into_iter().rev().for_each(|line| told.add(line));
    }

    /// Of a Service: the same of the pods that it selects, as far as others ask them.
    pub(super) async fn kept_from_service(
        &self,
        service: &Value,
        told: &mut Explanation,
    ) -> Result<(), Status> {
        let selector = string_map(service, "spec.selector");
        if selector.is_empty() {
            return Ok(());
        }
        let namespace = text(&service["metadata"]["namespace"]);
        let mut options = ListOptions::default();
        options.predicate.labels = Selector::from_labels(&selector);
        for pod in self.client.list(&PODS, namespace, &options).await?.items.iter() {
            let mut of_pod = Explanation::new(format!("its pod {}", pod.metadata.name));
            self.kept_out(namespace, &pod.metadata.name, &mut of_pod).await;
            told.because.extend(Some(of_pod).filter(|of_pod| !of_pod.because.is_empty()));
        }
        Ok(())
    }

    async fn is_any_there(&self, policies: &[String]) -> bool {
        for policy in policies {
            let (namespace, name) = policy.split_once('/').unwrap_or_default();
            if self.client.get(&NETWORK_POLICIES, namespace, name).await.is_ok() {
                return true;
            }
        }
        false
    }
}

/// Whether it was kept out when it was seen last.
fn is_kept_out(seen: &JudgedTraffic, all: &[JudgedTraffic]) -> bool {
    let is_later = |other: &JudgedTraffic| other.last_microseconds > seen.last_microseconds;
    let is_same = |other: &JudgedTraffic| place(&other.sort) == place(&seen.sort);
    !seen.sort.is_allowed
        && !all.iter().any(|other| other.sort.is_allowed && is_later(other) && is_same(other))
}

/// Between whom it is.
fn place(sort: &TrafficSort) -> (&str, &str, u16, &str) {
    (&sort.from, &sort.to, sort.port, &sort.protocol)
}

fn words(kept: &JudgedTraffic, own: &str) -> String {
    let TrafficSort { from, to, port, protocol, policies, .. } = &kept.sort;
    let name = |who: &String| if who == own { "it".to_owned() } else { who.clone() };
    let times = if kept.count == 1 { String::new() } else { format!(", {} times", kept.count) };
    let (from, to, policies) = (name(from), name(to), policies.join(", "));
    format!("{from} could not reach {to} at {port}/{protocol}: kept out by NetworkPolicy {policies}{times}")
}
