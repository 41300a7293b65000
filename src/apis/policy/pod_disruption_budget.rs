//! PodDisruptionBudget: how many pods may be taken away at once.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind, Subresource};

/// `poddisruptionbudgets`
pub static POD_DISRUPTION_BUDGETS: Builtin = LazyLock::new(|| {
    Kind::builtin("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "io.k8s.api.policy.v1")
        .short(&["pdb"])
        .with(&[Subresource::Status])
        .with_generation()
        .into()
});
