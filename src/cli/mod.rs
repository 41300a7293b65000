//! The command line: `kubarium up`, `run`, `down`, `get`, `trace`, `settle`, `time`, `completion`, `version`.
//!
//! Each subcommand is one file. Every flag is also read from the environment as `KUBARIUM_*`. What goes wrong
//! is said in one line that tells what to do, and the exit code is not 0.

pub mod apart;
pub mod up;

pub mod flags;

pub mod down;
pub mod get;
pub mod learn;
pub mod node;
pub mod run;
pub mod settle;
pub mod step;
pub mod time;
pub mod trace;
pub mod ui;
pub mod watch;

pub mod assets;
pub mod component;
pub mod explore;
pub mod fault;
pub mod rbac;
pub mod requests;
pub mod stand_in;
pub mod why;

pub mod diff;
pub mod fork;
mod fork_contexts;
mod forks;
pub mod snapshot;
pub mod store;

pub mod completion;
pub mod version;

mod asked;
mod beside;
mod choice;
mod connection;
mod data_dir;
mod detach;
mod help;
mod junit;
mod kubeconfig;
mod left_behind;
mod lesson_left;
mod log;
mod manifests;
mod mistakes;
mod outcome;
mod parent;
mod pod_trouble;
mod progress;
mod readiness;
mod run_folder;
mod state;
mod stop;
mod style;
mod terminal;
mod tips;
mod trace_bodies;
mod trace_follow;
mod trace_source;
mod trace_wanted;
mod traced;
mod trust;

use std::io::Write;
use std::process::ExitCode;

pub use outcome::Failure;
use outcome::{block_on, say};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// A whole Kubernetes in one process: ready in milliseconds, driven with a stock kubectl.
#[derive(Parser)]
#[command(name = "kubarium", version = version::LONG)]
pub struct Arguments {
    /// Log more: -v what the components do, -vv every request
    ///
    /// Of components -vv also says every reconcile. RUST_LOG says it in detail.
    #[arg(short, long, global = true, action = clap::ArgAction::Count, env = "KUBARIUM_VERBOSE",
        display_order = 900)]
    pub verbose: u8,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Subcommand)]
pub enum Command {
    /// Start a cluster and keep it until Ctrl-C.
    Up(Box<up::Up>),
    /// Start a cluster, run a command with it, and end it.
    Run(Box<run::RunCommand>),
    /// Start an apiserver alone: its components are other processes.
    Apiserver(Box<apart::apiserver::ApiserverCommand>),
    /// Run the controllers of a cluster whose apiserver is elsewhere.
    ControllerManager(Box<apart::controller_manager::ControllerManagerCommand>),
    /// Run the scheduler of a cluster whose apiserver is elsewhere.
    Scheduler(Box<apart::scheduler::SchedulerCommand>),
    /// Run simulated nodes of a cluster whose apiserver is elsewhere.
    Kubelet(Box<apart::kubelet::KubeletCommand>),
    /// Keep a store and serve etcd's API on it, without Kubernetes.
    Etcd(Box<stand_in::etcd::Etcd>),
    /// Stop clusters.
    Down(down::Down),
    /// Show clusters or a kubeconfig.
    #[command(subcommand)]
    Get(get::Get),
    /// Tell the story of an object: a line for each stage, from its request to the running container.
    Trace(trace::TraceArguments),
    /// Learn how Kubernetes works, on a cluster that runs.
    Learn(learn::Learn),
    /// Print a link to the page that shows a cluster at work.
    Ui(ui::UiCommand),
    /// Show a cluster at work, live in this terminal.
    Watch(watch::WatchCommand),
    /// Print a folder with kube-apiserver, etcd and kubectl, for KUBEBUILDER_ASSETS.
    Assets(assets::Assets),
    /// Make requests, watches and components go wrong on purpose.
    #[command(subcommand)]
    Fault(fault::FaultCommand),
    /// Stop and start the components of a cluster, or single controllers.
    #[command(subcommand)]
    Component(component::ComponentCommand),
    /// Run a test under many seeds, each with other faults.
    Explore(explore::ExploreCommand),
    /// Say why an object is as it is, or why it is not there.
    Why(why::Why),
    /// Show what users have asked for, and what was answered.
    Requests(requests::RequestsCommand),
    /// Find the roles that users need, and what roles allow for nothing.
    #[command(subcommand)]
    Rbac(rbac::RbacCommand),
    /// Add, remove, stop and start simulated nodes, and make them unwell.
    #[command(subcommand)]
    Node(node::NodeCommand),
    /// Wait until nothing moves in a cluster; else say what does.
    Settle(settle::SettleCommand),
    /// Show a cluster's time, or let it pass.
    #[command(subcommand)]
    Time(time::TimeCommand),
    /// Hold a cluster between two steps, and let them happen one by one.
    Step(step::StepCommand),
    /// Make a second cluster with the same past.
    Fork(fork::Fork),
    /// Keep a whole cluster in a file, make a data dir of it, or write its objects as YAML.
    #[command(subcommand)]
    Snapshot(snapshot::SnapshotCommand),
    /// Copy a cluster's objects from one store to another.
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Show what is different between two snapshots, or a snapshot and a running cluster.
    Diff(diff::Diff),
    /// Print a shell completion script.
    Completion(completion::Completion),
    /// Print the version.
    Version,
}

/// Reads the command line and the environment; what is wrong with them ends the process.
pub fn arguments() -> Arguments {
    let mut command = help::shape(Arguments::command());
    let matches = command.try_get_matches_from_mut(std::env::args_os());
    let parsed = matches.and_then(|mut matches| Arguments::from_arg_matches_mut(&mut matches));
    parsed.unwrap_or_else(|error| mistakes::refuse(&command, &tips::with_tip(error)))
}

/// Runs a subcommand.
pub fn run(arguments: Arguments) -> ExitCode {
    let verbosity = log::start(arguments.verbose);
    parent::end_with_parent();
    let outcome = match arguments.command {
        Command::Up(up) => up.logging(verbosity).run(),
        Command::Run(run) => match run.run() {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Apiserver(apiserver) => apiserver.logging(verbosity).run(),
        Command::ControllerManager(controllers) => controllers.run(verbosity),
        Command::Scheduler(scheduler) => scheduler.run(verbosity),
        Command::Kubelet(kubelet) => kubelet.run(),
        Command::Etcd(etcd) => etcd.run(),
        Command::Down(down) => down.run(),
        Command::Get(get) => get.run(),
        Command::Trace(trace) => trace.run(),
        Command::Learn(learn) => learn.run(),
        Command::Ui(ui) => ui.run(),
        Command::Watch(watch) => watch.run(),
        Command::Assets(assets) => assets.run(),
        Command::Fault(fault) => fault.run(),
        Command::Component(component) => component.run(),
        Command::Explore(explore) => match explore.run() {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Why(why) => why.run(),
        Command::Requests(requests) => requests.run(),
        Command::Rbac(rbac) => rbac.run(),
        Command::Node(node) => node.run(),
        Command::Settle(settle) => settle.run(),
        Command::Time(time) => time.run(),
        Command::Step(step) => step.run(),
        Command::Fork(fork) => fork.run(),
        Command::Snapshot(snapshot) => snapshot.run(),
        Command::Store(store) => store.run(),
        Command::Diff(diff) => return diff.run(),
        Command::Completion(completion) => completion.run(Arguments::command()),
        Command::Version => version::print(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(text)) => {
            let _ = writeln!(std::io::stderr(), "error: {text}");
            ExitCode::FAILURE
        }
    }
}
