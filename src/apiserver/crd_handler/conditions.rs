//! The status of a definition: names, and what is true of it.

use serde_json::{Value, json};

use super::naming::{Taken, accept};
use apimachinery::time::Time;
use apis::apiextensions::approval::{Approval, approval_of, is_protected};
use apis::apiextensions::custom_resource_definition::set_condition;
use apis::apiextensions::kinds::accepted_names;
use apis::apiextensions::view::CustomResourceDefinition;

/// The definition with the status that it ought to have, `taken` being the names of the others.
pub(super) fn with_status(crd: &Value, taken: &Taken, now: Time) -> Value {
    let mut new = crd.clone();
    let view = CustomResourceDefinition::read(crd);
    let (names, condition) = accept(&view, taken);
    let all_accepted = condition["status"] == "True";
    new["status"]["acceptedNames"] = accepted_names(&names);
    set_condition(&mut new, condition, now);
    if all_accepted && !view.is("Established") {
        let condition = json!({"type": "Established", "status": "True", "reason": "InitialNamesAccepted",
            "message": "the initial names have been accepted"});
        set_condition(&mut new, condition, now);
    } else if !all_accepted && !view.is("Established") {
        let condition = json!({"type": "Established", "status": "False", "reason": "NotAccepted",
            "message": "not all names are accepted"});
        set_condition(&mut new, condition, now);
    }
    if is_protected(&view.spec.group) {
        let annotation = &crd["metadata"]["annotations"]["api-approved.kubernetes.io"];
        set_condition(&mut new, approved(annotation.as_str()), now);
    }
    new
}

fn approved(annotation: Option<&str>) -> Value {
    let (status, reason, message) = match approval_of(annotation) {
        Approval::Approved(text) => ("True", "ApprovedAnnotation", format!("approved in {text}")),
        Approval::Unapproved(text) => ("False", "UnapprovedAnnotation", format!("not approved: {text:?}")),
        Approval::Missing => ("False", "MissingAnnotation", Approval::missing_text().into()),
        Approval::Invalid(text) => ("False", "InvalidAnnotation", text),
    };
    json!({"type": "KubernetesAPIApprovalPolicyConformant", "status": status, "reason": reason,
        "message": message})
}
