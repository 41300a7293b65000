//! kubarium under the names of the programs that test suites start: `kube-apiserver` and `etcd`, as
//! envtest, kubebuilder, jenvtest and fabric8's kube-api-test do, and of components in processes of their
//! own: `kube-controller-manager` and `kube-scheduler`.
//!
//! `kubarium assets` makes a folder with the names as links to this program, for `KUBEBUILDER_ASSETS`;
//! which of them was called, the first word of the command line says. Under a name it takes the flags of
//! the program that has it upstream, in the form that it takes them (`flags`), and ends as that one does,
//! within a second, and also when whoever started it is gone (`ending`), which the real ones survive.
//!
//! Between the two goes what goes between the real ones only as far as a store needs it: `kube-apiserver`
//! asks the `etcd` that its `--etcd-servers` names where its data dir is (`place`), and keeps everything
//! there. So a server that is started again on an `etcd` finds what the one before has written, but two at
//! once do not share it: the second is told who holds it. Who else speaks etcd's API is served as long as
//! no `kube-apiserver` has the store, and who
//! tries is told so.

pub mod etcd;
pub mod kube_apiserver;

pub mod program;

mod components;
mod ending;
mod flags;
mod place;
mod selection;
mod serving_files;
mod store;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use super::log;
use super::outcome::Failure;
use apiserver::endpoints::routes::debug::Verbosity;
use program::{ETCD, KUBE_APISERVER, KUBE_CONTROLLER_MANAGER, KUBE_SCHEDULER};

/// The names, and what is done under each with the words after it.
const NAMES: &[(&str, RunStandIn)] = &[
    (KUBE_APISERVER, kube_apiserver::run),
    (ETCD, etcd::run),
    (KUBE_CONTROLLER_MANAGER, components::run_controllers),
    (KUBE_SCHEDULER, components::run_scheduler),
];

type RunStandIn = fn(Vec<String>, Verbosity) -> Result<(), Failure>;

/// Runs as the program whose name this one was called by, if it was.
pub fn run_as_called() -> Option<ExitCode> {
    let mut words = std::env::args_os();
    let run = called(&words.next()?)?;
    let verbosity = log::start(0);
    let words = words.map(OsString::into_string).collect::<Result<Vec<_>, _>>();
    let words = words.map_err(|word| Failure(format!("{} is not UTF-8", word.display())));
    Some(match words.and_then(|words| run(words, verbosity)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(text)) => {
            // As upstream's commands begin what they refuse.
            let _ = writeln!(std::io::stderr(), "Error: {text}");
            ExitCode::FAILURE
        }
    })
}

fn called(word: &OsString) -> Option<RunStandIn> {
    let name = Path::new(word).file_name()?;
    NAMES.iter().find(|(known, _)| name == *known).map(|(_, run)| *run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_last_part_of_the_first_word() {
        for (word, is_known) in [
            ("kube-apiserver", true),
            ("/a/b/etcd", true),
            ("./kube-apiserver", true),
            ("/bin/kube-controller-manager", true),
            ("kube-scheduler", true),
            ("kubarium", false),
            ("/etcd/kubarium", false),
            ("etcdctl", false),
            ("", false),
        ] {
            assert_eq!(called(&word.into()).is_some(), is_known, "{word}");
        }
    }
}
