//! `Guests`: who is invited to the page, and who is there.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::crypto::ring::default_provider;

use apimachinery::user::UserInfo;
use apimachinery::wire::ShownCredentials;
use clock::Clock;
use sync::Mutex;
use tokio::sync::watch;

/// Invitations that wait at once; at the bound the oldest ends.
pub const MAX_INVITATIONS: usize = 16;
/// Sessions at once; at the bound that ends which was not used for longest.
pub const MAX_SESSIONS: usize = 64;
/// How long an invitation can be taken up, in real time: whoever opens the page lives by that.
pub const INVITATION_LASTS: Duration = Duration::from_secs(600);
/// How long a session lasts at most, in real time. It ends before, with what its guest showed to be
/// invited: a token that is revoked, a certificate that expires.
pub const SESSION_LASTS: Duration = Duration::from_secs(12 * 3600);
/// Of a key, before it is written as text.
const KEY_BYTES: usize = 32;

/// The system has no random bytes.
#[derive(Debug)]
pub struct NoRandomBytes;

impl fmt::Display for NoRandomBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the system has no random bytes for a key")
    }
}

impl std::error::Error for NoRandomBytes {}

/// Who is invited.
#[derive(Clone)]
pub struct Guest {
    /// Who it is.
    pub user: Arc<UserInfo>,
    /// What showed that, which is shown again with each request; none of who has the cluster in this process.
    pub shown: Option<ShownCredentials>,
}

/// A session while it is used.
pub(crate) struct GuestVisit {
    /// Whose it is.
    pub(crate) guest: Arc<Guest>,
    /// Closed when the session ends.
    pub(crate) ended: watch::Receiver<()>,
}

/// Invitations and sessions of one cluster's page. Cloning shares them; they end with the process.
#[derive(Clone)]
pub struct Guests(Arc<Visitors>);

struct Visitors {
    clock: Clock,
    invitations: Mutex<VecDeque<Invitation>>,
    /// The one that was used last is the last.
    sessions: Mutex<VecDeque<GuestSession>>,
}

struct Invitation {
    key: String,
    guest: Arc<Guest>,
    ends: Duration,
}

struct GuestSession {
    key: String,
    guest: Arc<Guest>,
    ends: Duration,
    /// Who uses it hears when it is gone.
    lasts: watch::Sender<()>,
}

impl Default for Guests {
    fn default() -> Guests {
        Guests::timed_by(Clock::real())
    }
}

impl Guests {
    fn timed_by(clock: Clock) -> Guests {
        let invitations = Mutex::default();
        Guests(Arc::new(Visitors { clock, invitations, sessions: Mutex::default() }))
    }

    /// A key with which the page can be opened once, in this user's name.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn invite(&self, guest: Guest) -> Result<String, NoRandomBytes> {
        let key = random_key()?;
        let ends = self.0.clock.elapsed() + INVITATION_LASTS;
        let mut invitations = self.0.invitations.lock();
        invitations.push_back(Invitation { key: key.clone(), guest: Arc::new(guest), ends });
        if invitations.len() > MAX_INVITATIONS {
            invitations.pop_front();
        }
        Ok(key)
    }

    /// The key of a new session, and whose it is, for an invitation that is still good; it is not any more.
    pub(crate) fn enter(&self, invitation: &str) -> Option<(String, Arc<UserInfo>)> {
        let now = self.0.clock.elapsed();
        let mut invitations = self.0.invitations.lock();
        invitations.retain(|one| one.ends > now);
        let at = invitations.iter().position(|one| is_same(&one.key, invitation))?;
        let guest = invitations.remove(at)?.guest;
        drop(invitations);
        let key = random_key().ok()?;
        let mut sessions = self.0.sessions.lock();
        let (ends, lasts) = (now + SESSION_LASTS, watch::Sender::new(()));
        let user = guest.user.clone();
        sessions.push_back(GuestSession { key: key.clone(), guest, ends, lasts });
        if sessions.len() > MAX_SESSIONS {
            sessions.pop_front();
        }
        Some((key, user))
    }

    /// Whose session it is.
    pub(crate) fn visit(&self, session: &str) -> Option<GuestVisit> {
        let now = self.0.clock.elapsed();
        let mut sessions = self.0.sessions.lock();
        sessions.retain(|one| one.ends > now);
        let at = sessions.iter().position(|one| is_same(&one.key, session))?;
        let session = sessions.remove(at)?;
        let visit = GuestVisit { guest: session.guest.clone(), ended: session.lasts.subscribe() };
        sessions.push_back(session);
        Some(visit)
    }

    /// The session is over, and with it what it still reads.
    pub(crate) fn end(&self, session: &str) {
        self.0.sessions.lock().retain(|one| !is_same(&one.key, session));
    }
}

