//! `pods/eviction` (`pkg/registry/core/pod/storage.EvictionREST`): a delete that respects disruption budgets.

use std::sync::Arc;

use serde_json::{Value, json};

use super::deletion::{check_preconditions, follow_revision};
use super::metadata::text;
use super::store::Part;
use super::{Registry, Validating};
use crate::request::RequestContext;
use apimachinery::gvk::GroupResource;
use apimachinery::labels::LabelSelector;
use apimachinery::object::Object;
use apimachinery::options::{DeleteOptions, ListOptions};
use apimachinery::status::{Status, StatusCause};
use apimachinery::time::rfc3339;
use apis::kind::Kind;

/// Evictions that the disruption controller has not noticed yet; beyond it no more are granted.
const MAX_DISRUPTED_PODS: usize = 2000;
const VIOLATION: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
/// Seconds after which a budget that is behind may have caught up.
const RETRY_SECONDS: u32 = 10;
/// How often a pod that keeps changing is looked at anew; the last conflict is then the answer
/// (`EvictionsRetry`).
const ATTEMPTS: usize = 20;

/// Whether a budget stands in the way.
enum EvictionVerdict {
    /// The pod may go, whatever happens to it meanwhile.
    Granted,
    /// The pod may go as long as it is as it was: it does not count as healthy now.
    GrantedAsItIs,
}

impl Registry {
    /// Deletes a pod unless its disruption budget forbids. `eviction` is a `policy/v1` Eviction.
    ///
    /// # Errors
    /// 404; 429 when the budget is spent; 500 when there are several.
    pub async fn evict(
        &self,
        ctx: &RequestContext,
        namespace: &str,
        name: &str,
        eviction: &Value,
        validating: &dyn Validating,
    ) -> Result<(), Status> {
        if text(eviction, "name") != name {
            return Err(Status::bad_request("name in URL does not match name in Eviction object"));
        }
        let mut options = match &eviction["deleteOptions"] {
            Value::Null => DeleteOptions::default(),
            given => serde_json::from_value(given.clone())
                .map_err(|error| Status::bad_request(format!("invalid deleteOptions: {error}")))?,
        };
        validating.validate(Some(eviction), None).await?;
        let pods = self.kind("", "v1", "pods")?;
        let given = options.preconditions.as_ref().and_then(|given| given.resource_version.clone());
        let mut attempt = 1;
        loop {
            let pod = self.get(&pods, namespace, name, None).await?;
            let (verdict, budget) = self.judge(ctx, &pod, !options.dry_run.is_empty()).await?;
            if matches!(verdict, EvictionVerdict::GrantedAsItIs) && given.is_none() {
                let preconditions = options.preconditions.get_or_insert_default();
                preconditions.resource_version = Some(pod.metadata.resource_version.to_string());
            }
            match self.tell_and_delete(ctx, &pods, namespace, name, options.clone()).await {
                Err(status) if status.is_conflict() && given.is_none() => match (verdict, budget) {
                    // It has become healthy: the budget has to be asked again, by the client.
                    (EvictionVerdict::GrantedAsItIs, Some(budget)) => return Err(still_processed(&budget)),
                    (EvictionVerdict::GrantedAsItIs, None) if attempt < ATTEMPTS => attempt += 1,
                    (EvictionVerdict::GrantedAsItIs, None) => return Err(status),
                    (EvictionVerdict::Granted, _) => return Err(status),
                },
                result => return result,
            }
        }
    }

    /// Lets a pod go after it has been told why (`addConditionAndDeletePod`).
    async fn tell_and_delete(
        &self,
        ctx: &RequestContext,
        pods: &Arc<Kind>,
        namespace: &str,
        name: &str,
        mut options: DeleteOptions,
    ) -> Result<(), Status> {
        if !ctx.dry_run && options.dry_run.is_empty() {
            let now = rfc3339(self.0.clock.now());
            let tell = |current: Option<&Value>| {
                let mut pod = current.cloned().unwrap_or_default();
                check_preconditions(pods, &pod, &options)?;
                set_disruption_target(&mut pod, &now);
                Ok(pod)
            };
            let told = self.update(ctx, pods, namespace, name, Part::Status, &tell, &(), false).await;
            let (pod, _) = told?;
            follow_revision(&mut options, &pod);
        }
        self.delete(ctx, pods, namespace, name, &options, &()).await.map(|_| ())
    }

    /// Says whether a pod may go, and takes it from its budget.
    async fn judge(
        &self,
        ctx: &RequestContext,
        pod: &Object,
        dry_run: bool,
    ) -> Result<(EvictionVerdict, Option<String>), Status> {
        let tree = pod.to_value();
        let phase = tree["status"]["phase"].as_str().unwrap_or_default();
        if pod.is_deleting() || matches!(phase, "Succeeded" | "Failed") {
            return Ok((EvictionVerdict::Granted, None));
        }
        if phase == "Pending" {
            return Ok((EvictionVerdict::GrantedAsItIs, None));
        }
        let Some(budget) = self.budget_of(pod).await? else { return Ok((EvictionVerdict::Granted, None)) };
        let name = budget.metadata.name.clone();
        if !is_ready(&tree) && lets_unready_go(&budget.to_value()) {
            return Ok((EvictionVerdict::GrantedAsItIs, Some(name)));
        }
        self.take_from_budget(ctx, &budget, &pod.metadata.name, dry_run || ctx.dry_run).await?;
        Ok((EvictionVerdict::Granted, Some(name)))
    }

