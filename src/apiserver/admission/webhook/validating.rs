//! ValidatingAdmissionWebhook (`plugin/webhook/validating`): webhooks that refuse, all asked at once.

use std::sync::Arc;

use futures::future::{BoxFuture, join_all};
use serde_json::Value;

use super::WebhookSource;
use super::call::{call, count};
use super::hook::{AdmissionHook, hooks};
use super::matcher::{Matched, Matcher, is_exempt};
use super::versions::Versions;
use crate::admission::cel::{Inputs, Watched};
use crate::admission::{AdmissionMetrics, AdmissionPlugin, Attributes, Authorizer, Initializer};
use crate::registry::Registry;
use crate::webhook::ServiceResolver;
use apimachinery::status::Status;
use apis::admissionregistration::webhook_configuration::VALIDATING_WEBHOOK_CONFIGURATIONS;
use clock::Clock;
use entropy::Entropy;

/// Asks the webhooks of all ValidatingWebhookConfigurations.
pub(crate) struct ValidatingAdmissionWebhook {
    source: WebhookSource<Vec<Arc<AdmissionHook>>>,
    matcher: Matcher,
    registry: Registry,
    authorizer: Arc<dyn Authorizer>,
    entropy: Entropy,
    clock: Clock,
    metrics: Arc<AdmissionMetrics>,
}

impl ValidatingAdmissionWebhook {
    /// Configurations are read when there are any.
    pub(crate) fn new(with: &Initializer) -> ValidatingAdmissionWebhook {
        let resolver = ServiceResolver::new(with.registry, with.entropy).over(with.pods);
        let clock = with.clock.clone();
        let compile = move |object: &_| hooks(object, &resolver, &clock);
        ValidatingAdmissionWebhook {
            source: WebhookSource::new(with.registry, &VALIDATING_WEBHOOK_CONFIGURATIONS, compile),
            matcher: Matcher::new(with.registry, with.scheme),
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
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let configurations = self.source.current().await?;
        let mut relevant: Vec<(Arc<AdmissionHook>, Matched, Arc<Versions>)> = Vec::new();
        for hook in configurations.iter().flat_map(|hooks| hooks.iter()) {
            let matched = self.matcher.matches(&hook.criteria, attributes, object, old, false).await?;
            let Some(matched) = matched else { continue };
            let same = relevant.iter().find(|(_, other, _)| Arc::ptr_eq(&other.kind, &matched.kind));
            let objects = match same {
                Some((_, _, objects)) => objects.clone(),
                None => {
                    let objects = Versions::new(&self.registry, attributes, &matched.kind, object, old);
                    Arc::new(objects.await.map_err(Status::internal)?)
                }
            };
            let inputs =
                Inputs { attributes, kind: &matched.kind, objects: &objects, authorizer: &self.authorizer };
            let labels = [&*hook.name, "webhook", "validating", attributes.operation.name()];
            let watched = Watched { metrics: &self.metrics, clock: &self.clock, labels };
            if hook.conditions.are_met(&inputs, watched)? {
                relevant.push((hook.clone(), matched, objects));
            }
        }
        let asked = relevant.iter().enumerate().map(|(index, (hook, matched, objects))| async move {
            let start = self.clock.elapsed();
            let answer = call(hook, attributes, &matched.kind, objects, false, &self.entropy).await;
            let duration = self.clock.elapsed().saturating_sub(start);
            count(&self.metrics, hook, "validating", attributes, answer.as_ref().map(drop), duration);
            let key = format!("failed-open.validating.webhook.admission.k8s.io/round_0_index_{index}");
            answer.map(drop).or_else(|refusal| refusal.judge(hook, attributes, &key))
        });
        let start = self.clock.elapsed();
        // All are asked to the end; of several refusals the first in order is told.
        let answers = join_all(asked).await;
        attributes.ctx.has_waited(self.clock.elapsed().saturating_sub(start));
        answers.into_iter().collect()
    }
}

impl AdmissionPlugin for ValidatingAdmissionWebhook {
    fn handles(&self, attributes: &Attributes) -> bool {
        self.source.notice(attributes.kind);
        !is_exempt(attributes) && self.source.may_have_any()
    }

    fn changes(&self) -> bool {
        false
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.ask_all(attributes, object, old))
    }
}
