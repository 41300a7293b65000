//! How often probes were asked (`prober_probe_total`).

/// What one probe of one run of a container has said, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ProbeCount {
    pub(crate) successful: u64,
    pub(crate) failed: u64,
}

impl ProbeCount {
    pub(crate) fn add(&mut self, is_good: bool) {
        let count = if is_good { &mut self.successful } else { &mut self.failed };
        *count = count.saturating_add(1);
    }

    pub(crate) fn and_successful(self, more: u64) -> ProbeCount {
        ProbeCount { successful: self.successful.saturating_add(more), ..self }
    }
}
