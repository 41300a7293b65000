//! LimitRanger: what a LimitRange of the namespace fills in and refuses
//! (`plugin/pkg/admission/limitranger`).

mod constraints;
mod defaults;

use futures::future::BoxFuture;
use serde_json::Value;

use super::lister::AdmissionLister;
use super::{AdmissionPlugin, Attributes, Initializer, Operation, forbidden};
use apimachinery::status::Status;
use apis::tree::is_set;

/// Fills in containers' requests and limits, and compares pods and claims with the bounds.
pub(super) struct LimitRanger {
    ranges: AdmissionLister,
}

impl LimitRanger {
    /// Reads limit ranges.
    pub(super) fn new(with: &Initializer) -> LimitRanger {
        LimitRanger { ranges: AdmissionLister::new(with, "", "v1", "limitranges") }
    }
}

impl AdmissionPlugin for LimitRanger {
    fn handles(&self, attributes: &Attributes) -> bool {
        let is_core = attributes.kind.group_version.group.is_empty();
        match (&*attributes.kind.plural, attributes.operation, attributes.subresource) {
            // A pod's containers do not change on an update, other than by a resize.
            ("pods", Operation::Create, "") | ("pods", Operation::Update, "resize") => is_core,
            ("persistentvolumeclaims", Operation::Create | Operation::Update, "") => is_core,
            _ => false,
        }
    }

    fn admit<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a mut Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let Some(pod) = object.filter(|_| &*attributes.kind.plural == "pods" && !is_leaving(old)) else {
                return Ok(());
            };
            for range in self.ranges.list(attributes.namespace).await?.iter() {
                defaults::fill_in(&range.to_value(), pod);
            }
            Ok(())
        })
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let Some(object) = object.filter(|_| !is_leaving(old)) else { return Ok(()) };
            for range in self.ranges.list(attributes.namespace).await?.iter() {
                let range = range.to_value();
                let errors = match &*attributes.kind.plural {
                    "pods" => constraints::of_pod(&range, object),
                    _ => constraints::of_claim(&range, object),
                };
                if let Some(why) = aggregate(&errors) {
                    return Err(forbidden(attributes, Some(object), &why));
                }
            }
            Ok(())
        })
    }
}

fn is_leaving(old: Option<&Value>) -> bool {
    old.is_some_and(|old| is_set(old, "metadata.deletionTimestamp"))
}

/// Several errors as one (`utilerrors.NewAggregate`): each once.
fn aggregate(errors: &[String]) -> Option<String> {
    let mut unique: Vec<&str> = Vec::new();
    for error in errors {
        if !unique.contains(&error.as_str()) {
            unique.push(error);
        }
    }
    match unique.as_slice() {
        [] => None,
        [one] => Some((*one).to_owned()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}
