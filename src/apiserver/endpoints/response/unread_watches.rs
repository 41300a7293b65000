//! What watches have to send and their clients do not take: bounded over all connections of a server.
//!
//! Each watch, over a websocket too, may have some hundred kilobytes on the way to its client (see `server`),
//! which is little for one and much for thousands that nobody reads. Beyond [`MAX_UNSENT_BYTES`] in all, the
//! watch whose client has taken nothing for longest is ended, as upstream's cacher ends a watch that falls
//! behind, and so on until the rest fits. Who does not read cannot be told so: its connection ends, with all
//! that goes over it, and a client that comes to itself begins anew. Nobody who reads is ever the one that
//! took nothing for longest.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};
use sync::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// How much of all watches together may be on its way to their clients.
pub(crate) const MAX_UNSENT_BYTES: usize = 128 * 1024 * 1024;

/// The watches of one server that are being sent. Cloning shares it.
#[derive(Clone)]
pub(crate) struct UnreadWatches(Arc<UnreadShared>);

struct UnreadShared {
    most: usize,
    unsent: AtomicUsize,
    /// Counts what clients take: who has not moved for longest has the lowest number.
    moves: AtomicU64,
    watches: Mutex<HashMap<u64, Arc<Account>>>,
    /// The server ends.
    is_over: AtomicBool,
}

/// Ends a connection from elsewhere. Cloning shares it.
#[derive(Clone, Default)]
pub(crate) struct HangUp(Arc<Notify>);

/// One watch, while it is sent.
pub(crate) struct Sending {
    shared: Arc<UnreadShared>,
    account: Arc<Account>,
    id: u64,
}

/// What of one watch is on its way.
struct Account {
    state: Mutex<UnreadState>,
    hang_up: HangUp,
}

#[derive(Default)]
struct UnreadState {
    unsent: usize,
    moved: u64,
    is_given_up: bool,
    /// Whoever is to hear that the server ends.
    waiting: Option<Waker>,
}

/// A piece on its way to the client.
pub(crate) struct Piece {
    bytes: Bytes,
    size: usize,
    shared: Arc<UnreadShared>,
    account: Arc<Account>,
}

impl Default for UnreadWatches {
    fn default() -> Self {
        UnreadWatches::at_most(MAX_UNSENT_BYTES)
    }
}

impl UnreadWatches {
    pub(crate) fn at_most(most: usize) -> Self {
        let (unsent, moves, watches, is_over) = Default::default();
        UnreadWatches(Arc::new(UnreadShared { most, unsent, moves, watches, is_over }))
    }

    /// The server ends: so do all watches, each as one that has no more to say (`ServerShutdownSignal`), and
    /// those that begin from now on.
    pub(crate) fn end(&self) {
        self.0.is_over.store(true, Ordering::SeqCst);
        let all: Vec<Arc<Account>> = self.0.watches().values().cloned().collect();
        all.iter().for_each(|account| account.end());
    }

    /// A watch begins to be sent over a connection.
    pub(crate) fn begin(&self, hang_up: &HangUp) -> Sending {
        let shared = self.0.clone();
        let id = shared.moves.fetch_add(1, Ordering::Relaxed);
        let state = UnreadState { moved: id, ..UnreadState::default() };
        let account = Arc::new(Account { state: Mutex::new(state), hang_up: hang_up.clone() });
        shared.watches().insert(id, account.clone());
        Sending { shared, account, id }
    }
}

impl HangUp {
    /// Comes back when the connection is to end.
    pub(crate) async fn asked(&self) {
        self.0.notified().await;
    }
}

impl Sending {
    /// A piece goes out. Where that is too much with all the others', somebody is given up.
    pub(crate) fn send(&self, bytes: Bytes) -> Piece {
        let size = bytes.len();
        let (shared, account) = (self.shared.clone(), self.account.clone());
        account.is_given(&shared, size);
        if shared.unsent.load(Ordering::Relaxed) > shared.most {
            shared.give_up_until_it_fits();
        }
        Piece { bytes, size, shared, account }
    }

