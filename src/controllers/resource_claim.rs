//! The resource claim controller (`pkg/controller/resourceclaim`): claims are made from the templates that
//! pods name, devices are given back when nobody uses them, and claims that were made for a pod go when it is
//! done.
//!
//! A key is `pod:namespace/name` or `claim:namespace/name`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use super::controller_ref::controller_reference;
use super::resource_claim_counts::{ClaimCounts, POD_CLAIM};
use apimachinery::labels::Selector;
use apimachinery::object::{Object, split_key};
use apimachinery::options::{DeleteOptions, PatchType, Preconditions};
use apimachinery::status::Status;
use apis::core::pod::PODS;
use apis::resource::resource_claim::{FINALIZER, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS};
use apis::tree::{is_set, items, remove, remove_finalizers, set, text};
use apis::views::pod::Pod;
use apis::views::pod_volumes::PodResourceClaim;
use client_go::ComponentContext;
use client_go::lister::Lister;
use sync::Mutex;

const OF_POD: &str = "pod:";
const OF_CLAIM: &str = "claim:";

/// Makes and ends claims.
pub(crate) struct ResourceClaimController {
    pods: Lister,
    claims: Lister,
    templates: Lister,
    counts: Arc<ClaimCounts>,
    /// The names of claims that were made and that the cache does not know yet, by pod and by what the pod
    /// calls them (upstream's `claimCache`). Bound: the claims of pods that are there.
    made: Mutex<BTreeMap<String, BTreeMap<String, String>>>,
}

impl ResourceClaimController {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> ResourceClaimController {
        let [pods, claims, templates] = [&PODS, &RESOURCE_CLAIMS, &RESOURCE_CLAIM_TEMPLATES]
            .map(|kind| ctx.informers.informer(kind).lister());
        let counts = Arc::new(ClaimCounts::new(claims.clone()));
        ctx.metrics.add("resourceclaim", counts.clone());
        ResourceClaimController { pods, claims, templates, counts, made: Mutex::default() }
    }

    /// `syncPod`
    async fn sync_pod(&self, ctx: &Reconcile, pod: &Arc<Object>) -> Result<(), Status> {
        let view = pod.view::<Pod>();
        if pod.is_deleting() || is_done(&view) {
            return Ok(());
        }
        let mut made = Vec::new();
        for claim in &view.spec.resource_claims {
            match self.made_claim(ctx, pod, &view, claim).await {
                Ok(Some(name)) => made.push(json!({"name": claim.name, "resourceClaimName": name})),
                Ok(None) => {}
                Err(status) => {
                    let message = format!("PodResourceClaim {}: {}", claim.name, status.message);
                    ctx.event(&PODS, pod, "Warning", "FailedResourceClaimCreation", message);
                    return Err(status);
                }
            }
        }
        if made.is_empty() {
            return Ok(());
        }
        let patch = json!({"metadata": {"uid": pod.metadata.uid}, "status": {"resourceClaimStatuses": made}});
        let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
        let patched =
            ctx.client.patch_status(&PODS, namespace, name, PatchType::StrategicMerge, &patch).await;
        patched.map(drop)
    }

    /// The name of a claim that is made from a template; none where the pod's status says it, or nothing is
    /// to be made.
    async fn made_claim(
        &self,
        ctx: &Reconcile,
        pod: &Object,
        view: &Pod,
        of: &PodResourceClaim,
    ) -> Result<Option<String>, Status> {
        let Some(template_name) = &of.resource_claim_template_name else { return Ok(None) };
        let namespace = &pod.metadata.namespace;
        let known = view.status.resource_claim_statuses.iter().find(|status| status.name == of.name);
        if let Some(name) = known.and_then(|known| known.resource_claim_name.as_ref())
            && self.claims.get(namespace, name).is_some()
        {
            self.forget(pod, of);
            return Ok(None);
        }
        // What was made before the status could be written is found again.
        if let Some(claim) = self.claims_of(pod).find(|claim| claim_of_pod(claim) == of.name) {
            self.forget(pod, of);
            return Ok(Some(claim.metadata.name.clone()));
        }
        // The cache may not know yet what was made a moment ago: a second claim would take the first away.
        let said = known.and_then(|known| known.resource_claim_name.clone());
        if let Some(name) = self.remembered(pod, of).or_else(|| said.clone())
            && self.is_there(ctx, pod, &name).await?
        {
            return Ok(Some(name).filter(|name| said.as_ref() != Some(name)));
        }
        let Some(template) = self.templates.get(namespace, template_name) else {
            let message = format!(
                "resource claim template {template_name:?}: resourceclaimtemplate.resource.k8s.io \
                 {template_name:?} not found"
            );
            return Err(Status::failure(404, "NotFound", message));
        };
        let new = new_claim(pod, of, &template);
        let created = ctx.client.create(&RESOURCE_CLAIMS, namespace, new.clone()).await;
        self.counts.made(created.is_ok(), &new);
        let failed = |mut status: Status| {
            status.message = format!("create ResourceClaim : {}", status.message);
            status
        };
        let name = created.map_err(failed)?.metadata.name.clone();
        self.made.lock().entry(pod.key()).or_default().insert(of.name.clone(), name.clone());
        Ok(Some(name))
    }

