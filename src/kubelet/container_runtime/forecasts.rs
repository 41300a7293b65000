//! What is known ahead of probes.

use std::time::Duration;

use apimachinery::time::Time;

/// One answer to a probe (`probe.Result`).
#[derive(Clone, Debug, PartialEq)]
pub enum ProbeAnswer {
    /// A good one.
    Success,
    /// A good one, with something to be told.
    Warning(String),
    /// A bad one.
    Failure(String),
    /// None: what asks could not be started, and why. It counts as neither.
    Errored(String),
}

/// What is known ahead of the answers to a probe.
#[derive(Clone, Debug, PartialEq)]
pub enum ProbeForecast {
    /// All of them, from when on, and nothing on the way changes them: a command.
    Played(Vec<(Time, ProbeAnswer)>),
    /// All of them, from when on, for whom nothing is wrong on the way.
    Served(Vec<(Time, ProbeAnswer)>),
    /// Nobody knows what answers; it is assumed to pass for whoever reaches the pod.
    Assumed,
    /// Nothing: whoever wants to know asks.
    Asked,
}

/// How a command goes (`runtimeapi.ExecSyncResponse`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecSyncForecast {
    /// The command is not known.
    Unknown,
    /// It is known.
    Ends {
        /// How long it takes; the longest time there is, when it never ends.
        took: Duration,
        /// Its exit code.
        exit_code: i32,
    },
    /// It asks the network, and goes on with the answer: [`RuntimeService::exec`] says what.
    Asks,
}
