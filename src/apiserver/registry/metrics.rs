//! What the registry counts, and the storage below it.

use super::Registry;
use component_base::metrics::Render;

impl Render for Registry {
    fn render(&self, out: &mut String) {
        self.0.storage.render(out);
        self.0.services.render(out);
    }
}