    /// Ready when it is to end with its server; asked where there is nothing to send.
    pub(crate) fn poll_over(&self, context: &Context<'_>) -> Poll<()> {
        // Looked at below the lock: who ends the server says so before it takes this lock to wake us.
        let mut state = self.account.state();
        if self.shared.is_over.load(Ordering::SeqCst) {
            return Poll::Ready(());
        }
        if state.waiting.as_ref().is_none_or(|waiting| !waiting.will_wake(context.waker())) {
            state.waiting = Some(context.waker().clone());
        }
        Poll::Pending
    }

    /// Comes back when it is to end with its server.
    pub(crate) async fn over(&self) {
        poll_fn(|context| self.poll_over(context)).await;
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.shared.watches().remove(&self.id);
    }
}

impl UnreadShared {
    fn watches(&self) -> MutexGuard<'_, HashMap<u64, Arc<Account>>> {
        self.watches.lock()
    }

    fn give_up_until_it_fits(&self) {
        let watches = self.watches();
        while self.unsent.load(Ordering::Relaxed) > self.most {
            let waiting = watches.values().filter_map(|account| Some((account.waits_since()?, account)));
            let Some((_, stalest)) = waiting.min_by_key(|(moved, _)| *moved) else { return };
            self.unsent.fetch_sub(stalest.give_up(), Ordering::Relaxed);
        }
    }
}

impl Account {
    fn state(&self) -> MutexGuard<'_, UnreadState> {
        self.state.lock()
    }

    /// A piece goes out. Only to a client that had taken all is that a move: who reads nothing is given more.
    fn is_given(&self, shared: &UnreadShared, size: usize) {
        let mut state = self.state();
        if state.is_given_up {
            return;
        }
        if state.unsent == 0 {
            state.moved = shared.moves.fetch_add(1, Ordering::Relaxed);
        }
        state.unsent += size;
        shared.unsent.fetch_add(size, Ordering::Relaxed);
    }

    /// The client took something; false when it is given up.
    fn took(&self, shared: &UnreadShared, change: impl FnOnce(&mut UnreadState)) -> bool {
        let mut state = self.state();
        if !state.is_given_up {
            state.moved = shared.moves.fetch_add(1, Ordering::Relaxed);
            change(&mut state);
        }
        !state.is_given_up
    }

    /// When it moved last; nothing where all is sent.
    fn waits_since(&self) -> Option<u64> {
        let state = self.state();
        (state.unsent > 0).then_some(state.moved)
    }

    fn end(&self) {
        let waiting = self.state().waiting.take();
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Returns what was on its way, which goes with the connection.
    fn give_up(&self) -> usize {
        let mut state = self.state();
        state.is_given_up = true;
        self.hang_up.0.notify_one();
        std::mem::take(&mut state.unsent)
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }
}

/// It is sent, or will never be.
impl Drop for Piece {
    fn drop(&mut self) {
        let size = self.size;
        if self.account.took(&self.shared, |state| state.unsent -= size) {
            self.shared.unsent.fetch_sub(size, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn is_asked(hang_up: &HangUp) -> bool {
        hang_up.asked().now_or_never().is_some()
    }

    #[test]
    fn the_watch_that_was_read_least_lately_ends_when_all_are_too_much() {
        let watches = UnreadWatches::at_most(1000);
        let [idle, reading, last] = std::array::from_fn(|_| HangUp::default());
        let (of_idle, of_reading) = (watches.begin(&idle), watches.begin(&reading));
        let unread = of_idle.send(Bytes::from(vec![0; 600]));
        for _ in 0..10 {
            drop(of_reading.send(Bytes::from(vec![0; 300])));
        }
        assert!(!is_asked(&idle) && !is_asked(&reading));
        let of_last = watches.begin(&last);
        let piece = of_last.send(Bytes::from(vec![0; 600]));
        assert!(is_asked(&idle) && !is_asked(&reading) && !is_asked(&last));
        // What it had is counted out once.
        drop((unread, of_idle));
        assert_eq!(watches.0.unsent.load(Ordering::Relaxed), 600);
        drop(piece);
        assert_eq!(watches.0.unsent.load(Ordering::Relaxed), 0);
        drop((of_reading, of_last));
        assert!(watches.0.watches().is_empty());
    }
}
