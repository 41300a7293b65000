//! `/statusz` and `/flagz` (`component-base/zpages`), as the gates `ComponentStatusz` and `ComponentFlagz`
//! say.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;

use apimachinery::feature_gates::FeatureGates;
use apimachinery::wire::{ApiResponse, text_response};
use clock::Clock;
use component_base::zpages;

const COMPONENT: &str = "kube-apiserver";

/// Which flags a component has, and what they are: worked out when somebody asks.
pub type ShownFlags = Arc<dyn Fn() -> BTreeMap<String, String> + Send + Sync>;

/// What the pages show, and which there are.
#[derive(Clone)]
pub struct ZPages {
    has_status: bool,
    /// None where nobody says which flags there are, or the gate is off.
    flags: Option<ShownFlags>,
}

impl ZPages {
    /// As the gates say.
    pub fn new(gates: &FeatureGates, flags: Option<ShownFlags>) -> ZPages {
        let flags = flags.filter(|_| gates.enabled("ComponentFlagz"));
        ZPages { has_status: gates.enabled("ComponentStatusz"), flags }
    }

    /// The page of that name, if there is one.
    pub(super) fn respond(&self, page: &str, clock: &Clock, version: &str) -> Option<ApiResponse> {
        let text = match page {
            "statusz" if self.has_status => {
                let up = clock.elapsed();
                let started = (clock.now() - up).format(zpages::UNIX_DATE).to_string();
                let paths = ["/healthz", "/livez", "/metrics", "/readyz", "/version"];
                zpages::statusz(COMPONENT, &started, up, version, &paths)
            }
            "flagz" => zpages::flagz(COMPONENT, &self.flags.as_ref()?()),
            _ => return None,
        };
        Some(text_response(StatusCode::OK, text))
    }

    /// Which of the two there are.
    pub(super) fn paths(&self) -> Vec<String> {
        let status = self.has_status.then(|| "/statusz".to_owned());
        status.into_iter().chain(self.flags.as_ref().map(|_| "/flagz".to_owned())).collect()
    }
}
