//! MutatingAdmissionWebhook (`plugin/webhook/mutating`): webhooks that change objects, one after the other.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::call::{WebhookRefusal, call, count};
use super::hook::{AdmissionHook, hooks};
use super::matcher::{Matcher, is_exempt};
use super::response::WebhookAnswer;
use super::versions::{Codec, Read, Shown, Versions};
use super::{Matched, WebhookSource};
use crate::admission::cel::{Inputs, Watched};
use crate::admission::reinvocation::Reinvocation;
use crate::admission::{AdmissionMetrics, AdmissionPlugin, Attributes, Authorizer, Initializer};
use crate::registry::Registry;
use crate::webhook::ServiceResolver;
use apimachinery::patch::{PatchType, apply, check_json_patch};
use apimachinery::status::Status;
use apis::admissionregistration::webhook_configuration::MUTATING_WEBHOOK_CONFIGURATIONS;
use clock::Clock;
use entropy::Entropy;

/// Asks the webhooks of all MutatingWebhookConfigurations.
pub(crate) struct MutatingAdmissionWebhook {
    source: WebhookSource<Vec<Arc<AdmissionHook>>>,
    matcher: Matcher,
    codec: Codec,
    registry: Registry,
    authorizer: Arc<dyn Authorizer>,
    entropy: Entropy,
    clock: Clock,
    metrics: Arc<AdmissionMetrics>,
}

impl MutatingAdmissionWebhook {
    /// Configurations are read when there are any.
    pub(crate) fn new(with: &Initializer) -> MutatingAdmissionWebhook {
        let resolver = ServiceResolver::new(with.registry, with.entropy).over(with.pods);
        let clock = with.clock.clone();
        let compile = move |object: &_| hooks(object, &resolver, &clock);
        MutatingAdmissionWebhook {
            source: WebhookSource::new(with.registry, &MUTATING_WEBHOOK_CONFIGURATIONS, compile),
            matcher: Matcher::new(with.registry, with.scheme),
            codec: Codec::new(with.registry, with.scheme),
            registry: with.registry.clone(),
            authorizer: with.authorizer.clone(),
            entropy: with.entropy.clone(),
            clock: with.clock.clone(),
            metrics: with.metrics.clone(),
        }
    }

    async fn ask_all(
        &self,
        attributes: &Attributes<'_>,
        mut object: Option<&mut Value>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let mut round = WebhookRound::begin(attributes.reinvocation, object.as_deref());
        let configurations = self.source.current().await?;
        for (index, hook) in configurations.iter().flat_map(|hooks| hooks.iter()).enumerate() {
            round.index = index;
            self.ask(&mut round, hook, attributes, object.as_deref_mut(), old).await?;
        }
        round.end(attributes.reinvocation, object.as_deref());
        Ok(())
    }

    async fn ask(
        &self,
        round: &mut WebhookRound,
        hook: &AdmissionHook,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let matched = self.matcher.matches(&hook.criteria, attributes, object.as_deref(), old, false).await?;
        let Some(matched) = matched else { return Ok(()) };
        let key = format!("{}/{}", hook.configuration, hook.name);
        if round.is_second && !round.reinvoked.contains(&key) {
            return Ok(());
        }
        let mut shown = std::mem::take(&mut round.shown);
        let objects = shown.of(&self.registry, attributes, &matched.kind, object.as_deref(), old).await;
        // Upstream wraps it twice.
        let objects = objects.map_err(|error| Status::internal(Status::internal(error)))?;
        let inputs = Inputs { attributes, kind: &matched.kind, objects, authorizer: &self.authorizer };
        let labels = [&*hook.name, "webhook", "admit", attributes.operation.name()];
        let watched = Watched { metrics: &self.metrics, clock: &self.clock, labels };
        if !hook.conditions.are_met(&inputs, watched)? {
            round.shown = shown;
            return Ok(());
        }
        let changed = self.change(round, hook, attributes, (object, &matched), objects).await?;
        round.shown = shown;
        if changed {
            // Whoever was asked before has not seen this.
            round.reinvoked.append(&mut round.invoked);
            round.wants_second = true;
        }
        if hook.is_reinvoked {
            round.invoked.insert(key);
        }
        Ok(())
    }

    /// Whether the object is another one now.
    async fn change(
        &self,
        round: &WebhookRound,
        hook: &AdmissionHook,
        attributes: &Attributes<'_>,
        objects: (Option<&mut Value>, &Matched),
        versions: &mut Versions,
    ) -> Result<bool, Status> {
        let start = self.clock.elapsed();
        let changed = self.call(round, hook, attributes, objects, versions).await;
        let is_changed = matches!(changed, Ok(true));
        let annotation = format!(
            "{{\"configuration\":{},\"webhook\":{},\"mutated\":{is_changed}}}",
            json!(hook.configuration),
            json!(hook.name)
        );
        attributes.ctx.annotate(&round.key("mutation"), &annotation);
        let outcome = changed.as_ref().map(drop);
        let duration = self.clock.elapsed().saturating_sub(start);
        attributes.ctx.has_waited(duration);
        count(&self.metrics, hook, "admit", attributes, outcome, duration);
        match changed {
            Ok(changed) => Ok(changed),
            Err(refusal) => {
                refusal.judge(hook, attributes, &round.key("failed-open.mutation")).map(|()| false)
            }
        }
    }

