//! `LeaderElector`: of several who could do the same work one does it, whoever holds a Lease (client-go's
//! `tools/leaderelection` with a `resourcelock.LeaseLock`).
//!
//! Whoever holds it writes it anew every `retry_period`; whoever does not get that done for `renew_deadline`
//! has lost it, and stops. The others take it when nobody has written it for `lease_duration`, by their own
//! clocks from when they saw it: clocks that disagree do no harm, as long as they run equally fast.

mod alone;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::Client;
use super::component::ComponentContext;
use super::event_recorder::EventRecorder;
use super::leader_election_metrics::LeaderElectionMetrics;
use super::leader_election_times::{ElectionTimesError, JITTER_FACTOR, LeaderElectionTimes};
use super::lease_hold::LeaseHold;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apimachinery::time::rfc3339_micro;
use apis::coordination::lease::LEASES;
use clock::Clock;
use entropy::Entropy;

/// Which Lease (`leaderelection.LeaderElectionConfig`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderElectionConfig {
    /// The Lease's name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Who we are: nobody else says the same.
    pub identity: String,
    /// How long everything takes.
    pub times: LeaderElectionTimes,
}

/// One candidate.
pub struct LeaderElector {
    config: LeaderElectionConfig,
    client: Client,
    recorder: EventRecorder,
    clock: Clock,
    entropy: Entropy,
    metrics: Arc<LeaderElectionMetrics>,
    observed: Option<ObservedLease>,
    hold: LeaseHold,
}

/// Why an attempt has failed.
enum FailedAttempt {
    /// Another holds it.
    Held(String),
    /// Perhaps the next one succeeds.
    Otherwise(String),
}

/// The Lease as it was seen last.
struct ObservedLease {
    lease: Arc<Object>,
    spec: Value,
    /// When this was seen first.
    since: Duration,
}

impl ObservedLease {
    fn holder(&self) -> &str {
        self.spec["holderIdentity"].as_str().unwrap_or_default()
    }

    /// Whether its holder may still think that it is his.
    fn is_valid(&self, now: Duration) -> bool {
        let seconds = self.spec["leaseDurationSeconds"].as_u64().unwrap_or_default();
        self.since + Duration::from_secs(seconds) > now
    }
}

impl LeaderElector {
    /// In the name of a component, which is told of by Events of its own.
    ///
    /// # Errors
    /// As [`LeaderElectionTimes::check`].
    pub fn new(
        config: LeaderElectionConfig,
        context: &ComponentContext,
    ) -> Result<LeaderElector, ElectionTimesError> {
        config.times.check()?;
        let ComponentContext { client, recorder, clock, entropy, .. } = context.clone();
        let metrics = Arc::new(LeaderElectionMetrics::of(&config.name));
        let hold = LeaseHold::new(clock.clone());
        Ok(LeaderElector { config, client, recorder, clock, entropy, metrics, observed: None, hold })
    }

    /// What it counts.
    pub fn metrics(&self) -> Arc<LeaderElectionMetrics> {
        self.metrics.clone()
    }

    /// Whether it is ours, for whoever acts in its name.
    pub fn hold(&self) -> LeaseHold {
        self.hold.clone()
    }

    /// Returns when the Lease is ours.
    pub async fn acquire(&mut self) {
        let described = self.described();
        tracing::info!("attempting to acquire leader lease {described}...");
        while self.attempt_in_time().await.is_err() {
            let pause = self.entropy.jitter(self.config.times.retry_period, JITTER_FACTOR);
            self.clock.sleep(pause).await;
        }
        tracing::info!("successfully acquired lease {described}");
        self.metrics.leads(true);
        self.tell("became leader");
    }

    /// Returns when it is ours no more.
    pub async fn renew(&mut self) {
        while self.renew_once().await {
            self.clock.sleep(self.config.times.retry_period).await;
        }
        self.hold.end();
        self.metrics.leads(false);
        tracing::info!("failed to renew lease {}: timed out waiting for the condition", self.described());
        self.tell("stopped leading");
    }

