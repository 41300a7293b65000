//! `Exact`: a wish that no time be left out.

use std::sync::Arc;

use super::stepped::Stepped;

/// While it is held every time comes; see [`super::Clock::exact`].
#[must_use = "times are left out again when this is dropped"]
#[derive(Debug)]
pub struct Exact(Option<Arc<Stepped>>);

impl Exact {
    /// None on a clock on which none ever is.
    pub(crate) fn new(stepped: Option<Arc<Stepped>>) -> Exact {
        stepped.iter().for_each(|stepped| stepped.count_exact(true));
        Exact(stepped)
    }
}

impl Drop for Exact {
    fn drop(&mut self) {
        self.0.iter().for_each(|stepped| stepped.count_exact(false));
    }
}
