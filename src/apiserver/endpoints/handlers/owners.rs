//! Owner references that say the same are one (`dedupOwnerReferencesAndAddWarning`).

use serde_json::Value;

use crate::request::RequestContext;
use apimachinery::repeats::repeats;

/// When duplicates were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoundOwner {
    /// In what the client sent.
    InRequest,
    /// After mutating admission, which may have added them.
    AfterAdmission,
}

/// Takes out what is there already, and warns the client.
pub(crate) fn without_duplicates(ctx: &RequestContext, object: &mut Value, found: FoundOwner) {
    let references = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
    let Some(references) = references else { return };
    let duplicates = take_duplicates(references);
    if duplicates.is_empty() {
        return;
    }
    let when = match found {
        FoundOwner::InRequest => "",
        FoundOwner::AfterAdmission => " after mutating admission happens",
    };
    let uid = |reference: &Value| reference["uid"].as_str().unwrap_or_default().to_owned();
    let uids: Vec<String> = duplicates.iter().map(uid).collect();
    ctx.warn(format!(
        ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in \
         1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) \
         observed: {}",
        uids.join(", ")
    ));
}

/// Those that were equal to an earlier one.
fn take_duplicates(references: &mut Vec<Value>) -> Vec<Value> {
    let mut is_again = repeats(&*references).into_iter();
    references.extract_if(.., |_| is_again.next().unwrap_or(false)).collect()
}
