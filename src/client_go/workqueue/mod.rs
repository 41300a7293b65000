//! workqueue: which objects a controller still has to look at (`k8s.io/client-go/util/workqueue`).
//! Next: src/controllers/controller.rs
//!
//! Comes in: keys, from event handlers, as often as they like. Goes out: each key to one worker at a time.
//! Must not know what a key stands for. What every queue here guarantees, in upstream's words:
//! - *fair*: keys are handed out in the order in which they were added;
//! - *stingy*: a key is handed to one worker at a time; added many times before it is handed out, it is
//!   handed out once; added while a worker has it, it is handed out again after that worker is done;
//! - *many producers and consumers*: a key may be added from anywhere, by the worker that has it too;
//! - *shutdown*: no key is accepted any more, and workers get what is left and then none.
//!
//! Three queues, each a layer over the one before: [`Queue`], [`DelayingQueue`] (later), [`WorkQueue`]
//! (later, and later still each time it fails).

mod counts;
mod delaying_queue;
mod key;
mod queue;
mod rate_limiters;
mod rate_limiting_queue;

pub use counts::{QueueLook, QueueState, WorkQueueCounts};
pub use delaying_queue::DelayingQueue;
pub use key::{Key, QueueKey};
pub use queue::Queue;
pub use rate_limiters::{
    BucketRateLimiter, ItemExponentialFailureRateLimiter, MaxOfRateLimiter, RateLimiter,
    default_controller_rate_limiter,
};
pub use rate_limiting_queue::WorkQueue;
