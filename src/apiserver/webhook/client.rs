//! `WebhookClient`: sends a tree, reads a tree (`webhook.GenericWebhook`, client-go's `rest.Request`).

use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use http_body_util::{BodyExt, Limited};
use serde_json::Value;

use super::config::ClientConfig;
use super::errors::{CallError, describe, refused};
use super::redirects::{Journey, skip};
use super::service_resolver::ServiceResolver;
use super::transport::Transport;
use apimachinery::decode::syntax_error;
use apimachinery::duration;
use apimachinery::yaml;
use clock::Clock;

/// How often a call is tried that fails in a way that may pass (`webhook.DefaultRetryBackoff`).
const ATTEMPTS: u32 = 5;
/// How much longer each pause is than the one before.
const PAUSE_FACTOR: f64 = 1.5;
/// How long the first pause is, unless somebody says so (`webhook.DefaultRetryBackoffWithInitialDelay`).
pub const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// What is read of an answer, as of a request. Beyond it the call fails.
const MAX_RESPONSE_BYTES: usize = 3 * 1024 * 1024;

/// Asks one webhook. Cloning shares its connections.
#[derive(Clone)]
pub struct WebhookClient {
    config: ClientConfig,
    transport: Transport,
    clock: Clock,
    max_response_bytes: usize,
}

impl WebhookClient {
    /// Nothing is connected, and no certificate read, before the first call.
    pub fn new(config: ClientConfig, resolver: &ServiceResolver, clock: &Clock) -> WebhookClient {
        let transport = Transport::new(&config, resolver);
        WebhookClient { config, transport, clock: clock.clone(), max_response_bytes: MAX_RESPONSE_BYTES }
    }

    /// A client that reads larger answers: a conversion answers with as much as it was sent.
    pub fn reading_up_to(self, max_response_bytes: usize) -> WebhookClient {
        WebhookClient { max_response_bytes, ..self }
    }

    /// What [`WebhookClient::call`] says of a webhook that did not answer within `timeout`.
    pub fn timed_out(&self, timeout: Duration) -> CallError {
        CallError::timed_out(&Method::POST, &self.url(timeout))
    }

    fn url(&self, timeout: Duration) -> String {
        let url = self.config.target.url();
        if self.config.tells_timeout { format!("{url}?timeout={}", duration::format(timeout)) } else { url }
    }

    /// POSTs `body` and reads the answer, within `timeout` of the cluster's clock.
    ///
    /// # Errors
    /// In client-go's words: `Post "https://...": context deadline exceeded`, or what the server's status
    /// means.
    pub async fn call(&self, body: &Value, timeout: Duration) -> Result<Value, CallError> {
        let answer = self.post(body, timeout).await?;
        read(&answer).map_err(|why| {
            CallError::invalid_answer(format!("couldn't get version/kind; json parse error: {why}"))
        })
    }

    /// POSTs `body` to somebody who answers with any JSON, also with lists, and with nothing else.
    ///
    /// # Errors
    /// As [`WebhookClient::call`].
    pub async fn call_for_json(&self, body: &Value, timeout: Duration) -> Result<Value, CallError> {
        let answer = self.post(body, timeout).await?;
        read_json(&answer).map_err(CallError::invalid_answer)
    }

    async fn post(&self, body: &Value, timeout: Duration) -> Result<Vec<u8>, CallError> {
        let url = self.url(timeout);
        let bytes = serde_json::to_vec(body).expect("a tree is JSON");
        let mut journey = Journey::new(Method::POST, &url, self.headers(&url)?, bytes.into())?;
        let until = self.clock.elapsed() + timeout;
        loop {
            let left = until.saturating_sub(self.clock.elapsed());
            let asked = self.clock.timeout_outside(left, self.ask(&mut journey)).await;
            if let Some(answer) = asked.unwrap_or_else(|_| Err(journey.timed_out()))? {
                return Ok(answer);
            }
        }
    }

