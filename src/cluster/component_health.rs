//! `ComponentHealth`: what a component looks at when it is asked how it is, and what came of it each time.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::components::RunningComponents;
use super::elections::{CONTROLLER_MANAGER, SCHEDULER};
use component_base::health::{HEALTH_PATHS, check_line, told};
use component_base::metrics::Render;
use component_base::slis::HealthSlis;
use sync::Mutex;

/// One thing that was looked at: what it is called, and whether it is well.
pub(crate) type CheckResult = (String, bool);

/// Looks at what a path is about.
pub(crate) type HealthLook = Arc<dyn Fn(&str) -> Vec<CheckResult> + Send + Sync>;

/// How a component is. Cloning shares what came of it.
#[derive(Clone)]
pub(crate) struct ComponentHealth {
    look: HealthLook,
    slis: Arc<HealthSlis>,
}

/// What is answered: whether all is well, and the text.
pub(crate) struct HealthAnswer {
    pub(crate) is_well: bool,
    pub(crate) text: String,
}

/// What came of asking each component. Bound: one entry for each component that was asked.
#[derive(Default)]
pub(super) struct HealthOfAll(Mutex<BTreeMap<String, Arc<HealthSlis>>>);

impl HealthOfAll {
    /// Of one component.
    pub(super) fn of(&self, component: &str) -> Arc<HealthSlis> {
        self.0.lock().entry(component.to_owned()).or_default().clone()
    }
}

impl ComponentHealth {
    /// Of a component that runs here or elsewhere.
    pub(super) fn new(look: HealthLook, slis: Arc<HealthSlis>) -> ComponentHealth {
        ComponentHealth { look, slis }
    }

    /// Looks, and notes what is found.
    pub(crate) fn ask(&self, path: &str, is_verbose: bool) -> HealthAnswer {
        let found = (self.look)(path);
        found.iter().for_each(|(check, is_well)| self.slis.observe(check, path, *is_well));
        let is_well = found.iter().all(|(_, is_well)| *is_well);
        if is_well && !is_verbose {
            return HealthAnswer { is_well, text: "ok".into() };
        }
        let lines: String = found.iter().map(|(check, is_well)| check_line(check, *is_well)).collect();
        HealthAnswer { is_well, text: told(&lines, path, is_well) }
    }

    /// `/metrics/slis`, for which everything is looked at now if nobody has asked before.
    pub(crate) fn slis(&self) -> String {
        if self.slis.is_empty() {
            for path in HEALTH_PATHS {
                self.ask(path, false);
            }
        }
        let mut text = String::new();
        self.slis.render(&mut text);
        text
    }
}

impl RunningComponents {
    /// What a component looks at (`cmd/kube-scheduler/app/server.go`, `cmd/kube-controller-manager/app`):
    /// a controller manager that its controllers run, a scheduler that it has heard of everything. `elects`
    /// is whether it asks for a Lease; one that waits for it is well, too.
    pub(super) fn health(&self, component: &str, path: &str, elects: bool) -> Vec<CheckResult> {
        let election = elects.then(|| ("leaderElection".to_owned(), true));
        let mut found: Vec<CheckResult> = match (component, path) {
            (CONTROLLER_MANAGER, "healthz") => {
                election.into_iter().chain(self.controllers_at_work()).collect()
            }
            (SCHEDULER, "healthz") => election.into_iter().collect(),
            (SCHEDULER, "readyz") => {
                let heard = ("sched-handler-sync".to_owned(), self.has_heard(SCHEDULER));
                election.into_iter().chain([("shutdown".to_owned(), true), heard]).collect()
            }
            _ => Vec::new(),
        };
        if found.is_empty() {
            found.push(("ping".to_owned(), true));
        }
        found
    }

    fn controllers_at_work(&self) -> impl Iterator<Item = CheckResult> {
        let prefix = format!("{CONTROLLER_MANAGER}/");
        let of_manager = move |name: String| name.strip_prefix(&prefix).map(str::to_owned);
        let running = self.list().into_iter().filter(|state| state.running);
        running.filter_map(move |state| of_manager(state.name)).map(|name| (name, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_well_is_named_and_counted() {
        let look: HealthLook =
            Arc::new(|path| vec![("ping".into(), true), ("late".into(), path != "readyz")]);
        let health = ComponentHealth::new(look, Arc::default());
        let unasked = ComponentHealth::new(health.look.clone(), Arc::default()).slis();
        assert!(unasked.contains("kubernetes_healthcheck{name=\"late\",type=\"readyz\"} 0\n"), "{unasked}");
        let said = |path: &str, is_verbose: bool| {
            let HealthAnswer { is_well, text } = health.ask(path, is_verbose);
            (is_well, text)
        };
        assert_eq!(said("livez", false), (true, "ok".into()));
        assert_eq!(said("livez", true), (true, "[+]ping ok\n[+]late ok\nlivez check passed\n".into()));
        let failed = "[+]ping ok\n[-]late failed: reason withheld\nreadyz check failed\n";
        assert_eq!(said("readyz", false), (false, failed.into()));
        let slis = health.slis();
        for line in [
            "kubernetes_healthcheck{name=\"late\",type=\"readyz\"} 0\n",
            "kubernetes_healthchecks_total{name=\"late\",status=\"success\",type=\"livez\"} 2\n",
        ] {
            assert!(slis.contains(line), "{slis}");
        }
    }
}
