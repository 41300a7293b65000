//! Headers and bodies of requests over HTTP, for who may read the objects that they are about.

use std::sync::Arc;

use serde_json::{Value, json};

use super::inside::Inside;
use super::sent_bodies::{is_secret, readable};
use apimachinery::status::Status;
use apiserver::request::ValueReader;
use flow::{ExchangeText, MAX_BODY_BYTES, MAX_EXCHANGES, SentHeaders, StepId};
use handles::{ClusterHandle, HandleCall, Handles, answer};

/// What is kept.
pub(super) fn add(handles: Handles, inside: &Arc<Inside>) -> Handles {
    let read = ClusterHandle::get("/exchanges", "Headers and bodies of requests, as far as they are kept.")
        .query("step", "The number of the step RequestReceived of one request; else all.");
    let integer = json!({"type": "integer"});
    let schema = json!({
        "type": "object",
        "properties": {
            "exchanges": {"type": "array", "items": {"type": "object"}},
            "isKept": {"type": "boolean", "description": "Whether those of requests that come are kept."},
            "withheld": {"type": "integer", "description": "So many are about what you may not read, or are secrets."},
            "maxExchanges": integer, "maxBodyBytes": integer,
        },
    });
    let inside = Arc::downgrade(inside);
    handles.with(read.answers(schema), move |call: HandleCall| {
        let inside = inside.upgrade().ok_or_else(|| Status::internal("the cluster has ended"));
        async move { answer(&inside?.exchanges(call).await?) }
    })
}

impl Inside {
    async fn exchanges(&self, call: HandleCall) -> Result<Value, Status> {
        let wanted = call.query("step").map(step).transpose()?;
        let may_read = call.may_read.clone();
        drop(call);
        let mut told: Vec<ExchangeText> = Vec::new();
        let mut withheld = 0;
        let bodies =
            |headers: &SentHeaders, bytes: &[u8], is_cut| readable(&self.scheme, headers, bytes, is_cut);
        let mut reader = ValueReader::new(&self.flow, &may_read);
        let kept = self.flow.exchanges().map_or_else(Vec::new, |exchanges| exchanges.kept(wanted));
        for (step, exchange) in kept {
            // Bodies are read for those alone who may see them.
            let readable = reader.may_see(step.cause()).await.then(|| exchange.text(step, &bodies));
            match readable.filter(|exchange| !has_secret(exchange)) {
                Some(exchange) => told.push(exchange),
                None => withheld += 1,
            }
        }
        Ok(json!({
            "exchanges": told,
            "isKept": self.flow.keeps_exchanges(),
            "withheld": withheld,
            "maxExchanges": MAX_EXCHANGES,
            "maxBodyBytes": MAX_BODY_BYTES,
        }))
    }
}

/// Secrets that were sent to where others are.
fn has_secret(told: &ExchangeText) -> bool {
    let answer = told.response.as_ref().map(|message| &message.body);
    [Some(&told.request.body), answer].into_iter().flatten().any(|body| is_secret(&body.text))
}

fn step(text: &str) -> Result<StepId, Status> {
    let number = text.trim_start_matches('#').parse();
    number.map(StepId).map_err(|_| Status::bad_request(format!("step: {text:?} is no number of a step")))
}
