//! How often who decided, and how long it took (`authorization/metrics`, `endpoints/filters/metrics.go`).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sync::{Mutex, MutexGuard};

use crate::authorizer::Decision;
use crate::metrics::{Render, heading};
use component_base::metrics::{FROM_A_MILLISECOND, Histogram};

/// What came of all authorizers together, in the order of [`AuthorizationMetrics::attempts`].
const RESULTS: [&str; 4] = ["allowed", "denied", "no-opinion", "error"];

/// Counters of one apiserver.
pub struct AuthorizationMetrics {
    /// By type and name; as many as authorizers were ever configured.
    decisions: Mutex<BTreeMap<(String, String), Arc<Decisions>>>,
    attempts: [Histogram; RESULTS.len()],
}

/// What one authorizer has decided.
#[derive(Debug, Default)]
pub struct Decisions {
    allowed: AtomicU64,
    denied: AtomicU64,
}

impl Default for AuthorizationMetrics {
    fn default() -> AuthorizationMetrics {
        let attempts = RESULTS.map(|_| Histogram::new(&FROM_A_MILLISECOND));
        AuthorizationMetrics { decisions: Mutex::default(), attempts }
    }
}

impl AuthorizationMetrics {
    /// The counters of an authorizer, by its type and name.
    pub fn of(&self, mode: &str, name: &str) -> Arc<Decisions> {
        self.lock().entry((mode.to_owned(), name.to_owned())).or_default().clone()
    }

    /// A request was decided on.
    pub fn attempted(&self, decision: &Decision, duration: Duration) {
        let at = match decision {
            Decision::Allow(_) => 0,
            Decision::Deny(_) => 1,
            Decision::NoOpinion(_) => 2,
            Decision::Failed { .. } => 3,
        };
        self.attempts[at].observe(duration);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(String, String), Arc<Decisions>>> {
        self.decisions.lock()
    }
}

impl Render for AuthorizationMetrics {
    fn render(&self, out: &mut String) {
        let name = "apiserver_authorization_decisions_total";
        let help = "[ALPHA] Total number of terminal decisions made by an authorizer split by authorizer type, name, \
                    and decision.";
        heading(out, name, "counter", help);
        for ((mode, own), decisions) in self.lock().iter() {
            for (decision, counter) in [("allowed", &decisions.allowed), ("denied", &decisions.denied)] {
                let count = counter.load(Ordering::Relaxed);
                if count > 0 {
                    let labels = format!("decision={decision:?},name={own:?},type={mode:?}");
                    let _ = writeln!(out, "{name}{{{labels}}} {count}");
                }
            }
        }
        let name = "authorization_attempts_total";
        let help = "[ALPHA] Counter of authorization attempts broken down by result. It can be either 'allowed', \
                    'denied', 'no-opinion' or 'error'.";
        heading(out, name, "counter", help);
        for (result, attempts) in RESULTS.iter().zip(&self.attempts) {
            if attempts.count() > 0 {
                let _ = writeln!(out, "{name}{{result={result:?}}} {}", attempts.count());
            }
        }
        let name = "authorization_duration_seconds";
        heading(out, name, "histogram", "[ALPHA] Authorization duration in seconds broken out by result.");
        for (result, attempts) in RESULTS.iter().zip(&self.attempts) {
            attempts.render(out, name, &format!("result={result:?}"));
        }
    }
}

impl Decisions {
    /// It said something; only a yes and a no count.
    pub fn heard(&self, decision: &Decision) {
        let counter = match decision {
            Decision::Allow(_) => &self.allowed,
            Decision::Deny(_) | Decision::Failed { is_final: true, .. } => &self.denied,
            Decision::NoOpinion(_) | Decision::Failed { .. } => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
