//! EventRateLimit: how many Events may be written (`plugin/pkg/admission/eventratelimit`).

use std::collections::VecDeque;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;
use sync::Mutex;

use super::config::BadAdmissionConfig;
use super::{AdmissionPlugin, Attributes, Initializer};
use apimachinery::status::Status;
use apis::tree::text;
use clock::Clock;

/// Buckets that a limit keeps unless it says otherwise.
const CACHE_SIZE: usize = 4096;

/// Counts Events by server, namespace, user, or source and object.
pub(super) struct EventRateLimit {
    clock: Clock,
    limits: Vec<(Limit, Mutex<Buckets>)>,
}

/// One of the configured `limits`.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Limit {
    #[serde(rename = "type")]
    kind: String,
    qps: u32,
    burst: u32,
    cache_size: usize,
}

/// Bound: the limit's cache size; at the bound the one that was used longest ago is forgotten, which lets its
/// key begin anew.
type Buckets = VecDeque<(String, Bucket)>;

struct Bucket {
    tokens: f64,
    at: Duration,
}

impl EventRateLimit {
    /// With its configuration (`eventratelimit.admission.k8s.io/v1alpha1` Configuration).
    ///
    /// # Errors
    /// Limits of no known type, or without numbers.
    pub(super) fn new(with: &Initializer) -> Result<EventRateLimit, BadAdmissionConfig> {
        let limits = with.configuration("EventRateLimit")["limits"].clone();
        let limits: Option<Vec<Limit>> = serde_json::from_value(limits).map_err(|error| error.to_string())?;
        let limits = limits.unwrap_or_default();
        if limits.is_empty() {
            return Err("limits: Invalid value: []: must not be empty".into());
        }
        for (at, limit) in limits.iter().enumerate() {
            limit.validate(at)?;
        }
        let limits = limits.into_iter().map(|limit| (limit, Mutex::default())).collect();
        Ok(EventRateLimit { clock: with.clock.clone(), limits })
    }

    fn check(&self, attributes: &Attributes<'_>, event: &Value) -> Result<(), Status> {
        let now = self.clock.elapsed();
        let mut reached = Vec::new();
        for (limit, buckets) in &self.limits {
            let key = limit.key(attributes, event);
            let mut buckets = buckets.lock();
            if !limit.take(&mut buckets, &key, now) {
                reached.push(format!("limit reached on type {} for key {key}", limit.kind));
            }
        }
        match reached.as_slice() {
            [] => Ok(()),
            [one] => Err(Status::too_many_requests(format!("Too many requests: {one}"), 0)),
            several => {
                Err(Status::too_many_requests(format!("Too many requests: [{}]", several.join(", ")), 0))
            }
        }
    }
}

impl Limit {
    fn validate(&self, at: usize) -> Result<(), String> {
        if !matches!(self.kind.as_str(), "Server" | "Namespace" | "User" | "SourceAndObject") {
            return Err(format!(
                "limits[{at}].type: Unsupported value: {:?}: supported values: \"Namespace\", \"Server\", \
                 \"SourceAndObject\", \"User\"",
                self.kind
            ));
        }
        let positive = [("burst", self.burst), ("qps", self.qps)];
        match positive.iter().find(|(_, number)| *number == 0) {
            Some((name, _)) => Err(format!("limits[{at}].{name}: Invalid value: 0: must be positive")),
            None => Ok(()),
        }
    }

    fn key(&self, attributes: &Attributes<'_>, event: &Value) -> String {
        match self.kind.as_str() {
            "Namespace" => attributes.namespace.into(),
            "User" => attributes.ctx.user.name.to_string(),
            "SourceAndObject" => [
                "source.component",
                "source.host",
                "involvedObject.kind",
                "involvedObject.namespace",
                "involvedObject.name",
                "involvedObject.uid",
                "involvedObject.apiVersion",
            ]
            .map(|path| text(event, path))
            .concat(),
            _ => String::new(),
        }
    }

    fn take(&self, buckets: &mut Buckets, key: &str, now: Duration) -> bool {
        let burst = f64::from(self.burst);
        let known = buckets.iter().position(|(known, _)| known == key).and_then(|at| buckets.remove(at));
        let (key, mut bucket) = known.unwrap_or_else(|| (key.to_owned(), Bucket { tokens: burst, at: now }));
        let refill = now.saturating_sub(bucket.at).as_secs_f64() * f64::from(self.qps);
        (bucket.tokens, bucket.at) = ((bucket.tokens + refill).min(burst), now);
        let has_token = bucket.tokens >= 1.0;
        bucket.tokens -= if has_token { 1.0 } else { 0.0 };
        buckets.push_back((key, bucket));
        if buckets.len() > if self.cache_size == 0 { CACHE_SIZE } else { self.cache_size } {
            buckets.pop_front();
        }
        has_token
    }
}

impl AdmissionPlugin for EventRateLimit {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.writes("", "events") && !attributes.ctx.dry_run
    }

    fn changes(&self) -> bool {
        false
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let outcome = object.map_or(Ok(()), |event| self.check(attributes, event));
        Box::pin(std::future::ready(outcome))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_refills_with_time() {
        let limit = Limit { kind: "Server".into(), qps: 2, burst: 2, cache_size: 1 };
        let mut buckets = Buckets::new();
        let at = Duration::from_secs;
        assert!(limit.take(&mut buckets, "", at(0)) && limit.take(&mut buckets, "", at(0)));
        assert!(!limit.take(&mut buckets, "", at(0)));
        assert!(limit.take(&mut buckets, "", at(1)));
        assert!(limit.take(&mut buckets, "other", at(1)));
        assert_eq!(buckets.len(), 1);
    }
}
