//! `/metrics/slis`: what came of health checks, each time that they were asked
//! (`component-base/metrics/prometheus/slis`).

use std::collections::BTreeMap;

use sync::Mutex;

use crate::metrics::{Render, counter, gauge};

/// What was found. Bound: three for each check, one a path.
#[derive(Debug, Default)]
pub struct HealthSlis {
    found: Mutex<BTreeMap<(String, String), CheckCounts>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct CheckCounts {
    is_well: bool,
    successes: u64,
    errors: u64,
}

impl HealthSlis {
    /// Whether nobody has asked yet. Elsewhere a kubelet's probes ask all the time, so that who reads what
    /// came of it finds something; here nobody need ask, and the first reader has it asked.
    pub fn is_empty(&self) -> bool {
        self.found.lock().is_empty()
    }

    /// A check was asked at `healthz`, `livez` or `readyz`.
    pub fn observe(&self, check: &str, path: &str, is_well: bool) {
        let mut all = self.found.lock();
        let found = all.entry((check.to_owned(), path.to_owned())).or_default();
        found.is_well = is_well;
        *(if is_well { &mut found.successes } else { &mut found.errors }) += 1;
    }
}

impl Render for HealthSlis {
    fn render(&self, out: &mut String) {
        let all = self.found.lock();
        let last =
            ("kubernetes_healthcheck", "[STABLE] This metric records the result of a single healthcheck.");
        let results = all.iter().map(|((check, path), found)| ([check, path], u8::from(found.is_well)));
        gauge(out, last, ["name", "type"], results);
        let total =
            ("kubernetes_healthchecks_total", "[STABLE] This metric records the results of all healthcheck.");
        let counts = all.iter().flat_map(|((check, path), found)| {
            let counts = [("error", found.errors), ("success", found.successes)];
            counts.map(|(status, count)| ([check.as_str(), status, path], count))
        });
        counter(out, total, ["name", "status", "type"], counts.filter(|(_, count)| *count > 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_result_and_all_of_them_are_told() {
        let slis = HealthSlis::default();
        let text = || {
            let mut out = String::new();
            slis.render(&mut out);
            out
        };
        assert!(slis.is_empty());
        assert_eq!(text(), "");
        slis.observe("etcd", "readyz", true);
        slis.observe("etcd", "readyz", false);
        slis.observe("ping", "livez", true);
        let expected = "# HELP kubernetes_healthcheck [STABLE] This metric records the result of a single healthcheck.\n\
            # TYPE kubernetes_healthcheck gauge\n\
            kubernetes_healthcheck{name=\"etcd\",type=\"readyz\"} 0\n\
            kubernetes_healthcheck{name=\"ping\",type=\"livez\"} 1\n\
            # HELP kubernetes_healthchecks_total [STABLE] This metric records the results of all healthcheck.\n\
            # TYPE kubernetes_healthchecks_total counter\n\
            kubernetes_healthchecks_total{name=\"etcd\",status=\"error\",type=\"readyz\"} 1\n\
            kubernetes_healthchecks_total{name=\"etcd\",status=\"success\",type=\"readyz\"} 1\n\
            kubernetes_healthchecks_total{name=\"ping\",status=\"success\",type=\"livez\"} 1\n";
        assert_eq!(text(), expected);
    }
}
