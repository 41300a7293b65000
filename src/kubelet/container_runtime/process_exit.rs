//! Processes that others end.

use sync::Mutex;
use tokio::sync::Notify;

/// A process that ends because somebody asked it over the network to.
#[derive(Debug, Default)]
pub struct ProcessExit {
    code: Mutex<Option<(i32, &'static str)>>,
    asked: Notify,
}

impl ProcessExit {
    /// It is to end with this code. Whoever asks first says with which.
    pub fn ask(&self, code: i32) {
        self.kill(code, "");
    }

    /// Somebody ends it, for this reason.
    pub fn kill(&self, code: i32, reason: &'static str) {
        self.code.lock().get_or_insert((code, reason));
        self.asked.notify_waiters();
    }

    /// Why it ends, where that is not its own doing.
    pub fn reason(&self) -> &'static str {
        self.code.lock().map_or("", |(_, reason)| reason)
    }

    /// Waits until somebody asks, and says with which code.
    pub async fn asked(&self) -> i32 {
        loop {
            let asked = self.asked.notified();
            if let Some((code, _)) = *self.code.lock() {
                return code;
            }
            asked.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_asks_first_says_with_which_code() {
        let exit = ProcessExit::default();
        let mut waiting = std::pin::pin!(exit.asked());
        assert!(futures::poll!(&mut waiting).is_pending());
        exit.ask(7);
        exit.ask(0);
        assert_eq!((waiting.await, exit.asked().await), (7, 7));
    }
}
