//! `ConnectionCut`: ends a connection from elsewhere that goes on with another protocol than HTTP, as a shell
//! in a pod does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use sync::Mutex;

/// On a request from a socket that asks for another protocol: whoever let it in may end it. From then on it
/// is as if the client had hung up. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct ConnectionCut(Arc<CutState>);

#[derive(Debug, Default)]
struct CutState {
    is_made: AtomicBool,
    reader: Mutex<Option<Waker>>,
}

impl ConnectionCut {
    /// The connection ends now.
    pub fn make(&self) {
        self.0.is_made.store(true, Ordering::SeqCst);
        if let Some(reader) = self.0.reader.lock().take() {
            reader.wake();
        }
    }

    /// Whether it has been.
    pub fn is_made(&self) -> bool {
        self.0.is_made.load(Ordering::SeqCst)
    }

    /// Whether nobody else has to do with the connection any more: it has ended by itself.
    pub fn is_alone(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Ready when it is made; for whoever has read all that there is for now.
    pub fn poll_made(&self, context: &Context<'_>) -> Poll<()> {
        *self.0.reader.lock() = Some(context.waker().clone());
        // Looked at after the waker is there: who makes it says so before it looks for one.
        if self.is_made() { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test]
    async fn whoever_waits_hears_of_it() {
        let cut = ConnectionCut::default();
        let own = cut.clone();
        assert!(!cut.is_alone());
        let waiting = tokio::spawn(async move { poll_fn(|context| own.poll_made(context)).await });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        cut.make();
        waiting.await.unwrap();
        assert!(cut.is_made() && cut.is_alone());
    }
}
