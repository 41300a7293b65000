//! Jobs and what asks for them: the batch controllers in a whole cluster on a stepped clock.

mod courses;
mod cron_jobs;
mod endings;
mod ttl;
