//! Verdicts that were given lately: most of what is asked was asked before.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use apimachinery::object::Object;
use network::{Passage, Protocol};
use sync::Mutex;

use crate::verdict::Verdict;

/// So many are kept; with one more all are forgotten, and judged anew.
pub(crate) const MAX_VERDICTS: usize = 4_096;

/// The pods of a passage, as they were when it was judged: who asks, in whose name it arrives, who is asked.
pub(crate) type PassagePods = [Option<Arc<Object>>; 3];

/// Who asks, in whose name, and for what. From which port he does is nothing to any policy.
type JudgedBefore = (IpAddr, IpAddr, SocketAddr, Protocol);

/// Verdicts by what was asked. Bound: [`MAX_VERDICTS`].
#[derive(Default)]
pub(crate) struct Verdicts(Mutex<HashMap<JudgedBefore, KeptVerdict>>);

struct KeptVerdict {
    /// Under which policies and namespaces.
    standing: u64,
    pods: PassagePods,
    verdict: Arc<Verdict>,
}

impl Verdicts {
    /// What was said of just this, while policies, namespaces and pods were what they are now.
    pub(crate) fn find(
        &self,
        (passage, asker): (Passage, IpAddr),
        standing: u64,
        pods: &PassagePods,
    ) -> Option<Arc<Verdict>> {
        let kept = self.0.lock();
        let kept = kept.get(&key(passage, asker))?;
        let is_same = kept.standing == standing && kept.pods.iter().zip(pods).all(is_same_pod);
        is_same.then(|| kept.verdict.clone())
    }

    pub(crate) fn keep(
        &self,
        (passage, asker): (Passage, IpAddr),
        standing: u64,
        pods: PassagePods,
        verdict: &Arc<Verdict>,
    ) {
        let mut kept = self.0.lock();
        if kept.len() >= MAX_VERDICTS {
            kept.clear();
        }
        kept.insert(key(passage, asker), KeptVerdict { standing, pods, verdict: verdict.clone() });
    }
}

fn key(passage: Passage, asker: IpAddr) -> JudgedBefore {
    (asker, passage.from.ip(), passage.to, passage.protocol)
}

/// A pod that has changed is another object; the one that is kept cannot have gone, and its place with it.
fn is_same_pod(pods: (&Option<Arc<Object>>, &Option<Arc<Object>>)) -> bool {
    match pods {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_one_more_than_the_bound_all_are_forgotten() {
        let verdicts = Verdicts::default();
        let verdict = Arc::new(Verdict::free());
        let asked = |number: usize| {
            let number = u32::try_from(number).unwrap();
            let from = SocketAddr::new(IpAddr::V4(number.into()), 1);
            let passage = Passage { from, to: from, protocol: Protocol::Tcp };
            (passage, from.ip())
        };
        for number in 0..MAX_VERDICTS {
            verdicts.keep(asked(number), 1, PassagePods::default(), &verdict);
        }
        assert!(verdicts.find(asked(0), 1, &PassagePods::default()).is_some());
        assert!(verdicts.find(asked(0), 2, &PassagePods::default()).is_none());
        verdicts.keep(asked(MAX_VERDICTS), 1, PassagePods::default(), &verdict);
        assert!(verdicts.find(asked(0), 1, &PassagePods::default()).is_none());
        assert_eq!(verdicts.0.lock().len(), 1);
    }
}
