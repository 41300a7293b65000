//! `kubarium apiserver`: `kubarium up` without anything beside the apiserver. Whatever is for a component is
//! refused here, since that is another process's to say.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

use crate::cli::outcome::Failure;
use crate::cli::up::Up;
use apiserver::endpoints::routes::debug::Verbosity;
use controllers::options::ControllerManagerOptions;
use kubelet::options::KubeletOptions;
use scheduler::options::SchedulerOptions;

/// Flags of `up` that are of no apiserver, beside those of the components.
const OF_CLUSTERS: &[&str] = &[
    "nodes",
    "node_config",
    "system_pods",
    "apiserver_only",
    "scheduler",
    "metrics_server",
    "metrics_adapter",
    "forward_pods",
    "publish",
];

/// Start an apiserver alone: its components are other processes.
pub struct ApiserverCommand(Up);

impl ApiserverCommand {
    /// What sets how much is logged.
    pub(crate) fn logging(self, verbosity: Verbosity) -> ApiserverCommand {
        ApiserverCommand(self.0.logging(verbosity))
    }

    /// Runs until it is told to stop.
    pub fn run(self) -> Result<(), Failure> {
        let ApiserverCommand(mut up) = self;
        up.components.apiserver_only = true;
        up.is_for_others = true;
        up.run()
    }
}

impl Args for ApiserverCommand {
    fn augment_args(command: Command) -> Command {
        hide(Up::augment_args(command))
    }

    fn augment_args_for_update(command: Command) -> Command {
        hide(Up::augment_args_for_update(command))
    }
}

impl FromArgMatches for ApiserverCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ApiserverCommand, Error> {
        refuse(matches)?;
        Up::from_arg_matches(matches).map(ApiserverCommand)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        refuse(matches)?;
        self.0.update_from_arg_matches(matches)
    }
}

fn of_components() -> Vec<String> {
    let command = ControllerManagerOptions::augment_args(Command::new("components"));
    let command = KubeletOptions::augment_args(SchedulerOptions::augment_args(command));
    let names = command.get_arguments().map(|arg| arg.get_id().to_string()).collect::<Vec<_>>();
    names.into_iter().chain(OF_CLUSTERS.iter().map(|id| (*id).to_owned())).collect()
}

fn hide(command: Command) -> Command {
    let hidden = of_components();
    command.mut_args(|arg| {
        let is_hidden = hidden.iter().any(|id| arg.get_id() == id.as_str());
        if is_hidden { arg.hide(true) } else { arg }
    })
}

fn refuse(matches: &ArgMatches) -> Result<(), Error> {
    for id in of_components() {
        let source = matches.try_contains_id(&id).ok().and_then(|_| matches.value_source(&id));
        if source == Some(ValueSource::CommandLine) {
            let text = format!(
                "--{} is of no apiserver: say it to controller-manager, scheduler or kubelet, or to \
                 `kubarium up`\n",
                id.replace('_', "-")
            );
            return Err(Error::raw(clap::error::ErrorKind::ArgumentConflict, text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Only {
        #[command(flatten)]
        command: ApiserverCommand,
    }

    #[test]
    fn what_is_of_components_is_refused_and_in_no_help() {
        use clap::{CommandFactory, Parser};
        let parsed = |words: &[&str]| Only::try_parse_from(["apiserver"].iter().chain(words));
        assert!(parsed(&["--listen", "6443"]).is_ok());
        for words in [["--nodes", "2"], ["--controllers", "*"], ["--max-pods", "5"]] {
            let why = parsed(&words).err().expect("it is refused").to_string();
            assert!(why.contains(&format!("{} is of no apiserver", words[0])), "{why}");
        }
        let help = Only::command().render_long_help().to_string();
        assert!(help.contains("--data-dir") && !help.contains("--max-pods"));
    }
}
