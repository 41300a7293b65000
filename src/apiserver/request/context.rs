//! `RequestContext`: what is known of a request on its way.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use golang::first_bytes::first_bytes;
use http::HeaderMap;
use serde_json::Value;
use sync::Mutex;

use super::bounded_text::bounded;
use super::disturbance::RequestDisturbance;
use super::field_changes::{
    MAX_NEAR_VALUE_BYTES, MAX_VALUE_BYTES, field_changes, with_zero_replicas, without_values,
};
use super::info::RequestInfo;
use super::second_checks::SecondChecks;
use crate::audit_context::{AuditContext, Level};
use apimachinery::gvk::GroupVersion;
use apimachinery::options::{DeleteOptions, Held, WatchCut};
use apimachinery::status::Status;
use apimachinery::time::Time;
use apimachinery::user::UserInfo;
use apimachinery::wire::{ApiRequest, ApiResponse, CausedBy, WantsObjects, negotiated_status_response};
use flow::{CalledWebhook, DecodedObject, Flow, HeldStage, HeldStep, Step, StepId};

/// All warnings of one answer together; beyond it each is shortened, then dropped (upstream's numbers).
const MAX_WARNINGS_BYTES: usize = 4096;
const SHORT_WARNING_BYTES: usize = 256;

/// What goes with a request from the first filter to the storage, in one place: who asks and for what, why,
/// and what may be said back beside the answer (upstream's `context.Context` with what `request.WithUser` and
/// its like put into it).
///
/// What came with the request from outside, from a socket or a caller in this process, stays in its
/// `http::Extensions`.
#[derive(Debug, Default)]
pub struct RequestContext {
    /// What is asked for.
    pub info: Arc<RequestInfo>,
    /// Who asks; nobody, before authentication has found out.
    pub user: Arc<UserInfo>,
    /// A component of this process asks, and takes objects instead of bytes.
    pub wants_objects: bool,
    /// When objects that it makes are said to have been made; None is now. For what every cluster has from
    /// the start and is made when it is first looked at.
    pub created_at: Option<Time>,
    /// Everything runs but the write.
    pub dry_run: bool,
    /// It is a server-side apply: who owns what is the point of it.
    pub is_apply: bool,
    /// Who will own the written fields.
    pub field_manager: String,
    /// As the client gave it: `Strict`, `Warn`, `Ignore`, or nothing.
    pub field_validation: String,
    /// The options of a delete.
    pub delete_options: Option<Box<DeleteOptions>>,
    /// The flow record's step that made the caller ask.
    pub cause: Option<u64>,
    /// The answer's `Audit-Id`.
    pub audit_id: Arc<str>,
    /// What is told of it in the audit log; none when nothing is.
    pub audit: Option<Arc<AuditContext>>,
    /// What a watch gives back when it has sent its state.
    pub held: Option<Held>,
    /// By what a watch may be ended from outside.
    pub cut: Option<WatchCut>,
    /// What goes wrong with it on purpose. Boxed, since nearly no request has one.
    pub disturbance: Option<Box<RequestDisturbance>>,
    /// What else the user has to be allowed.
    pub second_checks: SecondChecks,
    /// When it came, by the clock of the cluster.
    pub received_at: Duration,
    /// Where it is said that the request is a long one.
    pub announced: Announced,
    /// Where the story of a write is told.
    pub flow: Flow,
    /// See [`RequestContext::name_attempt`].
    attempted: OnceLock<String>,
    /// The last step that was told of; 0 before the first.
    last_step: AtomicU64,
    warnings: Mutex<Vec<String>>,
    /// Nanoseconds; see [`RequestContext::waited`].
    waited: AtomicU64,
}

/// Work with more bytes than this is long: it leaves the runtime's threads. Few objects are so big, and less
/// is done in a millisecond or two.
pub const LONG_BYTES: usize = 64 * 1024;

/// Where work says that it is going to be long, before it is. Without a listener nothing becomes of it.
#[derive(Clone, Debug, Default)]
pub struct Announced(Option<Arc<AtomicBool>>);

impl Announced {
    /// One that somebody listens to.
    pub fn possible() -> Announced {
        Announced(Some(Arc::default()))
    }

    /// So many bytes are to be worked on: where that is long, this comes back on a thread that may be kept
    /// busy.
    pub async fn bytes(&self, bytes: usize) {
        let listener = self.0.as_ref().filter(|_| bytes > LONG_BYTES);
        if listener.is_some_and(|listener| !listener.swap(true, Ordering::Relaxed)) {
            clock::yield_now().await;
        }
    }

