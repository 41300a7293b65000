//! Flags of what runs beside the apiserver: which components there are at all.

use clap::{ArgAction, Args};

use crate::cluster::{ComponentPorts, Components};
use controllers::selection::Selection;

/// What runs.
#[derive(Args)]
#[command(next_help_heading = "What runs")]
pub struct ComponentFlags {
    /// Only the apiserver with its store: no controllers, no scheduler, no nodes.
    #[arg(long, conflicts_with_all = ["controllers", "scheduler", "nodes"])]
    pub apiserver_only: bool,
    /// Whether the scheduler runs.
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_missing_value = "true")]
    pub scheduler: bool,
    /// Whether 'kubectl top' and autoscalers learn what pods use (metrics.k8s.io).
    ///
    /// As if metrics-server were installed; one that you install takes its place. What pods use is a share of
    /// what they request, or what annotations as kubarium.dev/usage-cpu say.
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_missing_value = "true")]
    pub metrics_server: bool,
    /// Serve custom.metrics.k8s.io and external.metrics.k8s.io, too: what annotations and ConfigMaps say.
    #[arg(long)]
    pub metrics_adapter: bool,
    /// Which of it has pages at a port of its own.
    #[command(flatten)]
    pub ports: ComponentPorts,
}

impl ComponentFlags {
    /// What runs beside the apiserver, when these controllers do.
    pub fn components(&self, controllers: &Selection) -> Components {
        if self.apiserver_only {
            return Components::NONE;
        }
        Components::ALL.controllers(controllers.runs_any()).scheduler(self.scheduler)
    }

    /// How many of the nodes that were asked for there are.
    pub fn nodes(&self, wanted: u32) -> u32 {
        if self.apiserver_only { 0 } else { wanted }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use controllers::options::ControllerManagerOptions;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[arg(long, default_value_t = 1)]
        nodes: u32,
        #[command(flatten)]
        flags: ComponentFlags,
        #[command(flatten)]
        controller_manager: ControllerManagerOptions,
    }

    fn parsed(arguments: &[&str]) -> Only {
        Only::try_parse_from(["up"].iter().chain(arguments)).unwrap()
    }

    #[test]
    fn what_runs_is_what_is_said() {
        let components = |arguments: &[&str]| {
            let parsed = parsed(arguments);
            parsed.flags.components(&parsed.controller_manager.selection().unwrap())
        };
        assert_eq!(components(&[]), Components::ALL);
        assert_eq!(components(&["--apiserver-only"]), Components::NONE);
        assert_eq!(parsed(&["--apiserver-only"]).flags.nodes(1), 0);
        for none in [&["--controllers=-*"][..], &["--controllers", "-*"], &["--controllers", "-job"]] {
            assert_eq!(components(none), Components::ALL.controllers(false));
        }
        let scheduler = components(&["--scheduler=false"]);
        assert_eq!(scheduler, Components::ALL.scheduler(false));
        let some = parsed(&["--controllers=*,-job-controller"]).controller_manager.selection().unwrap();
        assert!(some.runs("cronjob-controller") && !some.runs("job-controller"));
        assert_eq!(parsed(&["--nodes", "2"]).nodes, 2);
        let both = Only::try_parse_from(["up", "--apiserver-only", "--nodes", "2"]);
        assert!(both.is_err_and(|error| error.to_string().contains("--nodes")));
    }
}
