//! DefaultIngressClass: an Ingress that names no class gets the default one
//! (`plugin/pkg/admission/network/defaultingressclass`).

use futures::future::BoxFuture;
use serde_json::Value;

use super::default_storage_class::newest;
use super::lister::Lister;
use super::{Attributes, Initializer, Operation, Plugin};
use crate::apimachinery::object::Object;
use crate::apimachinery::status::Status;
use crate::apis::tree::{annotation, at, is_set, set};

const CLASS: &str = "kubernetes.io/ingress.class";
const IS_DEFAULT: &str = "ingressclass.kubernetes.io/is-default-class";

/// Fills in `ingressClassName`.
pub struct DefaultIngressClass {
    classes: Lister,
}

impl DefaultIngressClass {
    /// Reads ingress classes.
    pub fn new(with: &Initializer) -> DefaultIngressClass {
        DefaultIngressClass { classes: Lister::new(with, "networking.k8s.io", "v1", "ingressclasses") }
    }
}

impl Plugin for DefaultIngressClass {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Create && attributes.writes("networking.k8s.io", "ingresses")
    }

    fn admit<'a>(
        &'a self,
        _attributes: &'a Attributes,
        object: Option<&'a mut Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let Some(ingress) = object else { return Ok(()) };
            let has_class = is_set(ingress, "spec.ingressClassName")
                || at(ingress, "metadata.annotations").get(CLASS).is_some();
            if has_class {
                return Ok(());
            }
            let classes = self.classes.list("").await?;
            if let Some(class) = newest(classes.iter().filter(|class| is_default(class))) {
                set(ingress, "spec.ingressClassName", class.metadata.name.as_str());
            }
            Ok(())
        })
    }
}

fn is_default(class: &Object) -> bool {
    annotation(&class.to_value(), IS_DEFAULT) == "true"
}
