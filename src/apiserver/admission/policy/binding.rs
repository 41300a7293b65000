//! Bindings: where a policy applies, with which parameters, and what a refusal does.

use serde::Deserialize;
use serde_json::Value;

use crate::admission::webhook::Criteria;
use apimachinery::labels::{BadSelector, LabelSelector, Selector};
use apimachinery::object::Object;
use apis::tree::{at, is_set, text, texts};

/// A ValidatingAdmissionPolicyBinding or MutatingAdmissionPolicyBinding.
pub(super) struct AdmissionPolicyBinding {
    /// Its name.
    pub name: String,
    /// The policy's name.
    pub policy: String,
    /// Which of the policy's requests; none is all of them.
    pub criteria: Option<Criteria>,
    /// The parameters.
    pub param_ref: Option<ParamRef>,
    /// `Deny`, `Warn`, `Audit`; of validating ones.
    pub actions: Vec<String>,
}

/// `admissionregistration.ParamRef`
pub(super) struct ParamRef {
    /// One object; or empty.
    pub name: String,
    /// Where it is; empty is the request's namespace.
    pub namespace: String,
    /// Several objects.
    pub selector: Option<Result<Selector, BadSelector>>,
    /// What is missing refuses the request.
    pub denies_when_missing: bool,
}

impl AdmissionPolicyBinding {
    /// Reads a binding of either kind.
    pub(super) fn new(object: &Object) -> AdmissionPolicyBinding {
        let tree = object.to_value();
        let spec = at(&tree, "spec");
        AdmissionPolicyBinding {
            name: object.metadata.name.clone(),
            policy: text(spec, "policyName").into(),
            criteria: is_set(spec, "matchResources")
                .then(|| Criteria::of_resources(at(spec, "matchResources"))),
            param_ref: is_set(spec, "paramRef").then(|| ParamRef::new(at(spec, "paramRef"))),
            actions: texts(spec, "validationActions").into_iter().map(str::to_owned).collect(),
        }
    }
}

impl ParamRef {
    fn new(tree: &Value) -> ParamRef {
        let selector = is_set(tree, "selector").then(|| {
            let selector = LabelSelector::deserialize(at(tree, "selector"));
            selector.map_err(|error| error.to_string())?.selector()
        });
        ParamRef {
            name: text(tree, "name").into(),
            namespace: text(tree, "namespace").into(),
            selector,
            denies_when_missing: text(tree, "parameterNotFoundAction") != "Allow",
        }
    }
}
