//! The addresses of pods that Stages of kwok's kind play, of which the kubelet keeps its hands off.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::container_runtime::pod_addresses::PodAddresses;
use sync::Mutex;

/// The addresses of the pods that stages play.
pub(crate) struct PlayedPods {
    addresses: Arc<PodAddresses>,
    /// By uid. Bound: the pods of the node; one that is gone gives its address back.
    given: Mutex<BTreeMap<Arc<str>, String>>,
}

impl PlayedPods {
    pub(crate) fn new(addresses: Arc<PodAddresses>) -> PlayedPods {
        PlayedPods { addresses, given: Mutex::default() }
    }

    /// The address of a pod: the one that it says that it has, if nobody else has that, or a free one.
    pub(crate) fn give(&self, uid: &str, current: &str) -> Option<String> {
        let mut given = self.given.lock();
        if let Some(address) = given.get(uid) {
            return Some(address.clone());
        }
        let uid: Arc<str> = uid.into();
        let is_free = !current.is_empty() && self.addresses.owner(current).is_none_or(|owner| owner == uid);
        let address = if is_free {
            self.addresses.reserve(current, &uid);
            current.to_owned()
        } else {
            self.addresses.allocate_one(&uid)?
        };
        given.insert(uid, address.clone());
        Some(address)
    }

    /// The pod is gone.
    pub(crate) fn release(&self, uid: &str) {
        if let Some(address) = self.given.lock().remove(uid) {
            self.addresses.release(&address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_played_pod_has_one_address_until_it_is_gone() {
        let played = PlayedPods::new(Arc::new(PodAddresses::new(&["10.244.1.0/29"]).unwrap()));
        let first = played.give("a", "").unwrap();
        assert_eq!(played.give("a", "").as_deref(), Some(&*first));
        // Another's address it does not get.
        assert_ne!(played.give("b", &first).unwrap(), first);
        assert_eq!(played.give("c", "10.244.1.6").as_deref(), Some("10.244.1.6"));
        played.release("a");
        assert_eq!(played.give("d", &first).as_deref(), Some(&*first));
    }
}
