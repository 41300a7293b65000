//! Query parameters: the options of requests, read and checked (`metav1.ListOptions`, `CreateOptions`,
//! `PatchOptions`, `DeleteOptions`, `meta/v1/validation`).

use crate::request::{is_true, query_pairs};
use apimachinery::field_error::FieldErrors;
use apimachinery::fields::FieldSelector;
use apimachinery::gvk::GroupVersion;
use apimachinery::labels::Selector;
use apimachinery::options::{DeleteOptions, ListOptions};
use apimachinery::selectable::Predicate;
use apimachinery::status::Status;
use apis::kind::Kind;

const MAX_FIELD_MANAGER_BYTES: usize = 128;

/// The parameters of a request, decoded, in order.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

/// What becomes of unknown and duplicate fields in a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are dropped in silence.
    Ignore,
    /// They are dropped with a warning; upstream's default.
    #[default]
    Warn,
    /// They are refused.
    Strict,
}

/// The options of a create, update or patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Everything but the write.
    pub dry_run: bool,
    /// As given; empty when not.
    pub field_manager: String,
    /// What becomes of unknown fields.
    pub field_validation: FieldValidation,
    /// `force`, which only server-side apply knows.
    pub force: Option<bool>,
}

impl Query {
    /// Reads a query string.
    pub fn parse(text: &str) -> Query {
        Query(query_pairs(text).collect())
    }

    /// A parameter's first value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A parameter's first value, if it is not empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// All values of a parameter.
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
    }

    /// A boolean; the bare name is true.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.get(name).map(is_true)
    }

    /// A number.
    ///
    /// # Errors
    /// 400 in Go's words.
    pub fn number(&self, name: &str) -> Result<Option<i64>, Status> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let fault = |error: std::num::ParseIntError| {
            let why = match error.kind() {
                std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
                    "value out of range"
                }
                _ => "invalid syntax",
            };
            Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
        };
        text.parse().map(Some).map_err(fault)
    }

    /// The options of a write; `options_kind` is for the refusal: `CreateOptions`, `UpdateOptions`,
    /// `PatchOptions`; `ApplyOptions` are those of a patch that is an apply.
    ///
    /// # Errors
    /// 422 for values that upstream does not know.
    pub fn write_options(&self, options_kind: &str) -> Result<WriteOptions, Status> {
        let mut errors = FieldErrors::default();
        let dry_run = check_dry_run(&self.all("dryRun"), &mut errors);
        let field_manager = self.get("fieldManager").unwrap_or_default().to_owned();
        let is_apply = options_kind == "ApplyOptions";
        if is_apply && field_manager.is_empty() {
            errors.required("fieldManager", "is required for apply patch");
        }
        check_field_manager(&field_manager, &mut errors);
        let field_validation = match self.get("fieldValidation").unwrap_or_default() {
            "Ignore" => FieldValidation::Ignore,
            "" | "Warn" => FieldValidation::Warn,
            "Strict" => FieldValidation::Strict,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                errors.not_supported("fieldValidation", &other.into(), &supported);
                FieldValidation::Warn
            }
        };
        let force = self.flag("force");
        if options_kind == "PatchOptions" && force.is_some() {
            errors.forbidden("force", "may not be specified for non-apply patch");
        }
        refuse(if is_apply { "PatchOptions" } else { options_kind }, errors)?;
        Ok(WriteOptions { dry_run, field_manager, field_validation, force })
    }

    /// The options of a list, watch or deletecollection of `kind`.
    ///
    /// # Errors
    /// 400 for selectors and numbers that cannot be read or that name an unknown field.
    pub fn list_options(&self, kind: &Kind) -> Result<ListOptions, Status> {
        let labels =
            Selector::parse(self.get("labelSelector").unwrap_or_default()).map_err(Status::bad_request)?;
        let fields = FieldSelector::parse(self.get("fieldSelector").unwrap_or_default());
        let fields = fields.map_err(Status::bad_request)?;
        check_fields(&fields, kind)?;
        let positive = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
        let owned = |name: &str| self.text(name).map(String::from);
        Ok(ListOptions {
            predicate: Predicate { labels, fields, ..Predicate::default() },
            resource_version: owned("resourceVersion"),
            resource_version_match: owned("resourceVersionMatch"),
            limit: positive(self.number("limit")?).filter(|limit| *limit > 0).map(|limit| limit as usize),
            continue_token: owned("continue"),
            allow_watch_bookmarks: self.flag("allowWatchBookmarks").unwrap_or(false),
            send_initial_events: self.flag("sendInitialEvents"),
            timeout_seconds: positive(self.number("timeoutSeconds")?),
            held: None,
            cut: None,
        })
    }

    /// The options of a delete that has no body.
    ///
    /// # Errors
    /// 400 for numbers that cannot be read.
    pub fn delete_options(&self) -> Result<DeleteOptions, Status> {
        Ok(DeleteOptions {
            grace_period_seconds: self.number("gracePeriodSeconds")?,
            preconditions: None,
            orphan_dependents: self.flag("orphanDependents"),
            propagation_policy: self.text("propagationPolicy").map(String::from),
            dry_run: self.all("dryRun").into_iter().map(String::from).collect(),
        })
    }
}

