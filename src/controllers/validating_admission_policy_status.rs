//! `status` of ValidatingAdmissionPolicies: which expressions ask for fields that are not there
//! (`pkg/controller/validatingadmissionpolicystatus`).

use std::sync::Arc;

use serde_json::{Value, json};

use super::controller::{Action, Controller, Key, Reconcile, Watches};
use apimachinery::schema::Schemas;
use apimachinery::status::Status;
use apis::admissionregistration::type_checking::check;
use apis::admissionregistration::validating_admission_policy::VALIDATING_ADMISSION_POLICIES;
use apis::scheme::Scheme;
use client_go::component::ComponentContext;
use client_go::lister::Lister;

/// Checks each generation of each policy once.
pub(crate) struct ValidatingAdmissionPolicyStatusController {
    policies: Lister,
    scheme: Arc<Scheme>,
}

impl ValidatingAdmissionPolicyStatusController {
    /// With its informer.
    pub(crate) fn new(
        ctx: &ComponentContext,
        scheme: Arc<Scheme>,
    ) -> ValidatingAdmissionPolicyStatusController {
        let policies = ctx.informers.informer(&VALIDATING_ADMISSION_POLICIES).lister();
        ValidatingAdmissionPolicyStatusController { policies, scheme }
    }
}

impl Controller for ValidatingAdmissionPolicyStatusController {
    const NAME: &'static str = "validatingadmissionpolicy-status";
    const EVENT_SOURCE: &'static str = "validatingadmissionpolicy-status-controller";
    const SERVICE_ACCOUNT: &'static str = "validatingadmissionpolicy-status-controller";

    fn watches(&self) -> Watches {
        Watches::of(&VALIDATING_ADMISSION_POLICIES)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let Some(policy) = self.policies.get("", key) else { return Ok(Action::Done) };
        let mut tree = policy.to_value();
        let generation = policy.metadata.generation;
        if tree["status"]["observedGeneration"] == json!(generation) {
            return Ok(Action::Done);
        }
        let warnings = check(&tree["spec"], &self.scheme, &Schemas::builtin());
        let type_checking =
            if warnings.is_empty() { json!({}) } else { json!({"expressionWarnings": warnings}) };
        if !tree["status"].is_object() {
            tree["status"] = Value::Object(Default::default());
        }
        tree["status"]["observedGeneration"] = generation.into();
        tree["status"]["typeChecking"] = type_checking;
        ctx.client.update_status(&VALIDATING_ADMISSION_POLICIES, "", key, tree).await?;
        Ok(Action::Done)
    }
}
