//! What a member says of itself, and what its release can do (`storage/feature`).

use etcd_api::frames::framed;
use etcd_api::messages::{Empty, StatusResponse};

use super::ask::ask;
use super::connection::{EtcdDialFailure, Hope, HttpSender};
use crate::config::EtcdEndpoint;

/// The first release whose API this is.
const OLDEST: (u64, u64, u64) = (3, 4, 0);
/// Releases from which on the progress of a watch can be asked for, and is true (`RequestWatchProgress`); and
/// all later ones.
const WITH_PROGRESS: [(u64, u64, u64); 2] = [(3, 4, 31), (3, 5, 13)];

/// Whether the progress of watches can be asked for of a member.
///
/// # Errors
/// It does not answer, or is too old.
pub(crate) async fn has_progress(
    sender: &mut HttpSender,
    endpoint: &EtcdEndpoint,
) -> Result<bool, EtcdDialFailure> {
    let asked = ask(sender, endpoint, "Maintenance/Status", framed(&Empty {})).await;
    let status: StatusResponse = asked.map_err(|failure| {
        let status = failure.status();
        let words = status.message;
        EtcdDialFailure { why: format!("it does not answer as etcd does: {words}"), hope: Hope::Little }
    })?;
    let version = parse(&status.version);
    if version.is_some_and(|version| version < OLDEST) {
        let why = format!("etcd {} is too old: it must be 3.4 or later", status.version);
        return Err(EtcdDialFailure { why, hope: Hope::None });
    }
    Ok(version.is_some_and(tells_progress))
}

fn tells_progress(version: (u64, u64, u64)) -> bool {
    let of_minor = WITH_PROGRESS.iter().find(|from| (from.0, from.1) == (version.0, version.1));
    of_minor.map_or(version >= (3, 6, 0), |from| version >= *from)
}

/// As `3.5.13`, with or without what else may stand behind it.
fn parse(version: &str) -> Option<(u64, u64, u64)> {
    let core = version.split(['-', '+']).next()?;
    let mut numbers = core.split('.').map(|part| part.parse().ok());
    Some((numbers.next()??, numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_can_be_asked_for_where_upstream_asks_for_it() {
        let tells = |version: &str| parse(version).is_some_and(tells_progress);
        for version in ["3.4.31", "3.5.13", "3.5.21", "3.6.0", "3.6.0-rc.1", "3.7.1", "4.0.0"] {
            assert!(tells(version), "{version}");
        }
        for version in ["3.4.23", "3.5.12", "3.5.0", "3.3.31", "", "x"] {
            assert!(!tells(version), "{version}");
        }
    }
}
