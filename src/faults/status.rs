//! What a real apiserver says with a code, for answers that are made up.

use super::fault::FaultAnswer;
use apimachinery::gvk::GroupResource;
use apimachinery::status::{Status, StatusDetails};
use apiserver::request::RequestInfo;

/// How soon a client is to come again that is told to, unless the fault says it.
const RETRY_AFTER_SECONDS: u32 = 1;

/// The answer as a Status. `created` is the name in the body of a create, whose path has none; empty where
/// it is not known.
pub(crate) fn of(answer: &FaultAnswer, info: &RequestInfo, created: &str) -> Status {
    let mut status = usual(answer, info, created);
    if let Some(reason) = &answer.reason {
        status.reason = reason.as_str().into();
    }
    if let Some(message) = &answer.message {
        status.message = message.clone();
    }
    if let Some(seconds) = answer.retry_after {
        let details: &mut Box<StatusDetails> = status.details.get_or_insert_default();
        details.retry_after_seconds = seconds;
    }
    status
}

fn usual(answer: &FaultAnswer, info: &RequestInfo, created: &str) -> Status {
    let resource = GroupResource::new(&info.group, &info.resource);
    let is_create = info.verb == "create";
    match answer.code {
        401 => Status::unauthorized(),
        403 => Status::forbidden(&resource, &info.name, "a fault on purpose"),
        404 => Status::not_found(&resource, &info.name),
        409 if is_create && info.name.is_empty() => Status::already_exists(&resource, created),
        409 if is_create => Status::already_exists(&resource, &info.name),
        409 => Status::modified(&resource, &info.name),
        410 => Status::expired("The provided resourceVersion is too old."),
        429 => {
            let text = "Too many requests, please try again later.";
            Status::too_many_requests(text, RETRY_AFTER_SECONDS)
        }
        500 => Status::internal("a fault on purpose"),
        503 => {
            Status::failure(503, "ServiceUnavailable", "the server is currently unable to handle the request")
        }
        504 => {
            Status::timeout("request did not complete within requested timeout - context deadline exceeded")
        }
        code => Status::failure(code, "", format!("the server answered {code}: a fault on purpose")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_answers_read_as_real_ones() {
        let info = RequestInfo::new(&http::Method::PUT, "/api/v1/namespaces/a/pods/x", "").unwrap();
        let conflict = of(&FaultAnswer { code: 409, ..FaultAnswer::default() }, &info, "");
        assert_eq!((conflict.code, &*conflict.reason), (409, "Conflict"));
        assert!(conflict.message.contains("the object has been modified"), "{}", conflict.message);
        let create = RequestInfo::new(&http::Method::POST, "/api/v1/namespaces/a/pods", "").unwrap();
        let exists = of(&FaultAnswer { code: 409, ..FaultAnswer::default() }, &create, "x");
        assert_eq!((&*exists.reason, &*exists.message), ("AlreadyExists", "pods \"x\" already exists"));
        assert_eq!(exists.details.unwrap().name, "x");
        let slow = FaultAnswer {
            code: 503,
            retry_after: Some(7),
            message: Some("closed".into()),
            ..FaultAnswer::default()
        };
        let slow = of(&slow, &info, "");
        assert_eq!((slow.message.as_str(), slow.details.unwrap().retry_after_seconds), ("closed", 7));
    }
}
