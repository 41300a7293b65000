//! A candidate with whom nobody competes, as on a store that no other process has: the Lease is there for
//! whoever looks at it, and nothing waits for it.

use serde_json::Value;

use super::{LeaderElectionConfig, LeaderElector};
use apimachinery::status::Status;
use apis::coordination::lease::LEASES;

impl LeaderElector {
    /// Keeps the Lease for as long as it is polled. Who held it before is gone: it is taken over at once, not
    /// when it has run out. Time does not stop for its renewals.
    pub async fn hold_alone(mut self) {
        let mut has_led = false;
        let mut was_late = false;
        loop {
            match Box::pin(self.write_alone(has_led)).await {
                Ok(()) if !has_led => {
                    has_led = true;
                    self.metrics.leads(true);
                    self.tell("became leader");
                }
                Ok(()) => {}
                // The last word of a life that was ended just now.
                Err(status) if status.is_conflict() && !was_late => {
                    was_late = true;
                    continue;
                }
                Err(status) => {
                    tracing::debug!(status.message, "lease {}: not written just now", self.described());
                }
            }
            was_late = false;
            self.clock.pulse(self.config.times.retry_period).await;
        }
    }

    /// Over what was written last, or what is there, or a new one.
    async fn write_alone(&mut self, has_led: bool) -> Result<(), Status> {
        if let Some(last) = self.observed.take() {
            match self.write(&last.lease, self.spec(Some(&last))).await {
                Ok(written) => {
                    if written.metadata.resource_version != last.lease.metadata.resource_version {
                        self.clock.overlook_change();
                    }
                    self.note(written);
                    return Ok(());
                }
                Err(status) if status.is_conflict() || status.is_not_found() => self.metrics.slow_path(),
                Err(status) => return Err(status),
            }
        }
        let LeaderElectionConfig { namespace, name, .. } = &self.config;
        match self.client.get(&LEASES, namespace, name).await {
            Ok(found) => self.note(found),
            Err(status) if status.is_not_found() => return self.create().await.map_err(Status::internal),
            Err(status) => return Err(status),
        }
        let Some(mut found) = self.observed.take() else { return Ok(()) };
        if !has_led {
            // Of an earlier life, even where a seed gives both lives one name.
            found.spec["holderIdentity"] = Value::Null;
        }
        let written = self.write(&found.lease, self.spec(Some(&found))).await?;
        self.note(written);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::super::tests::{LeaseServer, pass, stepped};

    #[tokio::test]
    async fn who_is_alone_takes_over_at_once_and_renews_whenever_time_stands() {
        let (server, clock) = (Arc::new(LeaseServer::default()), stepped());
        let mut before = server.elector("a", &clock);
        before.acquire().await;
        for transitions in 1..=2 {
            // The second has the identity of the first.
            let elector = server.elector("b", &clock);
            let mut holding = tokio::spawn(elector.hold_alone());
            assert_eq!(pass(&clock, 1, &mut holding).await, None);
            assert_eq!(
                (server.says("holderIdentity"), server.says("leaseTransitions")),
                (json!("b"), json!(transitions))
            );
            let acquired = server.says("acquireTime");
            assert_eq!(pass(&clock, 30, &mut holding).await, None);
            assert_eq!(server.says("acquireTime"), acquired);
            let renewed = server.says("renewTime");
            assert!(renewed.as_str() > acquired.as_str(), "{renewed}");
            holding.abort();
            assert!(holding.await.unwrap_err().is_cancelled());
            clock.advance(std::time::Duration::from_secs(60));
            assert_eq!(server.says("renewTime"), renewed, "it is gone");
        }
    }

    #[tokio::test]
    async fn a_lease_that_cannot_be_written_is_written_later() {
        let (server, clock) = (Arc::new(LeaseServer::default()), stepped());
        server.goes_away(true);
        let mut holding = tokio::spawn(server.elector("a", &clock).hold_alone());
        assert_eq!(pass(&clock, 5, &mut holding).await, None);
        server.goes_away(false);
        assert_eq!(pass(&clock, 5, &mut holding).await, None);
        assert_eq!(server.says("leaseTransitions"), json!(0));
        let acquired = server.says("acquireTime");
        server.goes_away(true);
        assert_eq!(pass(&clock, 60, &mut holding).await, None);
        let renewed = server.says("renewTime");
        server.goes_away(false);
        assert_eq!(pass(&clock, 5, &mut holding).await, None);
        assert!(server.says("renewTime").as_str() > renewed.as_str(), "it runs on without it meanwhile");
        assert_eq!((server.says("acquireTime"), server.says("leaseTransitions")), (acquired, json!(0)));
        holding.abort();
    }
}
