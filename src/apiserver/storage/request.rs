//! What a list or watch asks for, its options checked and understood
//! (`internalversion/validation`, `storage.ValidateListOptions`).

use std::time::Duration;

use serde_json::json;

use super::continue_token::ContinueToken;
use super::errors;
use apimachinery::field_error::FieldErrors;
use apimachinery::object::{Object, object_key};
use apimachinery::options::{Held, ListOptions, WatchCut};
use apimachinery::selectable::Predicate;
use apimachinery::status::Status;
use apis::kind::Kind;
use etcd::Revision;
use golang::go_text::quote;

golang::text_error! {
    /// What is no revision; in Go's words.
    pub struct BadRevision;
}

const EXACT: &str = "Exact";
const NOT_OLDER_THAN: &str = "NotOlderThan";

/// Which objects.
#[derive(Clone, Debug, Default)]
pub struct ObjectSelection {
    /// Empty: all namespaces.
    pub namespace: String,
    /// The one key that can match, where the selectors fix it.
    pub key: Option<String>,
    /// Labels and fields.
    pub predicate: Predicate,
}

/// A list.
#[derive(Clone, Debug)]
pub struct ListRequest {
    /// Which objects.
    pub selection: ObjectSelection,
    /// In which state.
    pub at: At,
    /// At most so many.
    pub limit: Option<usize>,
    /// The first key that may be answered: where a continue token says to go on.
    pub start: Option<String>,
}

/// Which state a list is to be answered from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Nothing that was written before the question may be missing.
    Newest,
    /// Whatever is at hand.
    Any,
    /// At least this revision.
    NotOlderThan(Revision),
    /// This revision.
    Exact(Revision),
}

/// A watch.
#[derive(Clone, Debug)]
pub struct WatchRequest {
    /// Which objects.
    pub selection: ObjectSelection,
    /// Where it begins.
    pub since: Since,
    /// Whether bookmarks are wanted.
    pub bookmarks: bool,
    /// Whether a bookmark marks the end of the state (KEP-3157).
    pub marks_initial_events_end: bool,
    /// It ends after so long.
    pub timeout: Option<Duration>,
    /// Until the state has been sent.
    pub held: Option<Held>,
    /// By what it may be ended.
    pub cut: Option<WatchCut>,
}

/// Where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// With a state, as added events; then what happens after it.
    State(At),
    /// With what happens from now on.
    Now,
    /// With what happened after a revision.
    After(Revision),
}

impl ObjectSelection {
    /// What `predicate` selects of a namespace; an empty one is all of them, unless a field selector names
    /// one.
    pub fn new(kind: &Kind, namespace: &str, predicate: &Predicate) -> ObjectSelection {
        let selected = predicate.fields.required_value("metadata.namespace").unwrap_or_default();
        let namespace = match (kind.namespaced, namespace) {
            (false, _) => "",
            (true, "") => selected,
            (true, namespace) => namespace,
        };
        let name = predicate.fields.required_value("metadata.name");
        let fixed = !kind.namespaced || !namespace.is_empty();
        let key = name.filter(|name| fixed && !name.is_empty()).map(|name| object_key(namespace, name));
        ObjectSelection { namespace: namespace.into(), key, predicate: predicate.clone() }
    }

    /// What all keys begin with.
    pub fn prefix(&self) -> String {
        match (&self.key, self.namespace.as_str()) {
            (Some(key), _) => key.clone(),
            (None, "") => String::new(),
            (None, namespace) => format!("{namespace}/"),
        }
    }

    /// Whether `object` is where it looks, selected or not.
    pub fn is_about(&self, object: &Object) -> bool {
        self.namespace.is_empty() || self.namespace == object.metadata.namespace
    }

    /// Whether `object` is selected; `field_names` are its kind's.
    pub fn matches(&self, object: &Object, field_names: &[&str]) -> bool {
        self.is_about(object)
            && (self.predicate.is_everything() || self.predicate.matches(object, field_names))
    }
}

impl ListRequest {
    /// Everything, as it is now.
    pub fn everything() -> ListRequest {
        ListRequest { selection: ObjectSelection::default(), at: At::Newest, limit: None, start: None }
    }

