//! Bodies that are being read, bounded over all connections: clients may send half of a body each and then
//! nothing.
//!
//! What is read of big bodies, and of those that wait for a thread (see `long_work`), is counted together.
//! Beyond [`MAX_BYTES_BEING_READ`] the body whose client has sent nothing for longest is given up and its
//! request answered 429, with when to try again; so a client that sends what it announced is not the one that
//! has to wait for those that do not. Where nobody else is left, whoever wants more is.

use std::collections::BTreeMap;
use std::sync::Arc;

use sync::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use apimachinery::status::{Status, StatusDetails};

/// How many bytes of big bodies are held at once while they are read.
pub const MAX_BYTES_BEING_READ: usize = 128 * 1024 * 1024;
/// Smaller bodies are not counted: there are at most as many as requests that are worked on at once.
pub const SMALL_BYTES: usize = 64 * 1024;
/// What a client that is refused is told.
const RETRY_AFTER_SECONDS: u32 = 1;

/// The bound for one server. Cloning shares it.
#[derive(Clone)]
pub struct BodyBudget {
    most: usize,
    state: Arc<Mutex<BudgetState>>,
}

#[derive(Default)]
struct BudgetState {
    held: usize,
    /// The bodies that are being read, by when their clients were last heard of.
    reading: BTreeMap<u64, BudgetedBody>,
    heard: u64,
}

struct BudgetedBody {
    bytes: usize,
    _give_up: oneshot::Sender<()>,
}

/// One body that counts.
pub(crate) struct Counted {
    budget: BodyBudget,
    bytes: usize,
    /// Where it stands among those that are being read.
    heard: u64,
    is_read: bool,
    given_up: oneshot::Receiver<()>,
}

impl Default for BodyBudget {
    fn default() -> Self {
        BodyBudget::at_most(MAX_BYTES_BEING_READ)
    }
}

impl BodyBudget {
    pub(crate) fn at_most(most: usize) -> Self {
        BodyBudget { most, state: Arc::default() }
    }

    /// A body of which so much has been read already.
    ///
    /// # Errors
    /// 429, when there is no room.
    pub(crate) fn count(&self, bytes: usize) -> Result<Counted, Status> {
        let (give_up, given_up) = oneshot::channel();
        let mut state = self.state();
        let heard = state.hear(BudgetedBody { bytes: 0, _give_up: give_up });
        drop(state);
        let mut body = Counted { budget: self.clone(), bytes: 0, heard, is_read: false, given_up };
        body.add(bytes)?;
        Ok(body)
    }

    fn state(&self) -> MutexGuard<'_, BudgetState> {
        self.state.lock()
    }
}

impl BudgetState {
    fn hear(&mut self, body: BudgetedBody) -> u64 {
        self.heard += 1;
        self.reading.insert(self.heard, body);
        self.heard
    }

    /// Gives bodies up until there is room for so many bytes more.
    fn make_room(&mut self, bytes: usize, most: usize) -> bool {
        while self.held + bytes > most {
            let Some((_, silent)) = self.reading.pop_first() else { return false };
            self.held -= silent.bytes;
        }
        true
    }
}

impl Counted {
    /// More of it has come.
    ///
    /// # Errors
    /// 429, when there is no room, or it has been given up.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), Status> {
        let mut state = self.budget.state();
        let Some(mut body) = state.reading.remove(&self.heard) else { return Err(too_many()) };
        if !state.make_room(bytes, self.budget.most) {
            state.held -= body.bytes;
            self.bytes = 0;
            return Err(too_many());
        }
        state.held += bytes;
        body.bytes += bytes;
        self.bytes = body.bytes;
        self.heard = state.hear(body);
        Ok(())
    }

    /// Comes back when it has been given up; the error is the answer.
    pub(crate) async fn given_up(&mut self) -> Status {
        let _ = (&mut self.given_up).await;
        too_many()
    }

    /// All of it is there: it is held as long as this is, and not given up any more.
    ///
    /// # Errors
    /// 429, when it was before.
    pub(crate) fn complete(&mut self) -> Result<(), Status> {
        let is_there = self.budget.state().reading.remove(&self.heard).is_some();
        self.is_read = is_there;
        if is_there { Ok(()) } else { Err(too_many()) }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut state = self.budget.state();
        // One that was given up is no longer held.
        if self.is_read || state.reading.remove(&self.heard).is_some() {
            state.held -= self.bytes;
        }
    }
}

fn too_many() -> Status {
    let text = "Too many requests, please try again later.";
    let details = StatusDetails { retry_after_seconds: RETRY_AFTER_SECONDS, ..StatusDetails::default() };
    Status::failure(429, "TooManyRequests", text).with_details(details)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn who_sends_goes_on_and_who_does_not_is_given_up() {
        let budget = BodyBudget::at_most(1000);
        let mut half_sent = budget.count(400).unwrap();
        let mut sent = budget.count(400).unwrap();
        assert!(half_sent.given_up().now_or_never().is_none());
        sent.add(400).unwrap();
        let refused = half_sent.given_up().now_or_never().unwrap();
        assert_eq!((refused.code, refused.details.unwrap().retry_after_seconds), (429, 1));
        assert!(half_sent.add(1).is_err() && half_sent.complete().is_err());
        drop(half_sent);
        sent.complete().unwrap();
        // What is read is not given up, so whoever comes must wait.
        assert!(budget.count(400).is_err());
        assert_eq!(budget.state().held, 800);
        drop(sent);
        assert!(budget.count(1000).is_ok());
        let state = budget.state();
        assert_eq!((state.held, state.reading.len()), (0, 0));
    }
}