    /// Gives it up, so that nobody has to wait for its end (`ReleaseOnCancel`).
    ///
    /// # Errors
    /// It could not be written: then it is free when it runs out.
    pub async fn release(&mut self) -> Result<(), Status> {
        let Some(observed) = self.observed.take_if(|observed| observed.holder() == self.config.identity)
        else {
            return Ok(());
        };
        self.hold.end();
        self.metrics.leads(false);
        let now = rfc3339_micro(self.clock.now());
        let spec = json!({"leaseDurationSeconds": 1, "renewTime": now, "acquireTime": now,
            "leaseTransitions": observed.spec["leaseTransitions"]});
        match self.write(&observed.lease, spec.clone()).await {
            // A renewal that was under way when this began has come before it.
            Err(status) if status.code == 409 => {
                let LeaderElectionConfig { namespace, name, .. } = &self.config;
                let found = self.client.get(&LEASES, namespace, name).await?;
                if found.to_value()["spec"]["holderIdentity"] == *self.config.identity {
                    self.write(&found, spec).await?;
                }
            }
            written => drop(written?),
        }
        self.tell("stopped leading");
        Ok(())
    }

    /// Whether it was renewed before the deadline, and before it was another's.
    async fn renew_once(&mut self) -> bool {
        let (clock, pause) = (self.clock.clone(), self.config.times.retry_period);
        let deadline = self.config.times.renew_deadline;
        let renewing = async {
            loop {
                match self.attempt_in_time().await {
                    Ok(()) => return true,
                    Err(FailedAttempt::Held(_)) => return false,
                    Err(FailedAttempt::Otherwise(_)) => self.clock.sleep(pause).await,
                }
            }
        };
        clock.timeout(deadline, renewing).await.unwrap_or(false)
    }

    /// `tryAcquireOrRenew`, for no longer than half of the deadline: there is time for a second one. What is
    /// acquired is ours until it was to be renewed, from before it was asked for.
    async fn attempt_in_time(&mut self) -> Result<(), FailedAttempt> {
        let (clock, deadline) = (self.clock.clone(), self.config.times.renew_deadline);
        let begun = clock.elapsed();
        let outcome = clock.timeout(deadline / 2, self.attempt()).await;
        let outcome = outcome.unwrap_or_else(|_| Err(FailedAttempt::Otherwise("no answer in time".into())));
        match &outcome {
            Ok(()) => self.hold.last_until(begun + deadline),
            Err(FailedAttempt::Held(why) | FailedAttempt::Otherwise(why)) => {
                tracing::debug!("lease {}: {why}", self.described());
            }
        }
        outcome
    }

    async fn attempt(&mut self) -> Result<(), FailedAttempt> {
        let now = self.clock.elapsed();
        if let Some(observed) = self.observed.as_ref().filter(|observed| self.holds(observed, now)) {
            let spec = self.spec(Some(observed));
            if let Ok(written) = self.write(&observed.lease, spec).await {
                self.note(written);
                return Ok(());
            }
            // Somebody has written it meanwhile.
            self.metrics.slow_path();
        }
        let LeaderElectionConfig { namespace, name, .. } = &self.config;
        let found = match self.client.get(&LEASES, namespace, name).await {
            Err(status) if status.is_not_found() => {
                return self.create().await.map_err(FailedAttempt::Otherwise);
            }
            Err(status) => {
                let why = format!("error retrieving resource lock: {}", status.message);
                return Err(FailedAttempt::Otherwise(why));
            }
            Ok(found) => found,
        };
        self.note(found);
        let Some(observed) = &self.observed else { return Ok(()) };
        let holder = observed.holder();
        let is_anothers = !holder.is_empty() && holder != self.config.identity;
        if is_anothers && observed.is_valid(self.clock.elapsed()) {
            return Err(FailedAttempt::Held(format!("it is held by {holder} and has not yet expired")));
        }
        let written = self.write(&observed.lease, self.spec(Some(observed))).await;
        let why = |status: Status| FailedAttempt::Otherwise(format!("failed to update: {}", status.message));
        self.note(written.map_err(why)?);
        Ok(())
    }

