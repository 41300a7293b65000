//! What faults do to requests.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::future::BoxFuture;

use super::asked::AskedFor;
use super::body;
use super::events;
use super::fault::{FaultAnswer, FaultCut, WatchFault};
use super::late::hold_up;
use super::named;
use super::pattern::any;
use super::rules::{Faults, StandingFault};
use super::status;
use apimachinery::status::Status;
use apimachinery::wire::{ApiResponse, Faulted, status_response};
use apiserver::filters::interceptor::Interceptor;
use apiserver::filters::passed::Passed;
use apiserver::filters::{Next, Passing};
use apiserver::request::{BESIDE, RequestDisturbance, query_value};
use clock::Clock;

/// What the audit log says of a request that was hit.
const ANNOTATION: &str = "faults.kubarium.dev/fault";

impl Interceptor for Faults {
    fn wants(&self, request: &Passed) -> bool {
        let info = &request.ctx.info;
        if self.0.number.load(Ordering::Acquire) == 0 || info.path.starts_with(BESIDE) {
            return is_watch(request);
        }
        is_watch(request) || self.concerns(request)
    }

    fn intercept<'a>(&'a self, request: Passing, next: Next<'a>) -> BoxFuture<'a, ApiResponse> {
        Box::pin(self.meddle(request, next))
    }
}

/// A watch, which a fault that comes later could end.
fn is_watch(request: &Passed) -> bool {
    request.ctx.info.verb == "watch" && request.ctx.info.is_resource_request
}

impl Faults {
    async fn meddle(&self, mut request: Passing, next: Next<'_>) -> ApiResponse {
        let asked = AskedFor::of(&request);
        self.forget_expired(&asked);
        let rule = self.hit(&asked);
        let is_too_old = rule.as_ref().is_some_and(|rule| rule.is_too_old(&asked));
        let gate = if !is_watch(&request) {
            None
        } else if request.ctx.wants_objects {
            request.ctx.cut = Some(self.0.open.inside(asked));
            None
        } else {
            Some(self.0.open.sent(asked))
        };
        let response = match rule {
            Some(rule) => self.strike(&rule, is_too_old, request, next).await,
            None => next.run(request).await,
        };
        match gate {
            Some(gate) if response.status().is_success() => body::gated(response, gate),
            _ => response,
        }
    }

    async fn strike(
        &self,
        rule: &StandingFault,
        is_too_old: bool,
        mut request: Passing,
        next: Next<'_>,
    ) -> ApiResponse {
        let fault = &rule.fault;
        tracing::debug!(
            fault = fault.name,
            user = &*request.ctx.user.name,
            path = request.ctx.info.path,
            "hit"
        );
        request.ctx.annotate(ANNOTATION, &fault.name);
        if let Some(latency) = fault.latency {
            hold_up(&self.0.clock, latency.0).await;
        }
        let mut response = if fault.partition {
            lost(request.ctx.wants_objects, "connect: connection refused")
        } else if let Some(cut) = &fault.cut {
            cut_off(cut, request, next, &self.0.clock).await
        } else if let Some(answer) = &fault.answer {
            self.answer(answer, request, next).await
        } else {
            request.ctx.disturbance = self.disturbance(rule, is_too_old, &request);
            next.run(request).await
        };
        response.extensions_mut().insert(Faulted(fault.name.as_str().into()));
        response
    }

    async fn answer(&self, answer: &FaultAnswer, mut request: Passing, next: Next<'_>) -> ApiResponse {
        let names_object = answer.code == 409 && request.ctx.info.verb == "create";
        let created = if names_object {
            named::in_body(&mut request, answer.executed, &self.0.clock).await
        } else {
            String::new()
        };
        let status = status::of(answer, &request.ctx.info, &created);
        let (headers, wants_objects) = (request.headers().clone(), request.ctx.wants_objects);
        if !answer.executed {
            return request.ctx.refuse(&headers, status);
        }
        drop(next.run(request).await);
        apimachinery::wire::negotiated_status_response(&headers, status, wants_objects)
    }

    /// What goes wrong inside of the apiserver.
    fn disturbance(
        &self,
        rule: &StandingFault,
        is_too_old: bool,
        request: &Passed,
    ) -> Option<Box<RequestDisturbance>> {
        let mut disturbance = RequestDisturbance::default();
        if let Some(watch) = &rule.fault.watch {
            let after_events = if is_too_old { 0 } else { watch.after_events };
            let watch = WatchFault { after_events, ..watch.clone() };
            let asked = AskedFor::of(request);
            let (expired, from, watcher) =
                (rule.expired.clone(), asked.from.unwrap_or_default(), asked.watcher());
            let expire = move |seen: u64| expired.add(&watcher, seen.max(from));
            disturbance.watch = Some(events::stage(&watch, &self.0.clock, Arc::new(expire)));
        }
        disturbance.read_at = self.past(rule, request);
        if !rule.fault.silent_webhooks.is_empty() {
            let patterns = rule.aim.silent_webhooks.clone();
            let is_silent = move |name: &str| any(&patterns, |pattern| pattern.matches(name));
            disturbance.silent_webhooks = Some(Arc::new(is_silent));
        }
        Some(Box::new(disturbance))
    }

    /// The revision that a get or list is answered from: of one that takes any state, and nothing older than
    /// it asks for.
    fn past(&self, rule: &StandingFault, request: &Passed) -> Option<u64> {
        let stale = rule.fault.stale.as_ref()?;
        let query = request.uri().query().unwrap_or_default();
        let asked: u64 = query_value(query, "resourceVersion")?.parse().ok()?;
        if query_value(query, "resourceVersionMatch").is_some_and(|word| word == "Exact") {
            return None;
        }
        let past = match stale.revisions {
            Some(revisions) => self.revision().saturating_sub(revisions),
            None => rule.revision,
        };
        // What is compacted is no past that could be read: then the oldest is.
        Some(past.max(self.compact_revision()).max(asked).max(1))
    }
}

async fn cut_off(cut: &FaultCut, request: Passing, next: Next<'_>, clock: &Clock) -> ApiResponse {
    let wants_objects = request.ctx.wants_objects;
    let is_watch = request.ctx.info.verb == "watch";
    let response = next.run(request).await;
    match cut.after_bytes {
        // A watch that is read as events has begun, and ends.
        _ if wants_objects && !is_watch => lost(wants_objects, "unexpected EOF"),
        None => lost(wants_objects, "EOF"),
        Some(_) if wants_objects => response,
        Some(bytes) => body::cut_short(response, bytes, clock),
    }
}

/// Nothing arrives; who reads no bytes hears what a client would say of that.
fn lost(wants_objects: bool, why: &str) -> ApiResponse {
    if wants_objects {
        return status_response(Status::failure(503, "ServiceUnavailable", why), true);
    }
    body::severed()
}
