//! `OwnAdmission`: admission plugins that whoever runs the cluster gives it in Rust.

use std::fmt;
use std::sync::Arc;

use super::plugin::{AdmissionPlugin, Initializer};

/// Plugins of one's own. They are asked behind all others but ResourceQuota, in both phases: they see what
/// webhooks have made of an object, and what they refuse is not counted. Bound: one for each call of
/// [`OwnAdmission::with`].
#[derive(Clone, Default)]
pub struct OwnAdmission(Vec<OwnAdmissionPlugin>);

type MakesAdmissionPlugin = dyn Fn(&Initializer) -> Box<dyn AdmissionPlugin> + Send + Sync;

#[derive(Clone)]
struct OwnAdmissionPlugin {
    name: &'static str,
    make: Arc<MakesAdmissionPlugin>,
}

impl OwnAdmission {
    /// None yet.
    pub fn new() -> OwnAdmission {
        OwnAdmission::default()
    }

    /// And this one, as it is called in metrics and in the record.
    #[must_use]
    pub fn with<P: AdmissionPlugin + 'static>(
        mut self,
        name: &'static str,
        make: impl Fn(&Initializer) -> P + Send + Sync + 'static,
    ) -> OwnAdmission {
        let make = Arc::new(move |with: &Initializer| Box::new(make(with)) as Box<dyn AdmissionPlugin>);
        self.0.push(OwnAdmissionPlugin { name, make });
        self
    }

    /// What they are called.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|own| own.name)
    }

    /// Makes them.
    pub(super) fn make(&self, with: &Initializer) -> Vec<(&'static str, Box<dyn AdmissionPlugin>)> {
        self.0.iter().map(|own| (own.name, (own.make)(with))).collect()
    }
}

impl fmt::Debug for OwnAdmission {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.names()).finish()
    }
}