    async fn create(&mut self) -> Result<(), String> {
        let LeaderElectionConfig { namespace, name, .. } = &self.config;
        let metadata = json!({"name": name, "namespace": namespace});
        let lease = json!({"metadata": metadata, "spec": self.spec(None)});
        let created = self.client.create(&LEASES, namespace, lease).await;
        let created = created.map_err(|status| format!("error initially creating it: {}", status.message))?;
        self.note(created);
        Ok(())
    }

    async fn write(&self, lease: &Object, spec: Value) -> Result<Arc<Object>, Status> {
        let mut lease = lease.to_value();
        lease["spec"] = spec;
        let LeaderElectionConfig { namespace, name, .. } = &self.config;
        self.client.update(&LEASES, namespace, name, lease).await
    }

    /// What we write over what was there.
    fn spec(&self, before: Option<&ObservedLease>) -> Value {
        let now = rfc3339_micro(self.clock.now());
        let transitions = before.map_or(0, |before| before.spec["leaseTransitions"].as_u64().unwrap_or(0));
        let own = before.filter(|before| before.holder() == self.config.identity);
        let (acquired, transitions) = match own {
            Some(own) => (own.spec["acquireTime"].clone(), transitions),
            None => (json!(now), transitions + u64::from(before.is_some())),
        };
        json!({
            "holderIdentity": self.config.identity,
            "leaseDurationSeconds": self.config.times.lease_duration.as_secs(),
            "acquireTime": acquired,
            "renewTime": now,
            "leaseTransitions": transitions,
        })
    }

    fn holds(&self, observed: &ObservedLease, now: Duration) -> bool {
        observed.holder() == self.config.identity && observed.is_valid(now)
    }

    /// Its time begins anew when it says something else than before.
    fn note(&mut self, lease: Arc<Object>) {
        let spec = lease.to_value()["spec"].take();
        let known = self.observed.as_ref().filter(|known| known.spec == spec);
        let since = known.map_or_else(|| self.clock.elapsed(), |known| known.since);
        self.observed = Some(ObservedLease { lease, spec, since });
    }

    fn tell(&self, what: &str) {
        let Some(lease) = self.observed.as_ref().map(|observed| &*observed.lease) else { return };
        let message = format!("{} {what}", self.config.identity);
        self.recorder.event((&LEASES, lease), "Normal", "LeaderElection", message);
    }