    /// POSTs `body`, again after a while as long as it may help (`webhook.WithExponentialBackoff`).
    ///
    /// # Errors
    /// As [`WebhookClient::call`], of the last attempt.
    pub async fn call_until_it_passes(
        &self,
        body: &Value,
        timeout: Duration,
        first_pause: Duration,
    ) -> Result<Value, CallError> {
        let mut pause = first_pause;
        let mut attempt = 1;
        loop {
            match self.call(body, timeout).await {
                Err(error) if attempt < ATTEMPTS && error.may_pass() => {
                    self.clock.pause_outside(pause).await;
                    (pause, attempt) = (pause.mul_f64(PAUSE_FACTOR), attempt + 1);
                }
                done => return done,
            }
        }
    }

    fn headers(&self, url: &str) -> Result<HeaderMap, CallError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*"));
        headers.insert(USER_AGENT, HeaderValue::from_static(self.config.user_agent));
        if let Some(authorization) = &self.config.authorization {
            let value = HeaderValue::from_str(authorization);
            let value = value.map_err(|error| CallError::failed(&Method::POST, url, &error.to_string()))?;
            headers.insert(AUTHORIZATION, value);
        }
        Ok(headers)
    }

    /// Asks where the journey stands; nothing when that sends it on.
    async fn ask(&self, journey: &mut Journey) -> Result<Option<Vec<u8>>, CallError> {
        let (head, body) = self.transport.send_on(journey).await?.into_parts();
        if journey.follow(head.status, &head.headers)? {
            skip(body).await;
            return Ok(None);
        }
        let read = Limited::new(body, self.max_response_bytes).collect().await;
        let read =
            read.map_err(|error| journey.failed(&describe(error.as_ref(), self.max_response_bytes)))?;
        let bytes = read.to_bytes().to_vec();
        match head.status.as_u16() {
            code @ 200..=206 if bytes.is_empty() => {
                let media_type = head.headers.get(CONTENT_TYPE);
                let media_type = media_type.and_then(|value| value.to_str().ok()).unwrap_or("");
                Err(CallError::invalid_answer(format!(
                    "0-length response with status code: {code} and content type: {media_type}"
                )))
            }
            200..=206 => Ok(Some(bytes)),
            code => Err(refused(code, &bytes)),
        }
    }
}

/// An object in JSON or, as upstream's decoders have it, YAML.
fn read(answer: &[u8]) -> Result<Value, String> {
    let read = serde_json::from_slice(answer).or_else(|error| {
        let why = syntax_error(answer).unwrap_or_else(|| error.to_string());
        yaml::to_json(answer).map(|document| document.value).map_err(|_| why)
    });
    let kind = match read? {
        tree @ (Value::Object(_) | Value::Null) => return Ok(tree),
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
    };
    Err(format!(
        "json: cannot unmarshal {kind} into Go value of type struct {{ APIVersion string \
         \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    ))
}

/// As Go's `json.Decoder` says why not.
fn read_json(answer: &[u8]) -> Result<Value, String> {
    if answer.is_empty() {
        return Err("EOF".into());
    }
    serde_json::from_slice(answer).map_err(|error| syntax_error(answer).unwrap_or_else(|| error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_objects() {
        assert_eq!(read(b"{\"a\": 1}").unwrap()["a"], 1);
        assert_eq!(read(b"a: 1").unwrap()["a"], 1);
        for (answer, kind) in [("hello <b>", "string"), ("[]", "array"), ("5", "number")] {
            let why = read(answer.as_bytes()).unwrap_err();
            assert!(why.starts_with(&format!("json: cannot unmarshal {kind} into Go value")), "{why}");
        }
        assert_eq!(
            read(b"{[").unwrap_err(),
            "invalid character '[' looking for beginning of object key string"
        );
    }

    #[test]
    fn any_json_is_an_answer_for_who_wants_that() {
        assert_eq!(read_json(b"[{\"Score\": 1}]").unwrap()[0]["Score"], 1);
        assert!(read_json(b"null").unwrap().is_null());
        for (answer, why) in [
            ("", "EOF"),
            ("a: 1", "invalid character 'a' looking for beginning of value"),
            ("nonsense", "invalid character 'o' in literal null (expecting 'u')"),
        ] {
            assert_eq!(read_json(answer.as_bytes()).unwrap_err(), why);
        }
    }
}
