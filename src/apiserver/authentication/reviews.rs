//! TokenReview and SelfSubjectReview: whose is this token, who am I
//! (`pkg/registry/authentication/{tokenreview,selfsubjectreview}`).

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::remarks;
use super::union::Authenticators;
use crate::registry::rest::Review;
use crate::request::RequestContext;
use apimachinery::status::Status;
use apimachinery::time::rfc3339;
use apis::tree::{set, text, texts};
use clock::Clock;

const GROUP: &str = "authentication.k8s.io";

/// Answers TokenReviews.
pub struct TokenReview {
    authenticators: Arc<Authenticators>,
    audiences: Vec<String>,
}

impl TokenReview {
    /// Asks `authenticators`; a review that names no audience is about `audiences`.
    pub fn new(authenticators: Arc<Authenticators>, audiences: Vec<String>) -> TokenReview {
        TokenReview { authenticators, audiences }
    }

    async fn answer(&self, ctx: &RequestContext, mut review: Value) -> Result<Value, Status> {
        let token = text(&review, "spec.token").to_owned();
        if token.is_empty() {
            return Err(Status::bad_request("token is required for TokenReview in authentication"));
        }
        let named: Vec<String> = texts(&review, "spec.audiences").into_iter().map(str::to_owned).collect();
        let asked = if named.is_empty() { self.audiences.clone() } else { named };
        let outcome = self.authenticators.authenticate_token(&token, Some(&asked)).await;
        remarks::warnings(&outcome.remarks).for_each(|text| ctx.warn(text));
        remarks::annotations(&outcome.remarks).for_each(|(key, value)| ctx.annotate(key, value));
        let status = match &outcome.response {
            Some(response) => json!({
                "authenticated": true,
                "user": response.user.to_value(),
                "audiences": response.audiences,
            }),
            None => json!({"user": {}, "error": outcome.error()}),
        };
        set(&mut review, "status", status);
        Ok(review)
    }
}

impl Review for TokenReview {
    fn resource(&self) -> (&'static str, &'static str) {
        (GROUP, "tokenreviews")
    }

    fn review<'a>(
        &'a self,
        ctx: &'a RequestContext,
        _namespace: &'a str,
        question: Value,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        self.answer(ctx, question).boxed()
    }
}

/// Answers SelfSubjectReviews.
pub struct SelfSubjectReview(pub Clock);

impl Review for SelfSubjectReview {
    fn resource(&self) -> (&'static str, &'static str) {
        (GROUP, "selfsubjectreviews")
    }

    fn review<'a>(
        &'a self,
        ctx: &'a RequestContext,
        _namespace: &'a str,
        mut question: Value,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        set(&mut question, "metadata.creationTimestamp", rfc3339(self.0.now()));
        set(&mut question, "status", json!({"userInfo": ctx.user.to_value()}));
        std::future::ready(Ok(question)).boxed()
    }
}
