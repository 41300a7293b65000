//! kubarium called `kube-controller-manager` or `kube-scheduler`: that component in a process of its own,
//! with upstream's flags, and upstream's defaults where those of `kubarium controller-manager` are
//! kubeadm's.

use clap::{Args, Command, FromArgMatches};

use super::flags::Flags;
use super::program::{KUBE_CONTROLLER_MANAGER, KUBE_SCHEDULER, log, said};
use crate::cli::apart::controller_manager::ControllerManagerCommand;
use crate::cli::apart::scheduler::SchedulerCommand;
use crate::cli::outcome::{Failure, say};
use apiserver::endpoints::routes::debug::Verbosity;

const OF_CONTROLLERS: &str = include_str!("kube_controller_manager_flags.txt");
const OF_SCHEDULER: &str = include_str!("kube_scheduler_flags.txt");

/// Runs until it is told to end, or the Lease is lost.
pub(super) fn run_controllers(words: Vec<String>, verbosity: Verbosity) -> Result<(), Failure> {
    let read = read(controllers(), OF_CONTROLLERS, words)?;
    read.map_or(Ok(()), |read: ControllerManagerCommand| read.run(verbosity))
}

/// Runs until it is told to end, or the Lease is lost.
pub(super) fn run_scheduler(words: Vec<String>, verbosity: Verbosity) -> Result<(), Failure> {
    let read = read(scheduler(), OF_SCHEDULER, words)?;
    read.map_or(Ok(()), |read: SchedulerCommand| read.run(verbosity))
}

fn controllers() -> Command {
    let command = ControllerManagerCommand::augment_args(named(KUBE_CONTROLLER_MANAGER));
    command.mut_arg("use_service_account_credentials", |arg| arg.default_value("false"))
}

fn scheduler() -> Command {
    let command = SchedulerCommand::augment_args(named(KUBE_SCHEDULER));
    command.mut_arg("scheduler_config", |arg| arg.long("config"))
}

fn named(name: &'static str) -> Command {
    Command::new(name).disable_version_flag(true).args_override_self(true)
}

/// What is to run; nothing when only something was to be said.
fn read<Read: FromArgMatches>(
    mut command: Command,
    known: &str,
    words: Vec<String>,
) -> Result<Option<Read>, Failure> {
    let flags = Flags { served: &command, known, is_plain_go: false };
    let normal = flags.read(words).map_err(|why| Failure(why.into()))?;
    if normal.asks_for_help {
        say(command.render_long_help().to_string());
        return Ok(None);
    }
    if normal.asks_for_version {
        say("Kubernetes v1.36.2");
        return Ok(None);
    }
    for flag in &normal.ignored {
        log(format!("{flag} is known, and changes nothing here"));
    }
    let words = std::iter::once(command.get_name().to_owned()).chain(normal.words);
    let matches = command.try_get_matches_from_mut(words).map_err(|error| said(&error))?;
    Read::from_arg_matches(&matches).map(Some).map_err(|error| said(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn what_kubeadm_passes_is_taken_and_the_defaults_are_upstreams() {
        let kubeadm = [
            "--allocate-node-cidrs=true",
            "--authentication-kubeconfig=/etc/kubernetes/controller-manager.conf",
            "--bind-address=127.0.0.1",
            "--client-ca-file=/pki/ca.crt",
            "--cluster-cidr=10.244.0.0/16",
            "--cluster-name=kind",
            "--cluster-signing-cert-file=/pki/ca.crt",
            "--cluster-signing-key-file=/pki/ca.key",
            "--controllers=*,bootstrap-signer-controller,token-cleaner-controller",
            "--kubeconfig=/etc/kubernetes/controller-manager.conf",
            "--leader-elect=true",
            "--root-ca-file=/pki/ca.crt",
            "--service-account-private-key-file=/pki/sa.key",
            "--service-cluster-ip-range=10.96.0.0/12",
            "--use-service-account-credentials=true",
        ];
        let of_kubeadm: Option<ControllerManagerCommand> =
            read(controllers(), OF_CONTROLLERS, words(&kubeadm)).unwrap();
        assert!(of_kubeadm.unwrap().use_service_account_credentials);
        let bare: Option<ControllerManagerCommand> = read(controllers(), OF_CONTROLLERS, vec![]).unwrap();
        assert!(!bare.unwrap().use_service_account_credentials);
        let scheduled: Option<SchedulerCommand> =
            read(scheduler(), OF_SCHEDULER, words(&["--leader-elect=false", "--v=2"])).unwrap();
        assert!(!scheduled.unwrap().election.election.leader_elect);
        let refused = read::<SchedulerCommand>(scheduler(), OF_SCHEDULER, words(&["--master=x"]));
        assert_eq!(refused.err().unwrap().0, "--master: name the server in --kubeconfig");
    }

    #[test]
    fn what_is_only_known_is_not_served_and_stands_in_order() {
        for (command, known) in [(controllers(), OF_CONTROLLERS), (scheduler(), OF_SCHEDULER)] {
            let served: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
            let names: Vec<&str> = known.lines().filter_map(|line| line.split(' ').next()).collect();
            assert!(names.is_sorted(), "out of order");
            let both: Vec<_> = names.iter().filter(|name| served.contains(name)).collect();
            assert!(both.is_empty(), "served, too: {both:?}");
        }
    }
}
