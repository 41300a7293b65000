//! Whose a slice is.

use crate::controller::Key;
use apimachinery::object::{Object, object_key};

/// The service that a slice belongs to.
pub(super) const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// Who sees to it.
pub(super) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// This controller.
pub(super) const CONTROLLER: &str = "endpointslice-controller.k8s.io";

/// The service whose slice this is, if the slice is ours.
pub(super) fn service_key(slice: &Object) -> Option<Key> {
    let labels = &slice.metadata.labels;
    let is_ours = labels.get(MANAGED_BY).is_some_and(|manager| manager == CONTROLLER);
    let service = labels.get(SERVICE_NAME).filter(|_| is_ours)?;
    Some(object_key(&slice.metadata.namespace, service))
}
