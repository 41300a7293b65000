//! `SecondChecks`: what a request needs to be allowed beside what its path says.

use std::sync::Arc;

use super::info::RequestInfo;
use sync::Mutex;

/// So many are noted of one request, whose body may name any number of objects; more are not.
const MAX_NOTED: usize = 64;

/// Where handlers and admission plugins note what they ask the authorizers for. Without a listener nothing is
/// noted. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct SecondChecks(Option<Arc<Mutex<Vec<Arc<RequestInfo>>>>>);

impl SecondChecks {
    /// With a listener.
    pub fn listened_to() -> SecondChecks {
        SecondChecks(Some(Arc::default()))
    }

    /// Whether anybody wants to know.
    pub fn is_listened_to(&self) -> bool {
        self.0.is_some()
    }

    /// The user has to be allowed this, too; where one of several rights is enough, the narrowest.
    pub fn note(&self, needed: &RequestInfo) {
        let Some(noted) = &self.0 else { return };
        let mut noted = noted.lock();
        if noted.len() < MAX_NOTED {
            noted.push(Arc::new(needed.clone()));
        }
    }

    /// What was noted, in order.
    pub fn noted(&self) -> Vec<Arc<RequestInfo>> {
        self.0.as_ref().map(|noted| noted.lock().clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_is_noted_for_who_listens_and_not_without_bound() {
        let nobody = SecondChecks::default();
        nobody.note(&RequestInfo::default());
        assert!(nobody.noted().is_empty() && !nobody.is_listened_to());
        let listened_to = SecondChecks::listened_to();
        (0..=MAX_NOTED).for_each(|_| listened_to.clone().note(&RequestInfo::default()));
        assert_eq!(listened_to.noted().len(), MAX_NOTED);
    }
}
