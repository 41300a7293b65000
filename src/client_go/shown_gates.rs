//! Feature gates, as a component's metrics tell of them.

use apimachinery::feature_gates::FeatureGates;
use component_base::features;
use component_base::metrics::Render;

/// The gates that a component goes by.
pub(crate) struct ShownGates(pub(crate) FeatureGates);

impl Render for ShownGates {
    fn render(&self, out: &mut String) {
        features::render(out, self.0.states());
    }
}