    fn remembered(&self, pod: &Object, of: &PodResourceClaim) -> Option<String> {
        self.made.lock().get(pod.shared_key().as_ref())?.get(&of.name).cloned()
    }

    fn forget(&self, pod: &Object, of: &PodResourceClaim) {
        let mut made = self.made.lock();
        let Some(of_pod) = made.get_mut(pod.shared_key().as_ref()) else { return };
        of_pod.remove(&of.name);
        if of_pod.is_empty() {
            made.remove(pod.shared_key().as_ref());
        }
    }

    /// Whether there is a claim of this pod of that name, whatever the cache knows.
    async fn is_there(&self, ctx: &Reconcile, pod: &Object, name: &str) -> Result<bool, Status> {
        let found = ctx.client.find(&RESOURCE_CLAIMS, &pod.metadata.namespace, name).await?;
        let is_its = |claim: &Object| claim.controller().is_some_and(|owner| *owner.uid == *pod.metadata.uid);
        Ok(found.is_some_and(|claim| is_its(&claim)))
    }

    fn claims_of<'a>(&'a self, pod: &'a Object) -> impl Iterator<Item = Arc<Object>> + 'a {
        let claims = self.claims.list(&pod.metadata.namespace, &Selector::everything());
        let is_own =
            |claim: &Arc<Object>| claim.controller().is_some_and(|owner| *owner.uid == *pod.metadata.uid);
        claims.into_iter().filter(move |claim| is_own(claim))
    }

    /// `syncClaim`: users that are gone or done are forgotten; without users the devices are given back.
    async fn sync_claim(&self, ctx: &Reconcile, claim: &Arc<Object>) -> Result<(), Status> {
        let mut tree = claim.to_value();
        let (namespace, name) = (&claim.metadata.namespace, &claim.metadata.name);
        let reserved = items(&tree, "status.reservedFor").to_vec();
        let mut users = Vec::new();
        for user in &reserved {
            if self.is_in_use(ctx, namespace, user).await? {
                users.push(user.clone());
            }
        }
        let is_allocated = is_set(&tree, "status.allocation");
        let gives_back = users.is_empty() && is_allocated && (!reserved.is_empty() || claim.is_deleting());
        if users.len() != reserved.len() || gives_back {
            if users.is_empty() {
                remove(&mut tree, "status.reservedFor");
            } else {
                set(&mut tree, "status.reservedFor", users.clone());
            }
            if gives_back {
                remove(&mut tree, "status.allocation");
                remove(&mut tree, "status.devices");
            }
            tree = ctx.client.update_status(&RESOURCE_CLAIMS, namespace, name, tree).await?.to_value();
        }
        if !is_set(&tree, "status.allocation") {
            self.let_go(ctx, claim, tree).await?;
        }
        if !self.owner_is_done(claim) || !users.is_empty() || claim.is_deleting() {
            return Ok(());
        }
        let uid = Some(claim.metadata.uid.clone());
        let preconditions = Some(Preconditions { uid, resource_version: None });
        let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
        let deleted = ctx.client.delete(&RESOURCE_CLAIMS, namespace, name, &options).await;
        deleted.or_else(|status| if status.is_not_found() { Ok(()) } else { Err(status) })
    }

    /// Without devices nothing keeps a claim.
    async fn let_go(&self, ctx: &Reconcile, claim: &Object, mut tree: Value) -> Result<(), Status> {
        if !remove_finalizers(&mut tree, &[FINALIZER]) {
            return Ok(());
        }
        let (namespace, name) = (&claim.metadata.namespace, &claim.metadata.name);
        let written = ctx.client.update(&RESOURCE_CLAIMS, namespace, name, tree).await;
        written.map(drop).or_else(|status| if status.is_not_found() { Ok(()) } else { Err(status) })
    }