    /// Whether it has been said.
    pub fn is_made(&self) -> bool {
        self.0.as_ref().is_some_and(|made| made.load(Ordering::Relaxed))
    }
}

impl RequestContext {
    /// For a request of `user`.
    pub fn new(info: Arc<RequestInfo>, user: Arc<UserInfo>) -> RequestContext {
        RequestContext { info, user, ..RequestContext::default() }
    }

    /// For a request that has just come: who asks and for what is still to be found out.
    pub fn of(request: &ApiRequest) -> RequestContext {
        let extensions = request.extensions();
        RequestContext {
            wants_objects: extensions.get::<WantsObjects>().is_some(),
            cause: extensions.get::<CausedBy>().map(|cause| cause.0),
            ..RequestContext::default()
        }
    }

    /// The answer to a request that goes no further; told in the audit log, too.
    pub fn refuse(&self, headers: &HeaderMap, status: Status) -> ApiResponse {
        if let Some(audit) = &self.audit {
            audit.gather(|gathered| gathered.response_status = Some(status.clone()));
        }
        negotiated_status_response(headers, status, self.wants_objects)
    }

    /// Says `text` to the client in a `Warning` header. The same text twice is said once; at the bound texts
    /// are shortened, and then left out.
    pub fn warn(&self, text: impl Into<String>) {
        let text = text.into();
        let mut warnings = self.warnings.lock();
        if text.is_empty() || warnings.contains(&text) {
            return;
        }
        let used: usize = warnings.iter().map(String::len).sum();
        if used + text.len() <= MAX_WARNINGS_BYTES {
            warnings.push(text);
        } else if used + SHORT_WARNING_BYTES <= MAX_WARNINGS_BYTES {
            warnings.push(first_bytes(&text, SHORT_WARNING_BYTES).into());
        }
    }

    /// How long it has waited for webhooks and for its turn (`LatencyTrackers`): nothing that the server
    /// could do faster.
    pub fn waited(&self) -> Duration {
        Duration::from_nanos(self.waited.load(Ordering::Relaxed))
    }

