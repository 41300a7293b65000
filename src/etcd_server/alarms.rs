//! `Alarms`: what is wrong with a member until somebody says that it is mended (`v3alarm.AlarmStore`). They
//! outlive the process, as those of etcd do, in a file of their own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use sync::Mutex;

use crate::messages::{AlarmMember, AlarmRequest, Repeated};

/// There is no room (`AlarmType_NOSPACE`): what needs any is refused.
pub(crate) const NOSPACE: i64 = 1;
/// The members differ (`AlarmType_CORRUPT`): nothing is written. Only a client can say so here.
pub(crate) const CORRUPT: i64 = 2;

/// `AlarmRequest_ACTIVATE`
const ACTIVATE: i64 = 1;
/// `AlarmRequest_DEACTIVATE`
const DEACTIVATE: i64 = 2;

/// Alarms by their kind, of members: one, unless a client speaks of others.
type Raised = BTreeSet<(i64, u64)>;

/// Those that are raised. Bound: [`MOST`].
pub(crate) struct Alarms {
    raised: Mutex<Raised>,
    /// Where they are kept.
    file: Option<PathBuf>,
}

/// So many at most are kept; what a client raises beyond is not.
const MOST: usize = 64;

impl Alarms {
    /// Those of a file, if there is one.
    pub(crate) fn read(file: Option<PathBuf>) -> Alarms {
        let raised = file.as_deref().map(read).transpose().unwrap_or_else(|error| {
            tracing::warn!(%error, "the alarms of earlier cannot be read: those still true will be raised again");
            None
        });
        Alarms { raised: Mutex::new(raised.unwrap_or_default()), file }
    }

    /// All, or those of a kind.
    pub(crate) fn list(&self, kind: i64) -> Vec<AlarmMember> {
        let raised = self.raised.lock();
        let wanted = raised.iter().filter(|(raised, _)| kind == 0 || *raised == kind);
        wanted.map(|(alarm, member_id)| AlarmMember { member_id: *member_id, alarm: *alarm }).collect()
    }

    pub(crate) fn is_raised(&self, kind: i64) -> bool {
        self.raised.lock().iter().any(|(raised, _)| *raised == kind)
    }

    /// There is no room in a member.
    pub(crate) fn raise_no_space(&self, member_id: u64) {
        if self.change(|raised| raised.insert((NOSPACE, member_id))) {
            tracing::warn!("the quota is spent: alarm NOSPACE is raised, and what needs room is refused");
        }
    }

    /// Does what a client asks for, and answers with the alarms that it is about.
    pub(crate) fn answer(&self, request: &AlarmRequest) -> Repeated<AlarmMember> {
        let AlarmRequest { action, member_id, alarm } = *request;
        let about = vec![AlarmMember { member_id, alarm }];
        Repeated(match action {
            ACTIVATE if alarm == 0 => vec![],
            ACTIVATE => {
                self.change(|raised| raised.len() < MOST && raised.insert((alarm, member_id)));
                about
            }
            DEACTIVATE if self.change(|raised| raised.remove(&(alarm, member_id))) => about,
            DEACTIVATE => vec![],
            _ => self.list(alarm),
        })
    }

    /// Whether anything changed, which is then kept.
    fn change(&self, change: impl FnOnce(&mut Raised) -> bool) -> bool {
        let mut raised = self.raised.lock();
        let has_changed = change(&mut raised);
        if let Some(file) = self.file.as_deref().filter(|_| has_changed)
            && let Err(error) = write(file, &raised)
        {
            tracing::warn!(%error, "the alarms cannot be kept: a restart forgets them");
        }
        has_changed
    }
}

/// What an alarm is called.
pub(crate) fn name(kind: i64) -> &'static str {
    match kind {
        NOSPACE => "NOSPACE",
        CORRUPT => "CORRUPT",
        _ => "UNKNOWN",
    }
}

fn read(file: &Path) -> io::Result<Raised> {
    match fs::read(file) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Raised::new()),
        Err(error) => Err(error),
    }
}

/// Whole or not at all.
fn write(file: &Path, raised: &Raised) -> io::Result<()> {
    let new = file.with_extension("new");
    fs::write(&new, serde_json::to_vec(raised)?)?;
    fs::rename(new, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_raised_stays_until_it_is_disarmed() {
        let folder = tempfile::tempdir().unwrap();
        let file = Some(folder.path().join("alarms"));
        let alarms = Alarms::read(file.clone());
        assert!(alarms.list(0).is_empty() && !alarms.is_raised(NOSPACE));
        alarms.raise_no_space(1);
        alarms.raise_no_space(1);
        let other = AlarmRequest { action: ACTIVATE, member_id: 7, alarm: CORRUPT };
        assert_eq!(alarms.answer(&other).0, [AlarmMember { member_id: 7, alarm: CORRUPT }]);
        assert!(alarms.answer(&AlarmRequest { alarm: 0, ..other.clone() }).0.is_empty());
        drop(alarms);
        let alarms = Alarms::read(file.clone());
        assert_eq!((alarms.list(0).len(), alarms.list(NOSPACE).len()), (2, 1));
        let disarm = AlarmRequest { action: DEACTIVATE, ..other };
        assert_eq!(alarms.answer(&disarm).0.len(), 1);
        assert!(alarms.answer(&disarm).0.is_empty());
        assert!(alarms.is_raised(NOSPACE) && !alarms.is_raised(CORRUPT));
        fs::write(file.as_deref().unwrap(), "nonsense").unwrap();
        assert!(Alarms::read(file).list(0).is_empty());
    }

    #[test]
    fn they_are_bounded() {
        let alarms = Alarms::read(None);
        for member_id in 0..MOST as u64 + 1 {
            alarms.answer(&AlarmRequest { action: ACTIVATE, member_id, alarm: CORRUPT });
        }
        assert_eq!(alarms.list(0).len(), MOST);
    }
}