/// Upstream's `ValidateDeleteOptions`; says whether it is a dry run.
///
/// # Errors
/// 422.
pub fn check_delete_options(options: &DeleteOptions) -> Result<bool, Status> {
    let mut errors = FieldErrors::default();
    if options.propagation_policy.is_some() && options.orphan_dependents.is_some() {
        let detail = "orphanDependents and deletionPropagation cannot be both set";
        let value = options.propagation_policy.as_deref().unwrap_or_default().into();
        errors.invalid("propagationPolicy", &value, detail);
    }
    if let Some(policy) = &options.propagation_policy
        && !matches!(policy.as_str(), "Foreground" | "Background" | "Orphan")
    {
        let supported = ["Foreground", "Background", "Orphan", "nil"];
        errors.not_supported("propagationPolicy", &policy.as_str().into(), &supported);
    }
    let values: Vec<&str> = options.dry_run.iter().map(String::as_str).collect();
    let dry_run = check_dry_run(&values, &mut errors);
    refuse("DeleteOptions", errors)?;
    Ok(dry_run)
}

fn check_dry_run(values: &[&str], errors: &mut FieldErrors) -> bool {
    if values.iter().any(|value| *value != "All") {
        errors.not_supported("dryRun", &values.into(), &["All"]);
    }
    !values.is_empty()
}

fn check_field_manager(name: &str, errors: &mut FieldErrors) {
    if name.len() > MAX_FIELD_MANAGER_BYTES {
        errors.too_long("fieldManager", MAX_FIELD_MANAGER_BYTES);
    }
    for (at, c) in name.chars().enumerate().filter(|(_, c)| c.is_control()) {
        let detail = format!("invalid character U+{:04X} (at position {at})", c as u32);
        errors.invalid("fieldManager", &name.into(), detail);
    }
}

fn check_fields(selector: &FieldSelector, kind: &Kind) -> Result<(), Status> {
    let is_known = |field: &str| {
        matches!(field, "metadata.name" | "metadata.namespace") || kind.field_names().contains(&field)
    };
    let mut unknown = selector.requirements.iter().filter(|requirement| !is_known(&requirement.field));
    let Some(requirement) = unknown.next() else { return Ok(()) };
    let field = &requirement.field;
    Err(Status::bad_request(if kind.selectable.is_empty() && !kind.is_custom {
        format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
    } else {
        format!("field label not supported: {field}")
    }))
}

fn refuse(options_kind: &str, errors: FieldErrors) -> Result<(), Status> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(&GroupVersion::new("meta.k8s.io", "v1").kind(options_kind), "", &errors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use apis::kind::Kind;

    #[test]
    fn options_that_upstream_does_not_know_are_refused() {
        let refused = |query: &str| Query::parse(query).write_options("CreateOptions").unwrap_err().message;
        assert_eq!(
            refused("fieldValidation=Loose"),
            "CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \
            \"Loose\": supported \
             values: \"\", \"Ignore\", \"Strict\", \"Warn\""
        );
        assert!(
            refused("dryRun=Some")
                .contains("dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"")
        );
        assert!(
            refused(&format!("fieldManager={}", "x".repeat(129))).contains("may not be more than 128 bytes")
        );
        let options = Query::parse("dryRun=All&fieldManager=kubectl&fieldValidation=Strict");
        let options = options.write_options("CreateOptions").unwrap();
        assert!(options.dry_run && options.field_validation == FieldValidation::Strict);
    }

    #[test]
    fn selectors_are_checked() {
        let plain = Kind::builtin("", "v1", "ConfigMap", "configmaps", "io.k8s.api.core.v1");
        let pods = Kind::builtin("", "v1", "Pod", "pods", "x").selectable_by(&["spec.nodeName"]);
        let refused = |kind: &Kind, query: &str| Query::parse(query).list_options(kind).unwrap_err().message;
        assert_eq!(refused(&pods, "fieldSelector=spec.x%3Da"), "field label not supported: spec.x");
        assert!(
            refused(&plain, "fieldSelector=spec.x%3Da")
                .starts_with("\"spec.x\" is not a known field selector")
        );
        assert!(refused(&plain, "labelSelector=a%3D%3D%3Db").starts_with("unable to parse requirement: "));
        assert_eq!(refused(&plain, "limit=x"), "strconv.ParseInt: parsing \"x\": invalid syntax");
        let options = Query::parse("fieldSelector=spec.nodeName%3Da&limit=5&allowWatchBookmarks=true");
        let options = options.list_options(&pods).unwrap();
        assert_eq!((options.limit, options.allow_watch_bookmarks), (Some(5), true));
    }
}
