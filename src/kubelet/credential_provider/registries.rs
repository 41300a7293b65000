//! The registries that want a login, as the user names them.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use std::sync::Arc;

use super::keyring::RegistryLogin;

/// Which registries, or parts of them, want which login: `registry.example.com=alice:secret,...`. Of several
/// that fit an image the longest counts.
#[derive(Clone, Debug, Default)]
pub struct PrivateRegistries(Arc<[(String, RegistryLogin)]>);

/// What is wrong with a list of registries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateRegistriesError(String);

impl Display for PrivateRegistriesError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no private registry: it may be registry.example.com/team=user:password", self.0)
    }
}

impl std::error::Error for PrivateRegistriesError {}

impl FromStr for PrivateRegistries {
    type Err = PrivateRegistriesError;

    fn from_str(text: &str) -> Result<PrivateRegistries, PrivateRegistriesError> {
        let one = |text: &str| {
            // The password is nobody's business.
            let wrong = || PrivateRegistriesError(text.split('=').next().unwrap_or_default().to_owned());
            let (place, login) = text.split_once('=').ok_or_else(wrong)?;
            let (user, password) = login.split_once(':').ok_or_else(wrong)?;
            if place.is_empty() || place.contains("://") || user.is_empty() {
                return Err(wrong());
            }
            let login = RegistryLogin { user: user.to_owned(), password: password.to_owned() };
            Ok((place.trim_end_matches('/').to_owned(), login))
        };
        let all = text.split(',').map(str::trim).filter(|one| !one.is_empty());
        all.map(one).collect::<Result<Vec<_>, _>>().map(|all| PrivateRegistries(all.into()))
    }
}

impl PrivateRegistries {
    /// Whether all images are for everybody.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The login that a repository wants.
    pub(super) fn login(&self, repository: &str) -> Option<&RegistryLogin> {
        let is_in = |place: &str| {
            repository.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let all = self.0.iter().filter(|(place, _)| is_in(place));
        all.max_by_key(|(place, _)| place.len()).map(|(_, login)| login)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_place_counts() {
        let registries: PrivateRegistries = "a.io=u:p, a.io/team=v:q:r,".parse().unwrap();
        let user = |repository: &str| registries.login(repository).map(|login| login.user.as_str());
        assert_eq!(
            (user("a.io/x"), user("a.io/team/x"), user("a.io/teams")),
            (Some("u"), Some("v"), Some("u"))
        );
        assert_eq!((user("a.iox/y"), user("b.io/x")), (None, None));
        assert_eq!(registries.login("a.io/team").unwrap().password, "q:r");
        assert!("".parse::<PrivateRegistries>().unwrap().is_empty());
    }

    #[test]
    fn what_is_none_is_told_with_one_that_is() {
        for text in ["a.io", "a.io=alice", "=u:p", "https://a.io=u:p", "a.io=:p"] {
            let error = text.parse::<PrivateRegistries>().unwrap_err().to_string();
            assert!(error.ends_with("it may be registry.example.com/team=user:password"), "{error}");
        }
    }
}