    /// # Errors
    /// 422 and 400 for options that do not go together or cannot be read.
    pub fn new(kind: &Kind, namespace: &str, options: &ListOptions) -> Result<ListRequest, Status> {
        validate_list(options)?;
        let selection = ObjectSelection::new(kind, namespace, &options.predicate);
        let token = options.continue_token.as_deref().filter(|token| !token.is_empty());
        if let Some(token) = token {
            return ListRequest::go_on(selection, options, &ContinueToken::decode(token)?);
        }
        let limit = options.limit.filter(|limit| *limit > 0);
        let at = match (given(options), options.resource_version_match.as_deref()) {
            (None, _) => At::Newest,
            (Some(text), how) => match (parse_of_list(text)?, how) {
                (0, _) => At::Any,
                (revision, Some(EXACT)) => At::Exact(revision),
                // Before there was a match parameter, a limit made it exact.
                (revision, None) if limit.is_some() => At::Exact(revision),
                (revision, _) => At::NotOlderThan(revision),
            },
        };
        // The watch cache does not page what may be of any state.
        let limit = limit.filter(|_| at != At::Any);
        Ok(ListRequest { selection, at, limit, start: None })
    }

    fn go_on(
        selection: ObjectSelection,
        options: &ListOptions,
        token: &ContinueToken,
    ) -> Result<ListRequest, Status> {
        if given(options).is_some_and(|revision| revision != "0") {
            let message = "specifying resource version is not allowed when using continue";
            return Err(Status::bad_request(message));
        }
        let at = token.revision.map_or(At::Newest, At::Exact);
        let limit = options.limit.filter(|limit| *limit > 0);
        let start = Some(format!("{}{}", selection.prefix(), token.start));
        Ok(ListRequest { selection, at, limit, start })
    }
}

impl WatchRequest {
    /// # Errors
    /// 422 for options that do not go together or cannot be read.
    pub fn new(kind: &Kind, namespace: &str, options: &ListOptions) -> Result<WatchRequest, Status> {
        validate_watch(options)?;
        let revision = given(options).map(parse).transpose()?;
        let since = match (options.send_initial_events, revision) {
            (Some(false), None | Some(0)) => Since::Now,
            (Some(false), Some(revision)) => Since::After(revision),
            (_, None) => Since::State(At::Newest),
            (_, Some(0)) => Since::State(At::Any),
            (Some(true), Some(revision)) => Since::State(At::NotOlderThan(revision)),
            (None, Some(revision)) => Since::After(revision),
        };
        let bookmarks = options.allow_watch_bookmarks;
        Ok(WatchRequest {
            selection: ObjectSelection::new(kind, namespace, &options.predicate),
            since,
            bookmarks,
            marks_initial_events_end: bookmarks && options.send_initial_events == Some(true),
            timeout: options.timeout_seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs),
            held: options.held.clone(),
            cut: options.cut.clone(),
        })
    }
}

fn parse_of_list(text: &str) -> Result<Revision, Status> {
    let named = |error: Status| Status::bad_request(format!("invalid resource version: {}", error.message));
    parse(text).map_err(named)
}

/// A resource version as a number (`Versioner.ParseResourceVersion`); empty is 0.
///
/// # Errors
/// A plain error in Go, hence a 500 without a reason.
pub fn parse(text: &str) -> Result<Revision, Status> {
    parse_number(text).map_err(|detail| {
        let mut errors = FieldErrors::default();
        errors.invalid("resourceVersion", &json!(text), &detail);
        Status::failure(500, "", errors.to_string())
    })
}

/// A revision as a number, with Go's words for what is no number (`strconv.ParseUint`).
pub fn parse_number(text: &str) -> Result<Revision, BadRevision> {
    if text.is_empty() {
        return Ok(0);
    }
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or_else(|| {
        let why = if digits { "value out of range" } else { "invalid syntax" };
        format!("strconv.ParseUint: parsing {}: {why}", quote(text)).into()
    })
}

fn given(options: &ListOptions) -> Option<&str> {
    options.resource_version.as_deref().filter(|text| !text.is_empty())
}

fn continues(options: &ListOptions) -> bool {
    options.continue_token.as_deref().is_some_and(|token| !token.is_empty())
}

