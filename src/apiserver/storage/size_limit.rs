//! How large an object may be: what etcd takes in one request, and upstream's client for it sends.
//!
//! Upstream stores built-in kinds as protobuf, here they are JSON, which may be several times as long. So
//! what is too long as JSON is measured once more as upstream would store it; custom kinds are JSON there,
//! too.

use serde_json::Value;

use apimachinery::protobuf;
use apimachinery::schema::Schemas;
use apimachinery::status::{Status, TooLargeToStore};
use apis::kind::Kind;

/// etcd's `--max-request-bytes`: beyond it a put is refused.
pub(super) const MAX_REQUEST_BYTES: usize = 1_572_864;
/// What upstream's client of etcd sends at most (`defaultClientMaxSendBytes`): beyond it the put is refused
/// before etcd sees it, in other words.
pub(super) const MAX_SENT_BYTES: usize = 2_097_152;
/// What a put has beside its key and value: the transaction around it.
const TRANSACTION_BYTES: usize = 64;
/// How often the key is in it: compared, put and, if it was not, read.
const KEYS: usize = 3;

/// Whether `value`, which is `object` as JSON, may be put.
///
/// # Errors
/// 500, as from upstream's server, which does not classify what etcd says.
pub(super) fn check(kind: &Kind, key: &str, object: &Value, value: &[u8]) -> Result<(), Status> {
    let around = KEYS * key.len() + TRANSACTION_BYTES;
    if value.len() + around <= MAX_REQUEST_BYTES {
        return Ok(());
    }
    match stored_bytes(kind, object, value) + around {
        bytes if bytes > MAX_SENT_BYTES => Err(Status::failure(500, "", sent_too_much(bytes))),
        bytes if bytes > MAX_REQUEST_BYTES => Err(TooLargeToStore.into()),
        _ => Ok(()),
    }
}

/// Whether a write failed by that: without its managed fields the object may be small enough.
pub fn is_too_large(status: &Status) -> bool {
    status.code == 500
        && (status.message == TooLargeToStore.to_string() || status.message.starts_with(SENT_TOO_MUCH))
}

const SENT_TOO_MUCH: &str =
    "rpc error: code = ResourceExhausted desc = trying to send message larger than max";

fn sent_too_much(bytes: usize) -> String {
    format!("{SENT_TOO_MUCH} ({bytes} vs. {MAX_SENT_BYTES})")
}

/// As upstream stores it.
fn stored_bytes(kind: &Kind, object: &Value, value: &[u8]) -> usize {
    let mut message = Vec::new();
    let schema = Schemas::lookup(&kind.definition).filter(|_| !kind.is_custom);
    match schema.map(|schema| protobuf::encode(schema, object, &mut message)) {
        Some(Ok(())) => message.len(),
        _ => value.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apimachinery::object::encode_for_storage;
    use apis::core::config_map::CONFIG_MAPS;
    use serde_json::json;

    fn verdict(data: String) -> Result<(), Status> {
        let object = json!({"metadata": {"name": "a", "namespace": "b"}, "data": {"k": data}});
        let value = encode_for_storage(&object).unwrap();
        check(&CONFIG_MAPS, "/registry/configmaps/b/a", &object, &value)
    }

    #[test]
    fn an_object_is_refused_in_the_words_of_etcd_and_of_its_client() {
        assert!(verdict("a".repeat(MAX_REQUEST_BYTES - 1024)).is_ok());
        let refused = verdict("a".repeat(MAX_REQUEST_BYTES)).unwrap_err();
        assert_eq!((refused.code, &*refused.reason), (500, ""));
        assert_eq!(refused.message, "etcdserver: request is too large");
        let refused = verdict("a".repeat(MAX_SENT_BYTES)).unwrap_err();
        let words = "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2097";
        assert!(refused.message.starts_with(words) && refused.message.ends_with(" vs. 2097152)"));
        assert!(is_too_large(&refused));
    }

    #[test]
    fn what_only_json_makes_long_is_measured_as_upstream_stores_it() {
        // Two bytes each in JSON, one in protobuf.
        assert!(verdict("\n".repeat(MAX_REQUEST_BYTES / 2 + 1024)).is_ok());
    }
}
