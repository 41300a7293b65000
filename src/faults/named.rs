//! The name of what a create would make: only its body says it.

use std::time::Duration;

use http_body_util::{BodyExt, Limited};

use apimachinery::decode::{BodyFormat, name_in};
use apimachinery::wire::DecodedBody;
use apiserver::filters::passed::Passed;
use clock::Clock;

/// A longer body is not read, and names nothing.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// How long a body may take to come; then it names nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// The name in the body of a request; empty where there is none, or where it cannot be read. A body that goes
/// on to somebody else is left to them.
pub(crate) async fn in_body(request: &mut Passed, goes_on: bool, clock: &Clock) -> String {
    if let Some(DecodedBody(tree)) = request.extensions().get() {
        return tree["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    }
    let Some(format) = BodyFormat::of(request.headers()).filter(|_| !goes_on) else { return String::new() };
    let body = Limited::new(std::mem::take(request.body_mut()), MAX_BODY_BYTES);
    match clock.timeout_for_client(PATIENCE, body.collect()).await {
        Ok(Ok(read)) => name_in(&read.to_bytes(), format).unwrap_or_default(),
        _ => String::new(),
    }
}