fn validate_list(options: &ListOptions) -> Result<(), Status> {
    let mut errors = FieldErrors::default();
    if let Some(how) = options.resource_version_match.as_deref().filter(|how| !how.is_empty()) {
        let mut forbid = |detail: &str| errors.forbidden("resourceVersionMatch", detail);
        if given(options).is_none() {
            forbid("resourceVersionMatch is forbidden unless resourceVersion is provided");
        }
        if continues(options) {
            forbid("resourceVersionMatch is forbidden when continue is provided");
        }
        if how == EXACT && given(options) == Some("0") {
            forbid("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
        }
        if !matches!(how, EXACT | NOT_OLDER_THAN) {
            errors.not_supported("resourceVersionMatch", &json!(how), &[EXACT, NOT_OLDER_THAN, ""]);
        }
    }
    if options.send_initial_events.is_some() {
        errors.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list");
    }
    if errors.is_empty() { Ok(()) } else { Err(errors::invalid_list_options(&errors)) }
}

fn validate_watch(options: &ListOptions) -> Result<(), Status> {
    let mut errors = FieldErrors::default();
    let mut how = options.resource_version_match.as_deref().filter(|how| !how.is_empty());
    let from_the_state = given(options).is_none_or(|revision| revision == "0");
    let defaulted = how.is_none() && from_the_state && options.send_initial_events.is_none();
    if defaulted {
        // `SetListOptionsDefaults`: such a watch begins with the state, as if it had been asked for.
        how = Some(NOT_OLDER_THAN);
    }
    if options.send_initial_events.is_some() && how != Some(NOT_OLDER_THAN) {
        let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        errors.forbidden("resourceVersionMatch", detail);
    }
    if let Some(how) = how {
        if options.send_initial_events.is_none() && !defaulted {
            let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.forbidden("resourceVersionMatch", detail);
        }
        if how != NOT_OLDER_THAN {
            errors.not_supported("resourceVersionMatch", &json!(how), &[NOT_OLDER_THAN]);
        }
        if continues(options) {
            errors.forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden when continue is provided",
            );
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors::invalid_list_options(&errors)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apis::core::config_map::CONFIG_MAPS;

    fn options(revision: &str, how: &str, limit: usize) -> ListOptions {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        ListOptions {
            resource_version: some(revision),
            resource_version_match: some(how),
            limit: Some(limit),
            ..ListOptions::default()
        }
    }

    #[test]
    fn revisions_of_lists_mean_what_the_documentation_says() {
        let cases = [
            ("", "", 0, At::Newest),
            ("", "", 5, At::Newest),
            ("0", "", 5, At::Any),
            ("0", "NotOlderThan", 0, At::Any),
            ("7", "", 0, At::NotOlderThan(7)),
            ("7", "", 5, At::Exact(7)),
            ("7", "NotOlderThan", 5, At::NotOlderThan(7)),
            ("7", "Exact", 0, At::Exact(7)),
        ];
        for (revision, how, limit, at) in cases {
            let request = ListRequest::new(&CONFIG_MAPS, "", &options(revision, how, limit)).unwrap();
            assert_eq!(request.at, at, "{revision} {how} {limit}");
        }
    }

    #[test]
    fn options_that_do_not_go_together_are_refused() {
        let list = |options: &ListOptions| ListRequest::new(&CONFIG_MAPS, "", options).unwrap_err().message;
        let prefix = "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: ";
        let message = list(&options("", "Exact", 0));
        let detail = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided";
        assert_eq!(message, format!("{prefix}{detail}"));
        assert!(list(&options("0", "Exact", 0)).contains("is forbidden for resourceVersion \"0\""));
        assert!(list(&options("1", "Some", 0)).contains("Unsupported value: \"Some\""));
        let message = list(&options("x", "", 0));
        assert!(message.ends_with("strconv.ParseUint: parsing \"x\": invalid syntax"), "{message}");
        let initial = ListOptions { send_initial_events: Some(true), ..ListOptions::default() };
        assert!(list(&initial).contains("sendInitialEvents is forbidden for list"));
        let message = WatchRequest::new(&CONFIG_MAPS, "", &initial).unwrap_err().message;
        let detail = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        assert_eq!(message, format!("{prefix}{detail}"));
        let message =
            WatchRequest::new(&CONFIG_MAPS, "", &options("1", "NotOlderThan", 0)).unwrap_err().message;
        assert!(message.contains("is forbidden for watch unless sendInitialEvents is provided"), "{message}");
    }

    #[test]
    fn a_selector_can_fix_the_namespace_and_the_key() {
        let fields = apimachinery::fields::FieldSelector::parse("metadata.name=a,metadata.namespace=n");
        let predicate = Predicate { fields: fields.unwrap(), ..Predicate::default() };
        let selection = ObjectSelection::new(&CONFIG_MAPS, "", &predicate);
        assert_eq!((selection.namespace.as_str(), selection.key.as_deref()), ("n", Some("n/a")));
    }
}