    async fn call(
        &self,
        round: &WebhookRound,
        hook: &AdmissionHook,
        attributes: &Attributes<'_>,
        (object, matched): (Option<&mut Value>, &Matched),
        versions: &mut Versions,
    ) -> Result<bool, WebhookRefusal> {
        let answer = call(hook, attributes, &matched.kind, versions, true, &self.entropy).await?;
        if answer.patch.is_empty() {
            return Ok(false);
        }
        let operations = check_json_patch(&answer.patch).map_err(|why| {
            WebhookRefusal::failed(hook, &format!("received undecodable patch in webhook response: {why}"))
        })?;
        if operations == 0 {
            return Ok(false);
        }
        let object = object.ok_or_else(|| WebhookRefusal::Refused(nothing_to_change(hook)))?;
        let new = self.patch(hook, attributes, matched, versions, &answer).await?;
        let annotation = format!(
            "{{\"configuration\":{},\"webhook\":{},\"patch\":{},\"patchType\":\"JSONPatch\"}}",
            json!(hook.configuration),
            json!(hook.name),
            serde_json::from_slice::<Value>(&answer.patch).unwrap_or_default()
        );
        attributes.ctx.annotate_request(&round.key("patch"), &annotation);
        let changed = new.object != *object;
        versions.set_object(&matched.kind, attributes.subresource, new.versioned);
        *object = new.object;
        Ok(changed)
    }

    async fn patch(
        &self,
        hook: &AdmissionHook,
        attributes: &Attributes<'_>,
        matched: &Matched,
        objects: &Versions,
        answer: &WebhookAnswer,
    ) -> Result<Read, WebhookRefusal> {
        if answer.patch_type != "JSONPatch" {
            return Err(WebhookRefusal::failed(
                hook,
                &format!("unsupported patch type {:?}", answer.patch_type),
            ));
        }
        let patched = apply(&Default::default(), PatchType::Json, objects.object.clone(), &answer.patch);
        let patched = patched.map_err(|error| WebhookRefusal::Refused(Status::internal(error)))?.value;
        self.codec.read(attributes, &matched.kind, patched).await.map_err(WebhookRefusal::Refused)
    }
}

impl AdmissionPlugin for MutatingAdmissionWebhook {
    fn handles(&self, attributes: &Attributes) -> bool {
        self.source.notice(attributes.kind);
        !is_exempt(attributes) && self.source.may_have_any()
    }

    fn validates(&self) -> bool {
        false
    }

    fn admit<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a mut Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.ask_all(attributes, object, old))
    }
}

/// One pass over the webhooks (`webhookReinvokeContext`).
struct WebhookRound {
    is_second: bool,
    index: usize,
    /// Asked, and to be asked again when the object changes behind them.
    invoked: BTreeSet<String>,
    /// To be asked again in the second round.
    reinvoked: BTreeSet<String>,
    wants_second: bool,
    /// The objects in the version that was wanted last.
    shown: Shown,
}

const NAME: &str = "MutatingAdmissionWebhook";

impl WebhookRound {
    fn begin(reinvocation: Option<&Reinvocation>, object: Option<&Value>) -> WebhookRound {
        let mut round = WebhookRound {
            is_second: false,
            index: 0,
            invoked: BTreeSet::new(),
            reinvoked: BTreeSet::new(),
            wants_second: false,
            shown: Shown::default(),
        };
        if let Some(reinvocation) = reinvocation.filter(|reinvocation| reinvocation.is_second()) {
            round.is_second = true;
            let kept = reinvocation.take(NAME);
            round.invoked = kept.invoked;
            round.reinvoked = kept.reinvoked;
            if kept.output.as_ref() != object {
                round.reinvoked.append(&mut round.invoked);
            }
        }
        round
    }

    fn end(self, reinvocation: Option<&Reinvocation>, object: Option<&Value>) {
        let Some(reinvocation) = reinvocation.filter(|reinvocation| !reinvocation.is_second()) else {
            return;
        };
        if self.invoked.is_empty() && self.reinvoked.is_empty() && !self.wants_second {
            return;
        }
        reinvocation.keep(NAME, self.invoked, self.reinvoked, object.cloned());
        if self.wants_second {
            reinvocation.want_second();
        }
    }

    fn key(&self, what: &str) -> String {
        let round = u8::from(self.is_second);
        format!("{what}.webhook.admission.k8s.io/round_{round}_index_{}", self.index)
    }
}

fn nothing_to_change(hook: &AdmissionHook) -> Status {
    Status::internal(format!(
        "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
        hook.name
    ))
}
