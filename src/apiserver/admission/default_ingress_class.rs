//! DefaultIngressClass: an Ingress that names no class gets the default one
//! (`plugin/pkg/admission/network/defaultingressclass`).

use futures::future::BoxFuture;
use serde_json::Value;

use super::default_class::DefaultClass;
use super::{AdmissionPlugin, Attributes, Initializer, Operation};
use apimachinery::status::Status;

const MARKS: &[&str] = &["ingressclass.kubernetes.io/is-default-class"];

/// Fills in `ingressClassName`.
pub(super) struct DefaultIngressClass(DefaultClass);

impl DefaultIngressClass {
    /// Reads ingress classes.
    pub(super) fn new(with: &Initializer) -> DefaultIngressClass {
        let names = ("spec.ingressClassName", "kubernetes.io/ingress.class");
        DefaultIngressClass(DefaultClass::new(with, ("networking.k8s.io", "ingressclasses"), MARKS, names))
    }
}

impl AdmissionPlugin for DefaultIngressClass {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Create && attributes.writes("networking.k8s.io", "ingresses")
    }

    fn validates(&self) -> bool {
        false
    }

    fn admit<'a>(
        &'a self,
        _attributes: &'a Attributes,
        object: Option<&'a mut Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            match object {
                Some(object) => self.0.fill_in(object).await,
                None => Ok(()),
            }
        })
    }
}