    /// It has waited for so long.
    pub fn has_waited(&self, duration: Duration) {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.waited.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Adds an annotation to the audit event, if there will be one.
    pub fn annotate(&self, key: &str, value: &str) {
        if let Some(audit) = &self.audit {
            audit.annotate(key, value);
        }
    }

    /// Annotates the audit event where bodies are told, and no other.
    pub fn annotate_request(&self, key: &str, value: &str) {
        if let Some(audit) = self.audit.as_ref().filter(|audit| audit.level >= Level::Request) {
            audit.annotate(key, value);
        }
    }

    /// What led to the next step of the flow record: the last step that was told of, or who asked.
    pub fn cause(&self) -> Option<u64> {
        StepId(self.last_step.load(Ordering::Relaxed)).cause().map(|step| step.0).or(self.cause)
    }

    /// Whether the story of this request is told: then it is worth looking what a plugin changes.
    pub fn is_told(&self) -> bool {
        self.flow.is_on() && self.cause.is_some()
    }

    /// Whether values are told as well: of what people ask for, since that is little and they will look, and
    /// while somebody looks from near of what components do, too; never where it is the values that not
    /// everybody may know.
    pub fn is_told_in_full(&self) -> bool {
        let is_told = || self.is_persons() || (self.is_told() && self.flow.tells_values_of_component());
        !self.is_private() && is_told()
    }

    /// How long a value may be that is told.
    fn value_bytes(&self) -> usize {
        if self.flow.keeps_exchanges() { MAX_NEAR_VALUE_BYTES } else { MAX_VALUE_BYTES }
    }

    /// Whether its story is told, and a person's.
    pub fn is_persons(&self) -> bool {
        self.is_told() && !self.wants_objects
    }

    fn is_private(&self) -> bool {
        let resource = self.info.resource.as_str();
        matches!(resource, "secrets" | "configmaps" | "serviceaccounts" | "tokenreviews")
    }

    /// A person's body was read as an object.
    pub fn tell_decoded(&self, object: impl FnOnce() -> DecodedObject) {
        if self.is_persons() {
            self.tell(Step::Decoded(Box::new(object())));
        }
    }

    /// A person's write is read back for its answer, and `after` was done behind it.
    pub fn tell_read_back(&self, revision: u64, version: &GroupVersion, after: &str) {
        if self.is_persons() {
            let (version, after) = (self.flow.name(&version.to_string()), self.flow.name(after));
            self.tell(Step::ReadBack { revision, version, after });
        }
    }

    /// Waits in front of an admission plugin, while somebody steps the cluster. What has no name yet goes by
    /// that of the object, or by what it is to begin with.
    pub async fn hold_before(&self, plugin: &str, namespace: &str, name: &str, object: Option<&Value>) {
        if !self.flow.is_stepped() || self.info.is_read_only() {
            return;
        }
        let metadata = object.map(|object| &object["metadata"]);
        let fields = metadata.into_iter().flat_map(|metadata| [&metadata["name"], &metadata["generateName"]]);
        let mut names = std::iter::once(name).chain(fields.filter_map(Value::as_str));
        let name = names.find(|name| !name.is_empty()).unwrap_or_default();
        let object = golang::object_key::object_key(namespace, name);
        let held = HeldStep::in_apiserver(HeldStage::Admission, self.flow.name(plugin), object.into());
        self.flow.gate(|| held.caused_by(self.cause().map(StepId))).await;
    }

    /// A mutating admission plugin changed the object at these paths; with `before` also from what to what.
    pub fn tell_admitted(&self, plugin: &str, changed: &[String], before: Option<&Value>, object: &Value) {
        let values =
            before.map(|before| field_changes(before, object, self.value_bytes())).unwrap_or_default();
        let (plugin, changed) = (self.flow.name(plugin), self.flow.name(&changed.join(", ")));
        self.tell(Step::Admitted { plugin, changed, values });
    }

    /// An admission webhook was asked, of a configuration as `ValidatingWebhookConfiguration gate`.
    pub fn tell_webhook(&self, webhook: &str, configuration: &str, duration: Duration, verdict: &str) {
        if self.is_told() {
            let microseconds = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
            let (webhook, configuration) = (self.flow.name(webhook), self.flow.name(configuration));
            let verdict = bounded(verdict);
            let called = CalledWebhook { webhook, configuration, microseconds, verdict };
            self.tell(Step::WebhookCalled(Box::new(called)));
        }
    }

    /// An admission plugin said no.
    pub fn tell_denied(&self, plugin: &str) {
        if self.is_told() {
            self.tell(Step::Denied { plugin: self.flow.name(plugin) });
        }
    }

    /// The body of a create names the object: the path does not. The first name counts.
    pub fn name_attempt(&self, name: String) {
        let _ = self.attempted.set(name);
    }

    /// The name in the body of a create, as far as it was read; may be empty.
    pub fn attempted(&self) -> &str {
        self.attempted.get().map(String::as_str).unwrap_or_default()
    }

    /// Nothing is wrong with the object, and all plugins agree: those that were asked. With `old` also what
    /// an update changes; of what components write only workloads are looked at, which are few; of what is
    /// private that it changes.
    pub fn tell_validated(&self, plugins: Option<Arc<str>>, new: &Value, old: Option<&Value>) {
        let is_workload = || matches!(self.info.group.as_str(), "apps" | "batch");
        let is_looked_at = || self.is_persons() || is_workload();
        if self.is_told() {
            let mut changed = old
                .filter(|_| is_looked_at())
                .map(|old| field_changes(old, new, self.value_bytes()))
                .unwrap_or_default();
            if self.info.subresource == "scale" {
                changed = with_zero_replicas(changed);
            }
            if self.is_private() {
                changed = without_values(changed, self.info.resource == "secrets");
            }
            self.tell(Step::Validated { plugins, changed });
        }
    }

    fn tell(&self, step: Step) {
        if self.is_told() {
            let step = self.flow.record(self.cause().map(StepId), step);
            self.last_step.store(step.0, Ordering::Relaxed);
        }
    }

    /// What was said so far, in order.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_said_once_and_bounded() {
        let context = RequestContext::default();
        context.warn("a");
        context.warn("a");
        assert_eq!(context.warnings(), ["a"]);
        (0..100).for_each(|number| context.warn(format!("{number}{}", "x".repeat(300))));
        assert!(context.warnings().iter().map(String::len).sum::<usize>() <= MAX_WARNINGS_BYTES);
    }
}
