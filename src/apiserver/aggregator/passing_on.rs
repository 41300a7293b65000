//! What is told of requests that are passed on: to whom, whose word was taken for it, what came of it, and
//! what the other server asked here meanwhile about who asked it (its delegated authorization).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sync::Mutex;

use crate::request::{PassedOn, RequestContext, RequestInfo, seen};
use apimachinery::user::UserInfo;
use apimachinery::wire::{ApiRequest, ApiResponse};
use apis::tree::{at, flag, text};
use clock::Clock;
use flow::PassedOnRequest;

/// Requests that are on their way to other servers. Bound: an entry each, until its answer begins.
#[derive(Clone, Default)]
pub(super) struct PassingOn(Arc<Mutex<Vec<Arc<PassingRequest>>>>);

struct PassingRequest {
    info: Arc<RequestInfo>,
    user: Arc<UserInfo>,
    reviews: Mutex<Vec<String>>,
}

/// One of them. It is no longer on its way when this is dropped.
pub(super) struct PassedOnPassage {
    all: PassingOn,
    own: Arc<PassingRequest>,
    began: Duration,
    told: PassedOn,
}

/// How the other server was reached.
#[derive(Default)]
pub(super) struct Reach {
    pub(super) address: Option<SocketAddr>,
    /// Why there is no answer of it.
    pub(super) why: Option<String>,
}

impl Reach {
    /// Nobody was.
    pub(super) fn none(why: impl Into<String>) -> Reach {
        Reach { address: None, why: Some(why.into()) }
    }
}

impl PassingOn {
    /// Sets out with a request; nothing is told of those that are about no objects.
    pub(super) fn begin(
        &self,
        ctx: &RequestContext,
        introduced: PassedOn,
        request: &mut ApiRequest,
        clock: &Clock,
    ) -> Option<PassedOnPassage> {
        if !ctx.info.is_resource_request {
            return None;
        }
        let is_unnamed = ctx.info.verb == "create" && ctx.info.name.is_empty();
        let body = is_unnamed.then(|| seen(request.body_mut()));
        let told = PassedOn { body, ..introduced };
        let (info, user) = (ctx.info.clone(), ctx.user.clone());
        let own = Arc::new(PassingRequest { info, user, reviews: Mutex::default() });
        self.0.lock().push(own.clone());
        Some(PassedOnPassage { all: self.clone(), own, began: clock.elapsed(), told })
    }

    /// Somebody asked here whether a user may do something: that is told of a request that is on its way and
    /// is just that. A server that remembers earlier answers does not ask.
    pub(super) fn reviewed(&self, asker: &str, review: &Value) {
        let under_way = self.0.lock().clone();
        for passing in under_way.iter().filter(|passing| passing.is_asked_about(at(review, "spec"))) {
            let mut reviews = passing.reviews.lock();
            if reviews.len() < PassedOnRequest::MAX_REVIEWS {
                reviews.push(reviewed(asker, passing, at(review, "status")));
            }
        }
    }
}

impl PassingRequest {
    fn is_asked_about(&self, spec: &Value) -> bool {
        let PassingRequest { info, user, .. } = self;
        let asked = |field: &str| text(spec, &format!("resourceAttributes.{field}"));
        let RequestInfo { verb, group, resource, subresource, namespace, name, .. } = &**info;
        let own = [verb, group, resource, subresource, namespace, name].map(String::as_str);
        let fields = ["verb", "group", "resource", "subresource", "namespace", "name"];
        text(spec, "user") == &*user.name && fields.map(asked) == own
    }
}

fn reviewed(asker: &str, passing: &PassingRequest, status: &Value) -> String {
    let answer = if flag(status, "allowed") { "yes" } else { "no" };
    let reason = match text(status, "reason") {
        "" => String::new(),
        reason => format!(", {reason}"),
    };
    let (user, verb) = (&passing.user.name, &passing.info.verb);
    format!("{asker} asked here whether {user} may {verb} it (SubjectAccessReview): {answer}{reason}")
}

impl PassedOnPassage {
    /// The other server has answered, or nobody has.
    pub(super) fn arrived(mut self, reach: Reach, clock: &Clock, response: &mut ApiResponse) {
        self.told.took = clock.elapsed().saturating_sub(self.began);
        self.told.address = reach.address.map(|address| address.to_string());
        self.told.why = reach.why;
        self.told.reviews = std::mem::take(&mut *self.own.reviews.lock());
        response.extensions_mut().insert(self.told.clone());
    }
}

impl Drop for PassedOnPassage {
    fn drop(&mut self) {
        self.all.0.lock().retain(|passing| !Arc::ptr_eq(passing, &self.own));
    }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use super::*;

    fn under_way(path: &str) -> PassingRequest {
        let info = RequestInfo::new(&Method::DELETE, path, "").unwrap().into();
        let user = UserInfo::authenticated("jane", &[]).into();
        PassingRequest { info, user, reviews: Mutex::default() }
    }

    fn review(user: &str, name: &str) -> Value {
        let asked = json!({"verb": "delete", "group": "agg.example.com", "version": "v1", "resource": "bars",
            "namespace": "n", "name": name});
        json!({"spec": {"user": user, "resourceAttributes": asked},
            "status": {"allowed": true, "reason": "RBAC: because"}})
    }

    #[test]
    fn what_is_asked_about_a_request_on_its_way_is_told_of_it() {
        let passing = PassingOn::default();
        passing.reviewed("agg", &review("jane", "x"));
        let own = Arc::new(under_way("/apis/agg.example.com/v1/namespaces/n/bars/x"));
        passing.0.lock().push(own.clone());
        for (user, name) in [("joe", "x"), ("jane", "y"), ("jane", "x")] {
            passing.reviewed("agg", &review(user, name));
        }
        let told = "agg asked here whether jane may delete it (SubjectAccessReview): yes, RBAC: because";
        assert_eq!(*own.reviews.lock(), [told]);
        (0..9).for_each(|_| passing.reviewed("agg", &review("jane", "x")));
        assert_eq!(own.reviews.lock().len(), PassedOnRequest::MAX_REVIEWS);
    }
}
