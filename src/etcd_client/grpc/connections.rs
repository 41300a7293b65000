//! The connections to etcd's members (`clientv3`'s balancer): one member is spoken to until it fails, then
//! the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sync::Mutex;

use super::connection::{DIAL_TIME, EtcdDialFailure, Hope, HttpSender, dial};
use super::member::has_progress;
use crate::config::{EtcdConfig, EtcdEndpoint};
use clock::Clock;

/// What a connection is for. Watches have their own: what nobody reads there holds up no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Calls,
    Watches,
}

/// A connection that is in use.
#[derive(Clone, Debug)]
pub(crate) struct MemberConnection {
    pub(crate) sender: HttpSender,
    pub(crate) endpoint: Arc<EtcdEndpoint>,
    /// Which of all connections it is.
    number: u64,
}

/// All connections: at most one for each purpose.
#[derive(Debug)]
pub(crate) struct Connections {
    config: EtcdConfig,
    clock: Clock,
    state: Mutex<ConnectionState>,
    /// One opens at a time, and the others use what it has opened.
    opening: tokio::sync::Mutex<()>,
    /// Somebody was spoken to who cannot be asked for the progress of watches.
    lacks_progress: AtomicBool,
    is_known: AtomicBool,
}

#[derive(Debug, Default)]
struct ConnectionState {
    /// The member that is spoken to.
    member: usize,
    calls: Option<MemberConnection>,
    watches: Option<MemberConnection>,
    made: u64,
}

impl ConnectionState {
    fn place(&mut self, purpose: Purpose) -> &mut Option<MemberConnection> {
        match purpose {
            Purpose::Calls => &mut self.calls,
            Purpose::Watches => &mut self.watches,
        }
    }
}

impl Connections {
    pub(crate) fn new(config: EtcdConfig, clock: Clock) -> Connections {
        Connections {
            config,
            clock,
            state: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            lacks_progress: AtomicBool::new(false),
            is_known: AtomicBool::new(false),
        }
    }

    /// Whether every member that was spoken to can be asked for the progress of watches.
    pub(crate) fn tells_progress(&self) -> bool {
        self.is_known.load(Ordering::Acquire) && !self.lacks_progress.load(Ordering::Acquire)
    }

    pub(crate) fn config(&self) -> &EtcdConfig {
        &self.config
    }

    /// The one that is open, or a new one to the first member that answers.
    pub(crate) async fn get(&self, purpose: Purpose) -> Result<MemberConnection, EtcdDialFailure> {
        if let Some(open) = self.open(purpose) {
            return Ok(open);
        }
        let _alone = self.opening.lock().await;
        match self.open(purpose) {
            Some(open) => Ok(open),
            None => self.connect(purpose).await,
        }
    }

    fn open(&self, purpose: Purpose) -> Option<MemberConnection> {
        let mut state = self.state.lock();
        state.place(purpose).clone().filter(|connected| !connected.sender.is_closed())
    }

    async fn connect(&self, purpose: Purpose) -> Result<MemberConnection, EtcdDialFailure> {
        let members = self.config.endpoints.len();
        let first = self.state.lock().member;
        let mut failures: Vec<EtcdDialFailure> = Vec::new();
        for member in (0..members).map(|step| (first + step) % members) {
            let endpoint = &self.config.endpoints[member];
            match self.greet(endpoint).await {
                Ok((sender, has_progress)) => {
                    self.note_progress(has_progress);
                    return Ok(self.take(purpose, member, sender));
                }
                Err(failure) => {
                    failures.push(EtcdDialFailure { why: format!("{endpoint}: {}", failure.why), ..failure });
                }
            }
        }
        let hope = failures.iter().map(|failure| failure.hope).max().unwrap_or(Hope::None);
        let whys: Vec<String> = failures.into_iter().map(|failure| failure.why).collect();
        Err(EtcdDialFailure { why: whys.join("; "), hope })
    }

    /// Connects, and asks what it is that answers: on a task of its own, since whoever asks may be deep in a
    /// request, and may go away while others wait for the same.
    async fn greet(&self, endpoint: &EtcdEndpoint) -> Result<(HttpSender, bool), EtcdDialFailure> {
        let (clock, config, endpoint) = (self.clock.clone(), self.config.clone(), endpoint.clone());
        let greeting = self.clock.spawn(async move { greet(&clock, &config, &endpoint).await });
        greeting.await.unwrap_or_else(|error| {
            let why = format!("connecting was broken off: {error}");
            Err(EtcdDialFailure { why, hope: Hope::Little })
        })
    }

    fn note_progress(&self, has_progress: bool) {
        self.is_known.store(true, Ordering::Release);
        if !has_progress {
            self.lacks_progress.store(true, Ordering::Release);
        }
    }

    fn take(&self, purpose: Purpose, member: usize, sender: HttpSender) -> MemberConnection {
        let endpoint = Arc::new(self.config.endpoints[member].clone());
        let mut state = self.state.lock();
        state.made += 1;
        state.member = member;
        let connected = MemberConnection { sender, endpoint, number: state.made };
        *state.place(purpose) = Some(connected.clone());
        connected
    }

    /// It did not do what it should: another member is spoken to from now on, if there is one.
    pub(crate) fn give_up(&self, failed: &MemberConnection) {
        let mut state = self.state.lock();
        let is_failed =
            |at: &Option<MemberConnection>| at.as_ref().is_some_and(|at| at.number == failed.number);
        if !is_failed(&state.calls) && !is_failed(&state.watches) {
            return;
        }
        state.member = (state.member + 1) % self.config.endpoints.len();
        for purpose in [Purpose::Calls, Purpose::Watches] {
            if is_failed(state.place(purpose)) {
                *state.place(purpose) = None;
            }
        }
    }

    /// Ends them.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.calls = None;
        state.watches = None;
    }
}

async fn greet(
    clock: &Clock,
    config: &EtcdConfig,
    endpoint: &EtcdEndpoint,
) -> Result<(HttpSender, bool), EtcdDialFailure> {
    let mut sender = dial(clock, config, endpoint).await?;
    let asked = clock.timeout_outside(DIAL_TIME, has_progress(&mut sender, endpoint)).await;
    let has_progress = asked.unwrap_or_else(|_| {
        let why = "it does not answer as etcd does: context deadline exceeded".to_owned();
        Err(EtcdDialFailure { why, hope: Hope::Little })
    })?;
    Ok((sender, has_progress))
}
