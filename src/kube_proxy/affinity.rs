//! Who was sent where, for Services that send somebody to the same endpoint again (`sessionAffinity:
//! ClientIP`; the kernel's `recent` lists).

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// So many are remembered. When there are more, all whose time is over are forgotten; when that is not
/// enough, all are.
pub(crate) const MAX_REMEMBERED: usize = 65_536;

/// Whose traffic: the Service, its port, and who asks.
type Asker = (Arc<str>, u16, IpAddr);

/// Who was sent where.
#[derive(Default)]
pub(crate) struct Affinities {
    sent: HashMap<Asker, SentTo>,
}

struct SentTo {
    to: SocketAddr,
    /// The end of its time.
    until: Duration,
}

impl Affinities {
    /// Where somebody is sent again, if that is still among those who take traffic; his time begins anew.
    pub(crate) fn again(
        &mut self,
        asker: &Asker,
        now: Duration,
        timeout: Duration,
        is_usable: impl Fn(SocketAddr) -> bool,
    ) -> Option<SocketAddr> {
        let sent = self.sent.get_mut(asker).filter(|sent| sent.until > now && is_usable(sent.to))?;
        sent.until = now + timeout;
        Some(sent.to)
    }

    pub(crate) fn remember(&mut self, asker: Asker, to: SocketAddr, now: Duration, timeout: Duration) {
        if self.sent.len() >= MAX_REMEMBERED {
            self.sent.retain(|_, sent| sent.until > now);
        }
        if self.sent.len() >= MAX_REMEMBERED {
            self.sent.clear();
        }
        self.sent.insert(asker, SentTo { to, until: now + timeout });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_bound_are_forgotten() {
        let mut affinity = Affinities::default();
        let (to, second) = ("10.0.0.1:80".parse().unwrap(), Duration::from_secs(1));
        let service: Arc<str> = "default/web".into();
        let asker = |number: usize| -> Asker {
            (service.clone(), 80, IpAddr::V4(u32::try_from(number).unwrap().into()))
        };
        for number in 0..MAX_REMEMBERED {
            affinity.remember(asker(number), to, Duration::ZERO, second);
        }
        assert_eq!(affinity.again(&asker(0), Duration::ZERO, second * 9, |_| true), Some(to));
        // The time of all others is over.
        affinity.remember(asker(MAX_REMEMBERED), to, second, second);
        assert_eq!(affinity.sent.len(), 2);
        for number in 0..MAX_REMEMBERED {
            affinity.remember(asker(number), to, second, second);
        }
        assert!(affinity.sent.len() < MAX_REMEMBERED);
    }
}
