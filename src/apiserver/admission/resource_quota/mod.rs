//! ResourceQuota: what a namespace as a whole may use
//! (`k8s.io/apiserver/pkg/admission/plugin/resourcequota`).
//!
//! What is admitted is charged to `status.used` of each quota that it concerns, by a compare-and-put, before
//! it is written: two requests never take the same last piece. What was charged and then not written, and
//! what is deleted, the quota controller gives back.

mod check;

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::config::BadAdmissionConfig;
use super::lister::AdmissionLister;
use super::{AdmissionPlugin, Attributes, Initializer, Operation, forbidden};
use crate::registry::{Part, Registry};
use crate::request::RequestContext;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apis::kind::Kind;
use apis::quota::{ClaimSurroundings, Evaluator, to_value};
use apis::tree::{object_mut, text};
use check::{Charge, LimitedResource, QuotaRefusal, QuotaRequest};
use clock::Clock;

/// Who writes `status.used`.
const FIELD_MANAGER: &str = "kube-apiserver";

/// Charges quotas.
pub(super) struct ResourceQuota {
    registry: Registry,
    clock: Clock,
    quotas: AdmissionLister,
    classes: AdmissionLister,
    claims: AdmissionLister,
    pods: AdmissionLister,
    configuration: QuotaConfiguration,
}

/// `resourcequota.admission.config.k8s.io/v1` ResourceQuotaConfiguration
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct QuotaConfiguration {
    limited_resources: Vec<LimitedResource>,
}

impl ResourceQuota {
    /// With its configuration.
    ///
    /// # Errors
    /// One that cannot be read.
    pub(super) fn new(with: &Initializer) -> Result<ResourceQuota, BadAdmissionConfig> {
        let configuration: Option<QuotaConfiguration> =
            serde_json::from_value(with.configuration("ResourceQuota").clone())
                .map_err(|error| error.to_string())?;
        Ok(ResourceQuota {
            registry: with.registry.clone(),
            clock: with.clock.clone(),
            quotas: AdmissionLister::new(with, "", "v1", "resourcequotas"),
            classes: AdmissionLister::new(with, "resource.k8s.io", "v1", "deviceclasses"),
            claims: AdmissionLister::new(with, "resource.k8s.io", "v1", "resourceclaims"),
            pods: AdmissionLister::new(with, "", "v1", "pods"),
            configuration: configuration.unwrap_or_default(),
        })
    }

    async fn evaluate(
        &self,
        attributes: &Attributes<'_>,
        new: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let mut evaluator = Evaluator::of(attributes.kind);
        if old.is_some_and(|old| !evaluator.concerns(old, new, attributes.subresource)) {
            return Ok(());
        }
        let resource = attributes.kind.group_resource();
        let is_limited = |limited: &&LimitedResource| {
            *limited.resource == *resource.resource && *limited.api_group == *resource.group
        };
        let limited: Vec<&LimitedResource> =
            self.configuration.limited_resources.iter().filter(is_limited).collect();
        let quotas = self.quotas.list(attributes.namespace).await?;
        if quotas.is_empty() && limited.is_empty() {
            return Ok(());
        }
        if evaluator.looks_around() {
            evaluator = evaluator.among(self.around(attributes.namespace, new).await?);
        }
        let request =
            QuotaRequest { evaluator: &evaluator, new, old, now: self.clock.now(), limited: &limited };
        let quotas: Vec<Value> = quotas.iter().map(|quota| quota.to_value()).collect();
        let refuse = |why: QuotaRefusal| forbidden(attributes, Some(new), &why);
        let charges = request.check(&quotas).map_err(refuse)?;
        let Some(kind) = self.quotas.kind().filter(|_| !attributes.ctx.dry_run) else { return Ok(()) };
        for charge in &charges {
            self.charge(attributes, kind, charge, new).await?;
        }
        Ok(())
    }

    /// What decides beside a claim of devices what it uses.
    async fn around(&self, namespace: &str, claim: &Value) -> Result<ClaimSurroundings, Status> {
        let trees = |objects: Arc<[Arc<Object>]>| objects.iter().map(|object| object.to_value()).collect();
        let classes: Vec<Value> = trees(self.classes.list("").await?);
        if !ClaimSurroundings::wants_pod_of(claim) {
            return Ok(ClaimSurroundings::new(&classes, vec![], vec![]));
        }
        let pods = trees(self.pods.list(namespace).await?);
        Ok(ClaimSurroundings::new(&classes, pods, trees(self.claims.list(namespace).await?)))
    }

    /// Adds to what is used, if it still fits. A quota that is gone meanwhile limits nothing.
    async fn charge(
        &self,
        attributes: &Attributes<'_>,
        kind: &Arc<Kind>,
        charge: &Charge,
        object: &Value,
    ) -> Result<(), Status> {
        let add = |current: Option<&Value>| {
            let mut quota = current.cloned().unwrap_or_default();
            let used = charge.apply(&quota).map_err(|why| forbidden(attributes, Some(object), &why))?;
            let used = to_value(&used).as_object().cloned().unwrap_or_default();
            *object_mut(&mut quota, "status.used") = Map::from_iter(used);
            Ok(quota)
        };
        let mut ctx = RequestContext::default();
        (ctx.field_manager, ctx.cause) = (FIELD_MANAGER.into(), attributes.ctx.cause);
        let (namespace, name) = (attributes.namespace, charge.quota.as_str());
        match self.registry.update(&ctx, kind, namespace, name, Part::Status, &add, &(), false).await {
            Err(status) if !status.is_not_found() => Err(status),
            _ => Ok(()),
        }
    }
}

impl AdmissionPlugin for ResourceQuota {
    fn handles(&self, attributes: &Attributes) -> bool {
        let is_create = match attributes.operation {
            Operation::Create => true,
            Operation::Update => false,
            Operation::Delete | Operation::Connect => return false,
        };
        let is_event = &*attributes.kind.plural == "events";
        let is_stored = attributes.kind.verbs.iter().any(|verb| &**verb == "list");
        !attributes.namespace.is_empty()
            && !is_event
            && is_stored
            && Evaluator::of(attributes.kind).handles(is_create, attributes.subresource)
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
        Box::pin(async move {
            match object {
                Some(new) if !text(new, "metadata.name").is_empty() => {
                    self.evaluate(attributes, new, old).await
                }
                _ => Ok(()),
            }
        })
    }
}
