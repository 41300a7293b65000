//! MutatingAdmissionWebhook (`plugin/webhook/mutating`): webhooks that change objects, one after the other.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::call::{call, hook_annotation};
use super::hook::{Hook, hooks};
use super::matcher::{Matcher, is_exempt};
use super::response::Answer;
use super::versions::{Codec, Versions};
use super::{Matched, Source};
use crate::apimachinery::patch::{PatchType, apply};
use crate::apimachinery::status::Status;
use crate::apis::admissionregistration::webhook_configuration::MUTATING_WEBHOOK_CONFIGURATIONS;
use crate::apiserver::admission::cel::Inputs;
use crate::apiserver::admission::reinvocation::Reinvocation;
use crate::apiserver::admission::{Attributes, Authorizer, Initializer, Plugin};
use crate::apiserver::webhook::ServiceResolver;
use crate::entropy::Entropy;

/// Asks the webhooks of all MutatingWebhookConfigurations.
pub struct MutatingAdmissionWebhook {
    source: Source<Vec<Arc<Hook>>>,
    matcher: Matcher,
    codec: Codec,
    authorizer: Arc<dyn Authorizer>,
    entropy: Entropy,
}

impl MutatingAdmissionWebhook {
    /// Configurations are read when there are any.
    pub fn new(with: &Initializer) -> MutatingAdmissionWebhook {
        let (resolver, clock) = (ServiceResolver::new(with.registry, with.entropy), with.clock.clone());
        let compile = move |object: &_| hooks(object, &resolver, &clock);
        MutatingAdmissionWebhook {
            source: Source::new(with.registry, &MUTATING_WEBHOOK_CONFIGURATIONS, compile),
            matcher: Matcher::new(with.registry, with.scheme),
            codec: Codec::new(with.scheme),
            authorizer: with.authorizer.clone(),
            entropy: with.entropy.clone(),
        }
    }

    async fn ask_all(
        &self,
        attributes: &Attributes<'_>,
        mut object: Option<&mut Value>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let mut round = Round::begin(attributes.reinvocation, object.as_deref());
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
        round: &mut Round,
        hook: &Hook,
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
        let objects = Versions::new(attributes, &matched.kind, object.as_deref(), old);
        let inputs =
            Inputs { attributes, kind: &matched.kind, objects: &objects, authorizer: &self.authorizer };
        if !hook.conditions.are_met(&inputs, None)? {
            return Ok(());
        }
        let changed = self.change(round, hook, attributes, (object, &matched), &objects).await?;
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

    async fn change(
        &self,
        round: &Round,
        hook: &Hook,
        attributes: &Attributes<'_>,
        (object, matched): (Option<&mut Value>, &Matched),
        objects: &Versions,
    ) -> Result<bool, Status> {
        let answer = match call(hook, attributes, &matched.kind, objects, true, &self.entropy).await {
            Ok(answer) => answer,
            Err(refusal) => {
                let key = round.key("failed-open.mutation");
                return refusal.judge(hook, attributes, &key).map(|()| false);
            }
        };
        let changed = match (answer.patch.is_empty(), object) {
            (true, _) => false,
            (false, None) => return Err(nothing_to_change(hook)),
            (false, Some(object)) => {
                let new = self.patch(hook, attributes, matched, objects, &answer)?;
                let changed = new != *object;
                *object = new;
                changed
            }
        };
        let mut annotation = hook_annotation(hook);
        annotation["mutated"] = changed.into();
        attributes.ctx.annotate(&round.key("mutation"), &annotation.to_string());
        if changed {
            let mut annotation = hook_annotation(hook);
            annotation["patch"] = serde_json::from_slice(&answer.patch).unwrap_or_default();
            annotation["patchType"] = json!("JSONPatch");
            attributes.ctx.annotate_request(&round.key("patch"), &annotation.to_string());
        }
        Ok(changed)
    }

    fn patch(
        &self,
        hook: &Hook,
        attributes: &Attributes,
        matched: &Matched,
        objects: &Versions,
        answer: &Answer,
    ) -> Result<Value, Status> {
        if answer.patch_type != "JSONPatch" {
            let (name, patch_type) = (&hook.name, &answer.patch_type);
            let why = format!("failed calling webhook {name:?}: unsupported patch type {patch_type:?}");
            return Err(Status::internal(why));
        }
        let patched = apply(&Default::default(), PatchType::Json, objects.object.clone(), &answer.patch);
        let patched = patched.map_err(Status::internal)?.value;
        self.codec.read(attributes, &matched.kind, patched).map_err(Status::internal)
    }
}

impl Plugin for MutatingAdmissionWebhook {
    fn handles(&self, attributes: &Attributes) -> bool {
        self.source.notice(attributes.kind);
        !is_exempt(attributes) && self.source.may_have_any()
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
struct Round {
    is_second: bool,
    index: usize,
    /// Asked, and to be asked again when the object changes behind them.
    invoked: BTreeSet<String>,
    /// To be asked again in the second round.
    reinvoked: BTreeSet<String>,
    wants_second: bool,
}

const NAME: &str = "MutatingAdmissionWebhook";

impl Round {
    fn begin(reinvocation: Option<&Reinvocation>, object: Option<&Value>) -> Round {
        let mut round = Round {
            is_second: false,
            index: 0,
            invoked: BTreeSet::new(),
            reinvoked: BTreeSet::new(),
            wants_second: false,
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

fn nothing_to_change(hook: &Hook) -> Status {
    Status::internal(format!(
        "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
        hook.name
    ))
}
