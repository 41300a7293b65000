//! Flags of what runs beside the apiserver (kube-controller-manager's `--controllers`, and which components
//! there are at all), and of the ranges that they share.

use clap::{ArgAction, Args};

use super::values;
use crate::cli::Failure;
use crate::cluster::Components;
use apis::networking::service_ranges::ServiceRanges;
use controllers::selection::Selection;

/// What runs.
#[derive(Args)]
#[command(next_help_heading = "What runs")]
pub struct ComponentFlags {
    /// Only the apiserver with its store: no controllers, no scheduler, no nodes.
    #[arg(long, env = "KUBARIUM_APISERVER_ONLY", conflicts_with_all = ["controllers", "scheduler", "nodes"])]
    pub apiserver_only: bool,
    /// Which controllers run: '*' is all, 'foo' the one of that name, '-foo' not that one, and '-*' none: as
    /// '*,-job-controller'. The names are those of kube-controller-manager.
    #[arg(long, env = "KUBARIUM_CONTROLLERS", value_delimiter = ',', default_value = "*", value_name = "NAME",
        value_parser = values::controller, allow_hyphen_values = true)]
    pub controllers: Vec<String>,
    /// Whether the scheduler runs.
    #[arg(long, env = "KUBARIUM_SCHEDULER", default_value_t = true, action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_missing_value = "true")]
    pub scheduler: bool,
    /// The range that Services take their addresses from, or one of each IP family with a comma between them;
    /// the Service kubernetes has the first address. A data dir keeps the range that it was made with.
    #[arg(long, env = "KUBARIUM_SERVICE_CLUSTER_IP_RANGE", default_value = "10.96.0.0/16", value_name = "CIDR",
        value_parser = values::service_ranges)]
    pub service_cluster_ip_range: ServiceRanges,
}

impl ComponentFlags {
    /// Which of the controllers run.
    pub fn controllers(&self) -> Result<Selection, Failure> {
        Selection::parse(self.controllers.iter().map(String::as_str)).map_err(Failure)
    }

    /// What runs beside the apiserver.
    pub fn components(&self) -> Result<Components, Failure> {
        if self.apiserver_only {
            return Ok(Components::NONE);
        }
        let controllers = self.controllers()?.runs_any();
        Ok(Components { controllers, scheduler: self.scheduler, ..Components::ALL })
    }

    /// How many of the nodes that were asked for there are.
    pub fn nodes(&self, wanted: u32) -> u32 {
        if self.apiserver_only { 0 } else { wanted }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[arg(long, default_value_t = 1)]
        nodes: u32,
        #[command(flatten)]
        flags: ComponentFlags,
    }

    fn parsed(arguments: &[&str]) -> Only {
        Only::try_parse_from(["up"].iter().chain(arguments)).unwrap()
    }

    #[test]
    fn what_runs_is_what_is_said() {
        let components = |arguments: &[&str]| parsed(arguments).flags.components().unwrap();
        assert_eq!(components(&[]), Components::ALL);
        assert_eq!(components(&["--apiserver-only"]), Components::NONE);
        assert_eq!(parsed(&["--apiserver-only"]).flags.nodes(1), 0);
        for none in [&["--controllers=-*"][..], &["--controllers", "-*"], &["--controllers", "-job"]] {
            assert_eq!(components(none), Components { controllers: false, ..Components::ALL });
        }
        let scheduler = components(&["--scheduler=false"]);
        assert_eq!(scheduler, Components { scheduler: false, ..Components::ALL });
        let some = parsed(&["--controllers=*,-job-controller"]).flags.controllers().unwrap();
        assert!(some.runs("cronjob-controller") && !some.runs("job-controller"));
        assert_eq!(parsed(&["--nodes", "2"]).nodes, 2);
        let both = Only::try_parse_from(["up", "--apiserver-only", "--nodes", "2"]);
        assert!(both.is_err_and(|error| error.to_string().contains("--nodes")));
    }
}