    /// The one budget that selects a pod.
    async fn budget_of(&self, pod: &Object) -> Result<Option<Arc<Object>>, Status> {
        let kind = self.kind("policy", "v1", "poddisruptionbudgets")?;
        let list = self.list(&kind, &pod.metadata.namespace, &ListOptions::default()).await?;
        let selects = |budget: &&Arc<Object>| {
            let selector: LabelSelector =
                serde_json::from_value(budget.to_value()["spec"]["selector"].take()).unwrap_or_default();
            let is_empty = selector.match_labels.is_empty() && selector.match_expressions.is_empty();
            // An empty selector selects nothing here, rather than everything.
            !is_empty && selector.selector().is_ok_and(|selector| selector.matches(&pod.metadata.labels))
        };
        let mut found = list.items.iter().filter(selects);
        let (budget, another) = (found.next().cloned(), found.next());
        if another.is_some() {
            let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not \
                           support.";
            return Err(Status::failure(500, "", message));
        }
        Ok(budget)
    }

    /// `checkAndDecrement`.
    async fn take_from_budget(
        &self,
        ctx: &RequestContext,
        budget: &Object,
        pod: &str,
        dry_run: bool,
    ) -> Result<(), Status> {
        let kind = self.kind("policy", "v1", "poddisruptionbudgets")?;
        let now = rfc3339(self.0.clock.now());
        let take = |current: Option<&Value>| {
            let mut tree = current.cloned().unwrap_or_default();
            check_and_decrement(&mut tree, pod, &now)?;
            Ok(tree)
        };
        let (namespace, name) = (&budget.metadata.namespace, &budget.metadata.name);
        if dry_run {
            return take(Some(&budget.to_value())).map(|_| ());
        }
        self.update(ctx, &kind, namespace, name, Part::Status, &take, &(), false).await.map(|_| ())
    }
}

fn check_and_decrement(budget: &mut Value, pod: &str, now: &str) -> Result<(), Status> {
    let name = text(budget, "name").to_owned();
    let status = &budget["status"];
    let count = |field: &str| status[field].as_i64().unwrap_or_default();
    if count("observedGeneration") < budget["metadata"]["generation"].as_i64().unwrap_or_default() {
        return Err(still_processed(&name));
    }
    let allowed = count("disruptionsAllowed");
    let resource = GroupResource::new("policy", "poddisruptionbudget");
    if allowed < 0 {
        return Err(Status::forbidden(&resource, &name, "pdb disruptions allowed is negative"));
    }
    if status["disruptedPods"].as_object().is_some_and(|pods| pods.len() > MAX_DISRUPTED_PODS) {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(Status::forbidden(&resource, &name, why));
    }
    if allowed == 0 {
        let (desired, current) = (count("desiredHealthy"), count("currentHealthy"));
        let message =
            format!("The disruption budget {name} needs {desired} healthy pods and has {current} currently");
        return Err(violation(message, 0));
    }
    budget["status"]["disruptionsAllowed"] = json!(allowed - 1);
    budget["status"]["disruptedPods"][pod] = json!(now);
    if allowed == 1 {
        set_insufficient(budget, now);
    }
    Ok(())
}

/// The condition `DisruptionTarget`, by which its owner knows that the pod has not failed of itself.
fn set_disruption_target(pod: &mut Value, now: &str) {
    let mut condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": now});
    let conditions = &mut pod["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    match conditions.iter_mut().find(|found| found["type"] == condition["type"]) {
        Some(found) => {
            if found["status"] == condition["status"] {
                condition["lastTransitionTime"] = found["lastTransitionTime"].clone();
            }
            *found = condition;
        }
        None => conditions.push(condition),
    }
}

/// `UpdateDisruptionAllowedCondition` once nothing is allowed any more.
fn set_insufficient(budget: &mut Value, now: &str) {
    let generation = budget["status"]["observedGeneration"].clone();
    let condition = json!({"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods",
        "message": "",
        "lastTransitionTime": now, "observedGeneration": generation});
    let conditions = &mut budget["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    match conditions.iter_mut().find(|condition| condition["type"] == "DisruptionAllowed") {
        Some(found) if found["status"] == "False" => (),
        Some(found) => *found = condition,
        None => conditions.push(condition),
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// A pod that is not ready counts for nothing, where the budget says so or is kept without it.
fn lets_unready_go(budget: &Value) -> bool {
    let count = |field: &str| budget["status"][field].as_i64().unwrap_or_default();
    budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
        || count("currentHealthy") >= count("desiredHealthy") && count("desiredHealthy") > 0
}

fn still_processed(budget: &str) -> Status {
    violation(
        format!("The disruption budget {budget} is still being processed by the server."),
        RETRY_SECONDS,
    )
}

fn violation(message: String, retry_seconds: u32) -> Status {
    let mut status = Status::too_many_requests(VIOLATION, retry_seconds);
    if let Some(details) = &mut status.details {
        details.causes.push(StatusCause { reason: "DisruptionBudget".into(), message, field: String::new() });
    }
    status
}
