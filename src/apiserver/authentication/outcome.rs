//! What comes of asking the authenticators: who it is, or what each of them had to say.

use std::borrow::Cow;
use std::sync::Arc;

use super::authenticator::Response;
use super::remarks::Remark;
use apimachinery::user::UserInfo;

/// What one authenticator had to say: its name, and why it did not know the user.
pub type Said = (&'static str, Cow<'static, str>);

/// An authenticator that knows nothing of such credentials.
pub(super) const SILENT: Cow<'static, str> = Cow::Borrowed("no opinion");
/// What the authenticator of bearer tokens says of one that nobody knows.
pub(super) const INVALID: &str = "invalid bearer token";

/// Who asks, who said so, and what those said that were asked before. In a request's extensions for those
/// who tell its story.
#[derive(Clone, Debug)]
pub struct Authenticated {
    /// The user.
    pub user: Arc<UserInfo>,
    /// The authenticator that knew the credentials.
    pub by: &'static str,
    /// The others.
    pub said: Vec<Said>,
    /// What is to be told of the use of the credentials.
    pub remarks: Arc<[Remark]>,
}

/// Nobody knew the credentials; what each authenticator said. For the log and the flow record, never for the
/// client.
#[derive(Clone, Debug)]
pub struct CredentialsRefused {
    /// The authenticators' words.
    pub said: Arc<[Said]>,
    /// What is to be told of them nevertheless.
    pub remarks: Arc<[Remark]>,
}

impl CredentialsRefused {
    /// Whether there were credentials, and they were wrong.
    pub(super) fn is_wrong(&self) -> bool {
        self.said.iter().any(|(_, words)| *words != SILENT)
    }

    /// What each said, in order.
    pub fn words(&self) -> String {
        let said = self.said.iter().map(|(name, words)| format!("{name}: {words}"));
        said.collect::<Vec<_>>().join("; ")
    }

    /// `utilerrors.Aggregate`: what is wrong, without those who had no opinion.
    pub fn aggregate(&self) -> String {
        aggregate(self.said.iter())
    }
}

/// What the token authenticators made of a token.
#[derive(Clone, Debug)]
pub struct TokenOutcome {
    /// Whose it is, if anybody's.
    pub response: Option<Response>,
    /// Who knew it.
    pub by: &'static str,
    /// What the others said.
    pub said: Vec<Said>,
    /// What is to be told of its use, each time anew.
    pub remarks: Arc<[Remark]>,
}

impl TokenOutcome {
    /// Why nobody knew it, as a TokenReview says it.
    pub fn error(&self) -> String {
        let invalid: [Said; 1] = [("BearerToken", INVALID.into())];
        aggregate(invalid.iter().chain(&self.said))
    }
}

fn aggregate<'a>(said: impl Iterator<Item = &'a Said>) -> String {
    let mut errors: Vec<&str> = Vec::new();
    for (_, words) in said.filter(|(_, words)| *words != SILENT) {
        if !errors.contains(&&**words) {
            errors.push(words);
        }
    }
    match errors[..] {
        [one] => one.to_owned(),
        _ => format!("[{}]", errors.join(", ")),
    }
}