    /// Users other than pods are nobody's business here. A pod that the cache does not know may be too new
    /// for it: it is asked for.
    async fn is_in_use(&self, ctx: &Reconcile, namespace: &str, user: &Value) -> Result<bool, Status> {
        if text(user, "resource") != "pods" {
            return Ok(true);
        }
        let name = text(user, "name");
        let pod = match self.pods.get(namespace, name) {
            Some(pod) => pod,
            None => match ctx.client.find(&PODS, namespace, name).await? {
                Some(pod) => pod,
                None => return Ok(false),
            },
        };
        Ok(pod.metadata.uid == text(user, "uid") && !is_done(&pod.view::<Pod>()))
    }

    /// Whether the pod that the claim was made for will never use it again.
    fn owner_is_done(&self, claim: &Object) -> bool {
        let Some(owner) = claim.controller().filter(|owner| *owner.kind == *PODS.kind) else { return false };
        let pod = self.pods.get(&claim.metadata.namespace, &owner.name);
        pod.is_some_and(|pod| *pod.metadata.uid == *owner.uid && is_done(&pod.view::<Pod>()))
    }
}

/// A pod that has ended, or that goes before it was placed.
fn is_done(pod: &Pod) -> bool {
    pod.is_terminal()
}

fn claim_of_pod(claim: &Object) -> String {
    apis::tree::annotation(&claim.to_value(), POD_CLAIM).to_owned()
}

fn new_claim(pod: &Object, of: &PodResourceClaim, template: &Object) -> Value {
    let template = template.to_value();
    let mut annotations =
        template["spec"]["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    annotations.insert(POD_CLAIM.to_owned(), of.name.clone().into());
    let mut claim = json!({
        "metadata": {
            "generateName": format!("{}-{}-", pod.metadata.name, of.name),
            "annotations": annotations,
            "ownerReferences": [controller_reference(pod, &PODS)],
        },
        "spec": template["spec"]["spec"],
    });
    if let Some(labels) = template["spec"]["metadata"].get("labels") {
        claim["metadata"]["labels"] = labels.clone();
    }
    claim
}

impl Controller for ResourceClaimController {
    const NAME: &'static str = "resource_claim";
    const EVENT_SOURCE: &'static str = "resource_claim";
    const SERVICE_ACCOUNT: &'static str = "resource-claim-controller";

    fn watches(&self) -> Watches {
        let claims = self.claims.clone();
        let pods = move |change: &Change<'_>, enqueue: &Enqueue| {
            let pod = change.object();
            // Most pods have none: those are not read, because what was read of an object is kept with it.
            // This stands in `resourceClaims` and in `extendedResourceClaimStatus`.
            if !pod.mentions("esourceClaim") {
                return;
            }
            enqueue.now(format!("{OF_POD}{}", pod.key()));
            if pod.is_deleting() || matches!(change, Change::Deleted(_)) || pod.view::<Pod>().is_terminal() {
                let all = claims.list(&pod.metadata.namespace, &Selector::everything());
                all.iter().for_each(|claim| enqueue.now(format!("{OF_CLAIM}{}", claim.key())));
            }
        };
        let of_claims = |change: &Change<'_>, enqueue: &Enqueue| {
            let claim = change.object();
            enqueue.now(format!("{OF_CLAIM}{}", claim.key()));
            // A claim that somebody took away is made again.
            if let (Change::Deleted(_), Some(owner)) = (change, claim.controller()) {
                enqueue.now(format!("{OF_POD}{}/{}", claim.metadata.namespace, owner.name));
            }
        };
        // Pods wait for a template that comes later: their keys are tried again until it is there.
        Watches::none().maps(&PODS, pods).maps(&RESOURCE_CLAIMS, of_claims)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let key: &str = key;
        if let Some(pod) = key.strip_prefix(OF_POD) {
            let (namespace, name) = split_key(pod);
            match self.pods.get(namespace, name) {
                Some(pod) => self.sync_pod(ctx, &pod).await?,
                None => drop(self.made.lock().remove(pod)),
            }
        }
        if let Some(claim) = key.strip_prefix(OF_CLAIM) {
            let (namespace, name) = split_key(claim);
            if let Some(claim) = self.claims.get(namespace, name) {
                self.sync_claim(ctx, &claim).await?;
            }
        }
        Ok(Action::Done)
    }
}