    fn described(&self) -> String {
        format!("{}/{}", self.config.namespace, self.config.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apimachinery::user::UserInfo;
    use apimachinery::wire::{
        ApiRequest, ApiResponse, ApiService, DecodedBody, ObjectAnswer, status_response,
    };
    use chrono::DateTime;
    use component_base::metrics::Render;
    use flow::Flow;
    use sync::Mutex;

    /// Holds one Lease, and knows whether it can be reached.
    #[derive(Default)]
    pub(super) struct LeaseServer {
        lease: Mutex<Option<Value>>,
        is_away: Mutex<bool>,
    }

    impl LeaseServer {
        fn answer(&self, request: &ApiRequest) -> ApiResponse {
            if *self.is_away.lock() {
                return status_response(Status::failure(503, "", "away"), true);
            }
            let mut lease = self.lease.lock();
            let body = request.extensions().get().map(|DecodedBody(body)| (**body).clone());
            let is_event = request.uri().path().contains("/events");
            if let Some(mut body) = body.filter(|_| !is_event) {
                let known = lease.as_ref().map(|lease| lease["metadata"]["resourceVersion"].clone());
                if known.as_ref().is_some_and(|known| *known != body["metadata"]["resourceVersion"]) {
                    return status_response(Status::failure(409, "Conflict", "it was changed"), true);
                }
                let next = known.and_then(|known| known.as_str()?.parse().ok()).unwrap_or(0) + 1;
                body["metadata"]["resourceVersion"] = u64::to_string(&next).into();
                *lease = Some(body);
            }
            let Some(lease) = &*lease else {
                return status_response(Status::not_found(&LEASES.group_resource(), "it"), true);
            };
            let mut response = ApiResponse::default();
            let object = Object::from_value(lease, vec![String::new(); LEASES.selectable.len()]);
            response.extensions_mut().insert(ObjectAnswer(Arc::new(object.unwrap())));
            response
        }

        pub(super) fn elector(self: &Arc<LeaseServer>, identity: &str, clock: &Clock) -> LeaderElector {
            let server = self.clone();
            let service = ApiService::new(tower::service_fn(move |request: ApiRequest| {
                std::future::ready(Ok(server.answer(&request)))
            }));
            let user = Arc::new(UserInfo::authenticated("system:kube-scheduler", &[]));
            let client = Client::new(service, user, clock.clone(), Flow::off());
            let origin = ("default-scheduler", "");
            let context = ComponentContext::new("test", origin, client, clock.clone(), Entropy::seeded(1));
            LeaderElector::new(config(identity), &context).unwrap()
        }

        /// Whether it can be reached from now on.
        pub(super) fn goes_away(&self, is_away: bool) {
            *self.is_away.lock() = is_away;
        }

        pub(super) fn says(&self, name: &str) -> Value {
            self.lease.lock().as_ref().map(|lease| lease["spec"][name].clone()).unwrap_or_default()
        }
    }

    fn config(identity: &str) -> LeaderElectionConfig {
        LeaderElectionConfig {
            name: "kube-scheduler".into(),
            namespace: "kube-system".into(),
            identity: identity.into(),
            times: LeaderElectionTimes::default(),
        }
    }

    pub(super) fn stepped() -> Clock {
        Clock::stepped(DateTime::from_timestamp(1_700_000_000, 0).unwrap())
    }

    /// Lets time pass until it is over, or for so long; says how long that took.
    pub(super) async fn pass<T>(
        clock: &Clock,
        most: u64,
        running: &mut tokio::task::JoinHandle<T>,
    ) -> Option<u64> {
        for second in 0..most {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            if running.is_finished() {
                return Some(second);
            }
            clock.advance(Duration::from_secs(1));
        }
        None
    }

    #[tokio::test]
    async fn the_second_takes_over_when_the_first_has_been_silent_for_the_whole_lease() {
        let (server, clock) = (Arc::new(LeaseServer::default()), stepped());
        let (mut first, mut second) = (server.elector("a", &clock), server.elector("b", &clock));
        first.acquire().await;
        assert_eq!((server.says("holderIdentity"), server.says("leaseTransitions")), (json!("a"), json!(0)));
        let mut waiting = tokio::spawn(async move {
            second.acquire().await;
            second
        });
        let renewing = tokio::spawn(async move { first.renew().await });
        assert_eq!(pass(&clock, 60, &mut waiting).await, None, "it is renewed");
        let renewed = server.says("renewTime");
        renewing.abort();
        let took = pass(&clock, 60, &mut waiting).await.expect("it is free");
        assert!((15..=15 + 5).contains(&took), "{took}");
        assert_eq!(server.says("holderIdentity"), "b");
        assert_eq!(
            (server.says("leaseTransitions"), server.says("leaseDurationSeconds")),
            (json!(1), json!(15))
        );
        assert_ne!(server.says("acquireTime"), renewed);
    }

    #[tokio::test]
    async fn whoever_cannot_renew_stops_before_another_may_begin() {
        let (server, clock) = (Arc::new(LeaseServer::default()), stepped());
        let mut first = server.elector("a", &clock);
        first.acquire().await;
        let mut renewing = tokio::spawn(async move { first.renew().await });
        assert_eq!(pass(&clock, 30, &mut renewing).await, None);
        server.goes_away(true);
        let took = pass(&clock, 30, &mut renewing).await.expect("it has lost it");
        assert!((10..15).contains(&took), "{took}");
    }

    #[tokio::test]
    async fn a_short_absence_of_the_server_loses_nothing() {
        let (server, clock) = (Arc::new(LeaseServer::default()), stepped());
        let mut first = server.elector("a", &clock);
        first.acquire().await;
        let acquired = server.says("acquireTime");
        let mut renewing = tokio::spawn(async move { first.renew().await });
        server.goes_away(true);
        assert_eq!(pass(&clock, 8, &mut renewing).await, None);
        server.goes_away(false);
        assert_eq!(pass(&clock, 30, &mut renewing).await, None);
        assert_eq!((server.says("acquireTime"), server.says("leaseTransitions")), (acquired, json!(0)));
        renewing.abort();
    }

    #[tokio::test]
    async fn what_is_released_is_taken_at_once() {
        let (server, clock) = (Arc::new(LeaseServer::default()), stepped());
        let (mut first, mut second) = (server.elector("a", &clock), server.elector("b", &clock));
        let metrics = first.metrics();
        let is_said = |line: &str| {
            let mut text = String::new();
            metrics.render(&mut text);
            text.lines().any(|said| said == line)
        };
        assert!(is_said("leader_election_master_status{name=\"kube-scheduler\"} 0"));
        first.acquire().await;
        assert!(is_said("leader_election_master_status{name=\"kube-scheduler\"} 1"));
        assert!(second.attempt_in_time().await.is_err(), "it is held");
        // As a renewal that was under way when it was told to stop.
        assert!(server.elector("a", &clock).attempt_in_time().await.is_ok());
        first.release().await.unwrap();
        assert!(is_said("leader_election_master_status{name=\"kube-scheduler\"} 0"));
        assert_eq!(server.says("holderIdentity"), Value::Null);
        assert!(second.attempt_in_time().await.is_ok());
        assert_eq!((server.says("holderIdentity"), server.says("leaseTransitions")), (json!("b"), json!(1)));
        // What is another's is not given up.
        first.release().await.unwrap();
        assert_eq!(server.says("holderIdentity"), "b");
    }

    #[tokio::test]
    async fn clocks_that_are_a_day_apart_do_no_harm() {
        for seconds in [0, 1_700_086_400] {
            let (server, here) = (Arc::new(LeaseServer::default()), stepped());
            let there = Clock::stepped(DateTime::from_timestamp(seconds, 0).unwrap());
            let (mut first, mut second) = (server.elector("a", &there), server.elector("b", &here));
            for _ in 0..5 {
                assert!(first.attempt_in_time().await.is_ok(), "it is renewed");
                assert!(second.attempt_in_time().await.is_err(), "it is held");
                [&here, &there].into_iter().for_each(|clock| clock.advance(Duration::from_secs(10)));
            }
            here.advance(Duration::from_secs(5));
            assert!(second.attempt_in_time().await.is_ok(), "it is free");
        }
    }

    /// As by SIGSTOP, for longer than the Lease lasts.
    #[tokio::test]
    async fn whoever_was_paused_writes_nothing_and_ends_when_it_sees_another() {
        let (server, clock) = (Arc::new(LeaseServer::default()), stepped());
        let (mut first, mut second) = (server.elector("a", &clock), server.elector("b", &clock));
        let hold = first.hold();
        assert!(!hold.is_held());
        first.acquire().await;
        assert!(second.attempt_in_time().await.is_err() && hold.is_held());
        clock.advance(Duration::from_secs(16));
        assert!(!hold.is_held(), "though nothing of it has gone on yet");
        second.acquire().await;
        assert!(second.hold().is_held());
        // Without any time passing.
        first.renew().await;
        assert!(!hold.is_held());
        // Whoever was away when nobody wanted it goes on.
        clock.advance(Duration::from_secs(16));
        assert!(!second.hold().is_held());
        assert!(second.renew_once().await && second.hold().is_held());
    }
}