fn random_key() -> Result<String, NoRandomBytes> {
    let mut bytes = [0; KEY_BYTES];
    let filled = default_provider().secure_random.fill(&mut bytes);
    filled.map_err(|_| NoRandomBytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Takes as long for keys that are nearly the same as for others.
fn is_same(key: &str, given: &str) -> bool {
    let differing = key.bytes().zip(given.bytes()).fold(0, |bits, (one, other)| bits | (one ^ other));
    key.len() == given.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jane() -> Guest {
        Guest { user: Arc::new(UserInfo::authenticated("jane", &[])), shown: None }
    }

    #[test]
    fn an_invitation_opens_one_session() {
        let guests = Guests::default();
        let invitation = guests.invite(jane()).unwrap();
        assert!(guests.visit(&invitation).is_none(), "it is no session");
        let (session, user) = guests.enter(&invitation).unwrap();
        assert_eq!(&*user.name, "jane");
        assert!(guests.enter(&invitation).is_none(), "it was used");
        assert_eq!(guests.visit(&session).unwrap().guest.user, jane().user);
        for wrong in ["", &session[1..], &format!("{session}x")] {
            assert!(guests.visit(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn an_invitation_ends_by_time_and_by_number() {
        let clock = Clock::stepped(std::time::SystemTime::UNIX_EPOCH.into());
        let guests = Guests::timed_by(clock.clone());
        let late = guests.invite(jane()).unwrap();
        clock.advance(INVITATION_LASTS);
        assert!(guests.enter(&late).is_none());
        let first = guests.invite(jane()).unwrap();
        let second = guests.invite(jane()).unwrap();
        for _ in 1..MAX_INVITATIONS {
            guests.invite(jane()).unwrap();
        }
        assert!(guests.enter(&first).is_none());
        assert!(guests.enter(&second).is_some());
    }

    #[test]
    fn a_session_ends_by_time() {
        let clock = Clock::stepped(std::time::SystemTime::UNIX_EPOCH.into());
        let guests = Guests::timed_by(clock.clone());
        let session = guests.enter(&guests.invite(jane()).unwrap()).unwrap().0;
        clock.advance(SESSION_LASTS - Duration::from_secs(1));
        assert!(guests.visit(&session).is_some());
        clock.advance(Duration::from_secs(1));
        assert!(guests.visit(&session).is_none());
    }

    #[test]
    fn who_uses_a_session_hears_of_its_end() {
        let guests = Guests::default();
        let session = guests.enter(&guests.invite(jane()).unwrap()).unwrap().0;
        let visit = guests.visit(&session).unwrap();
        guests.end("another");
        assert!(visit.ended.has_changed().is_ok());
        guests.end(&session);
        assert!(visit.ended.has_changed().is_err() && guests.visit(&session).is_none());
    }

    #[test]
    fn of_too_many_sessions_the_one_that_sleeps_longest_ends() {
        let guests = Guests::default();
        let open = || guests.enter(&guests.invite(jane()).unwrap()).unwrap().0;
        let used = open();
        let unused = open();
        for _ in 2..MAX_SESSIONS {
            open();
        }
        assert!(guests.visit(&used).is_some());
        open();
        assert!(guests.visit(&used).is_some());
        assert!(guests.visit(&unused).is_none());
    }
}
