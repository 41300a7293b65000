//! `ControllerManager`: a running kube-controller-manager, and which of its controllers run in it.
//!
//! Each controller is a part of the component: it can be stopped and started while the others go on, and
//! shares their caches. Whoever stops the component's context ends all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sync::Mutex;

use super::controller::spawn;
use super::controller_accounts::ControllerAccounts;
use super::options::ControllerManagerOptions;
use super::{CONTROLLERS, ControllerManagerConfig, selection, spawn_garbage_collector};
use client_go::ComponentContext;
use component_base::metrics::{Render, gauge};

/// The controller that starts when the cluster is ready: it watches every kind.
pub const GARBAGE_COLLECTOR: &str = "garbage-collector-controller";

/// The names of the controllers that do something here, in the order of their alphabet.
pub fn controllers() -> BTreeSet<&'static str> {
    CONTROLLERS.iter().map(|(name, _)| *name).chain([GARBAGE_COLLECTOR]).collect()
}

/// The present name of one of them, by any name that `--controllers` takes, or without its `-controller`.
pub fn controller_named(name: &str) -> Option<&'static str> {
    let long = || selection::canonical(&format!("{name}-controller"));
    selection::canonical(name).or_else(long).filter(|name| controllers().contains(name))
}

/// The names of the controllers that the flags say: all, when somebody made options by hand that name none of
/// them.
pub fn selected(options: &ControllerManagerOptions) -> BTreeSet<&'static str> {
    let selection = options.selection().unwrap_or_default();
    controllers().into_iter().filter(|name| selection.runs(name)).collect()
}

/// A kube-controller-manager that runs.
pub struct ControllerManager {
    ctx: ComponentContext,
    config: ControllerManagerConfig,
    /// What each running controller runs. Bound: one entry for each of [`controllers`].
    parts: Mutex<BTreeMap<&'static str, ComponentContext>>,
    running: Arc<RunningControllers>,
}

/// Those whose running upstream counts, by what it calls them, and whether they run now
/// (`ControllerStarted`).
#[derive(Default)]
struct RunningControllers(Mutex<BTreeMap<&'static str, bool>>);

impl RunningControllers {
    /// A controller has been started or stopped.
    fn note(&self, name: &str, options: &ControllerManagerOptions, is_running: bool) {
        let counted_as = match name {
            "node-ipam-controller" if !options.allocated_cidr_sets().is_empty() => "nodeipam",
            "service-lb-controller" if options.load_balancer_range.is_some() => "service",
            _ => return,
        };
        self.0.lock().insert(counted_as, is_running);
    }
}

impl Render for RunningControllers {
    fn render(&self, out: &mut String) {
        let help = "[BETA] Indicates where instances of a controller are currently running";
        let running = self.0.lock();
        let values = running.iter().map(|(name, runs)| (["kube-controller-manager", name], u8::from(*runs)));
        gauge(out, ("running_managed_controllers", help), ["manager", "name"], values);
    }
}

impl ControllerManager {
    /// Starts it without any controller.
    pub fn start(ctx: ComponentContext, config: ControllerManagerConfig) -> ControllerManager {
        // Whatever runs, asks as an account of its own.
        spawn(&ctx, ControllerAccounts::new(&ctx));
        let running = Arc::<RunningControllers>::default();
        ctx.metrics.add("running-controllers", running.clone());
        ControllerManager { ctx, config, parts: Mutex::default(), running }
    }

    /// Starts these controllers; the garbage collector waits until the caches are filled that others need.
    pub fn start_controllers(&self, names: &BTreeSet<&'static str>) {
        let mut parts = self.parts.lock();
        let is_running: BTreeSet<&str> = parts.keys().copied().collect();
        let new = |name: &str| names.contains(name) && !is_running.contains(name);
        for (name, start) in CONTROLLERS.iter().filter(|(name, _)| new(name)) {
            // Some are made of two, which are one to whoever stops them.
            start(parts.entry(name).or_insert_with(|| self.ctx.part()), &self.config);
            self.running.note(name, &self.config.options, true);
        }
        if new(GARBAGE_COLLECTOR) {
            let part = self.ctx.part();
            spawn_garbage_collector(&part, &self.config);
            parts.insert(GARBAGE_COLLECTOR, part);
        }
        self.ctx.start_informers();
    }

    /// Stops a controller, and leaves the others alone.
    pub fn stop_controller(&self, name: &str) {
        let part = self.parts.lock().remove(name);
        if let Some(part) = part {
            part.stop();
            self.running.note(name, &self.config.options, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_balancer_ranges::LoadBalancerRanges;

    #[test]
    fn a_controller_that_stopped_is_still_counted() {
        let running = RunningControllers::default();
        let text = || {
            let mut out = String::new();
            running.render(&mut out);
            out
        };
        let mut options = ControllerManagerOptions { load_balancer_range: None, ..Default::default() };
        running.note("service-lb-controller", &options, true);
        running.note("deployment-controller", &options, true);
        assert_eq!(text(), "");
        options.load_balancer_range = LoadBalancerRanges::parse("192.168.100.0/24").ok();
        running.note("service-lb-controller", &options, true);
        let sample = "running_managed_controllers{manager=\"kube-controller-manager\",name=\"service\"}";
        assert!(text().ends_with(&format!("\n{sample} 1\n")));
        running.note("service-lb-controller", &options, false);
        assert!(text().ends_with(&format!("\n{sample} 0\n")));
    }

    #[test]
    fn a_controller_has_the_names_that_its_flag_knows() {
        for name in ["deployment", "deployment-controller"] {
            assert_eq!(controller_named(name), Some("deployment-controller"));
        }
        for (name, own) in [
            ("garbage-collector", GARBAGE_COLLECTOR),
            ("csrsigning", "certificatesigningrequest-signing-controller"),
        ] {
            assert_eq!(controller_named(name), Some(own));
        }
        // Known, and nothing is behind it.
        assert_eq!(controller_named("node-route-controller"), None);
        assert_eq!(controller_named("nonsense"), None);
    }
}
