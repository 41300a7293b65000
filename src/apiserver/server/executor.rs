//! Runs what belongs to a connection.

use clock::Clock;

/// Runs the tasks of a connection, as those of HTTP/2's streams.
#[derive(Clone)]
pub(super) struct Executor(pub(super) Clock);

impl<F> hyper::rt::Executor<F> for Executor
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    fn execute(&self, task: F) {
        self.0.spawn(task);
    }
}
