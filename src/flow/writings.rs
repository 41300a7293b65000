//! Who writes what: what a cluster is told that does not come to rest.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::lane::is_renewal;
use super::recorded::{Recorded, StepId};
use super::step::Step;

/// An object, and who wrote it how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writings {
    /// As `deployments.apps default/web`.
    pub subject: String,
    /// Users and how often each wrote it; who wrote most first.
    pub writers: Vec<(Arc<str>, usize)>,
    /// How often a write followed one of somebody else.
    pub turns: usize,
}

impl Writings {
    /// All writes.
    pub fn count(&self) -> usize {
        self.writers.iter().map(|(_, count)| count).sum()
    }
}

impl fmt::Display for Writings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = |count: &usize| if *count == 1 { "once".into() } else { format!("{count} times") };
        let by = |(user, count): &(Arc<str>, usize)| format!("{} by {user}", times(count));
        let all: Vec<String> = self.writers.iter().map(by).collect();
        write!(f, "{} is written {}", self.subject, all.join(" and "))?;
        if self.turns > 2 {
            write!(f, ", in turn: each answers the other")?;
        }
        Ok(())
    }
}

/// What was written from the step `since` on; what was written most first. Renewals of leases do not count.
pub(super) fn of(first: u64, steps: &[Recorded], since: StepId) -> Vec<Writings> {
    let at = |id: StepId| steps.get(usize::try_from(id.0.checked_sub(first)?).ok()?);
    let mut found: Vec<WrittenSoFar> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (id, recorded) in (first..).zip(steps) {
        let Step::Stored { resource, namespace, name, operation, .. } = &recorded.step else { continue };
        if id < since.0 || is_renewal(resource, *operation) {
            continue;
        }
        let key = golang::object_key::object_key(namespace, name);
        let subject = format!("{resource} {key}");
        let place = *places.entry(subject.clone()).or_insert_with(|| {
            found.push(WrittenSoFar { subject, ..WrittenSoFar::default() });
            found.len() - 1
        });
        found[place].add(writer(recorded, at));
    }
    let mut all: Vec<Writings> = found.into_iter().map(WrittenSoFar::finish).collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.count()));
    all
}

#[derive(Default)]
struct WrittenSoFar {
    subject: String,
    writers: Vec<(Arc<str>, usize)>,
    last: Option<Arc<str>>,
    turns: usize,
}

impl WrittenSoFar {
    fn add(&mut self, user: Arc<str>) {
        match self.writers.iter_mut().find(|(known, _)| *known == user) {
            Some((_, count)) => *count += 1,
            None => self.writers.push((user.clone(), 1)),
        }
        self.turns += usize::from(self.last.as_ref().is_some_and(|last| *last != user));
        self.last = Some(user);
    }

    fn finish(self) -> Writings {
        let WrittenSoFar { subject, mut writers, turns, .. } = self;
        writers.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Writings { subject, writers, turns }
    }
}

/// Who asked for a write: the last identity on the way back to its request.
fn writer<'a>(stored: &'a Recorded, at: impl Fn(StepId) -> Option<&'a Recorded>) -> Arc<str> {
    let mut step = stored;
    loop {
        match &step.step {
            Step::Impersonated { acting, .. } => return acting.clone(),
            Step::Authenticated { user, .. } if !user.is_empty() => return user.clone(),
            Step::RequestReceived { user, .. } => return user.clone(),
            _ => {}
        }
        match at(step.cause) {
            Some(cause) => step = cause,
            None => return "nobody known".into(),
        }
    }
}
