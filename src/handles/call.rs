//! `HandleCall`: an operation that somebody asks for.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::extract::{FromRequest, RawPathParams, Request};
use http_body_util::{BodyExt, Limited};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;

use apimachinery::status::Status;
use apimachinery::user::UserInfo;
use apimachinery::wire::{InProcessUser, MayRead, ShownCredentials};

/// As long as the body of any request to the apiserver may be; a longer one is a 413.
pub const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;

/// Who asks, and with what.
pub struct HandleCall {
    /// Who asks; the apiserver has authenticated and authorized them.
    pub user: Arc<UserInfo>,
    /// What they may read; nothing where nobody says.
    pub may_read: MayRead,
    /// What showed who asks; none of who asks in this process, and of what only reads.
    pub shown: Option<ShownCredentials>,
    path: BTreeMap<String, String>,
    query: BTreeMap<String, String>,
    body: Body,
}

impl HandleCall {
    /// What stands in the path in place of `{name}`.
    pub fn path(&self, name: &str) -> &str {
        self.path.get(name).map(String::as_str).unwrap_or_default()
    }

    /// A parameter of the query; an empty one counts as none.
    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The body. None is an empty object.
    ///
    /// # Errors
    /// 413 for one that is too long, 400 for what is not of this form.
    pub async fn json<T: DeserializeOwned>(self) -> Result<T, Status> {
        let bytes = self.bytes(MAX_BODY_BYTES).await?;
        let bytes = if bytes.trim_ascii().is_empty() { b"{}" } else { &bytes[..] };
        serde_json::from_slice(bytes).map_err(|error| Status::bad_request(format!("the body: {error}")))
    }

    /// The body as it came.
    ///
    /// # Errors
    /// 413 for one that is longer than `limit`, 400 for one that breaks off.
    pub async fn bytes(self, limit: usize) -> Result<Vec<u8>, Status> {
        let read = Limited::new(self.body, limit).collect().await;
        let read = read.map_err(|error| refusal(&*error, limit))?;
        Ok(read.to_bytes().into())
    }
}

impl<S: Send + Sync> FromRequest<S> for HandleCall {
    type Rejection = Infallible;

    async fn from_request(request: Request, state: &S) -> Result<HandleCall, Infallible> {
        let (mut parts, body) = request.into_parts();
        let of_path = RawPathParams::from_request_parts(&mut parts, state).await;
        let named = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let path = of_path.map(|found| found.iter().map(named).collect()).unwrap_or_default();
        let query = parts.uri.query().unwrap_or_default().split('&').map(parameter).collect();
        let user = parts.extensions.remove::<InProcessUser>().map(|InProcessUser(user)| user);
        let may_read = parts.extensions.remove().unwrap_or_else(nothing);
        let shown = parts.extensions.remove();
        Ok(HandleCall { user: user.unwrap_or_default(), may_read, shown, path, query, body })
    }
}

fn nothing() -> MayRead {
    MayRead(Arc::new(|_, _, _| Box::pin(std::future::ready(false))))
}

fn refusal(error: &(dyn std::error::Error + 'static), limit: usize) -> Status {
    if error.is::<http_body_util::LengthLimitError>() {
        let text = format!("the body is too long: {limit} bytes at most");
        return Status::failure(413, "RequestEntityTooLarge", text);
    }
    Status::bad_request(format!("the body breaks off: {error}"))
}

fn parameter(text: &str) -> (String, String) {
    let decoded = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    (decoded(name), decoded(value))
}
