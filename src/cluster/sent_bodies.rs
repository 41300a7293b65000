//! Bodies that are no text as they are sent, as JSON: Kubernetes' protobuf, and what gzip packed. Only what
//! was kept is read, and only when somebody looks.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use serde_json::Value;

use apimachinery::gvk::GroupVersion;
use apimachinery::protobuf;
use apimachinery::schema::{Schema, Schemas};
use apis::scheme::Scheme;
use flow::{ReadableBody, SentHeaders};

/// So much is unpacked of a body, and so much of its JSON is told; of a longer one the beginning. Protobuf
/// that unpacks to more is not read: its fields have no order.
const MAX_READ_BYTES: usize = 64 * 1024;

/// What these bytes say, of a message with these headers; `is_cut` says that more were sent than are here.
pub(super) fn readable(
    scheme: &Scheme,
    headers: &SentHeaders,
    bytes: &[u8],
    is_cut: bool,
) -> Option<ReadableBody> {
    let is_packed = header(headers, "content-encoding") == "gzip";
    let (unpacked, is_cut) = if is_packed { unpack(bytes, is_cut) } else { (bytes.to_vec(), is_cut) };
    let media_type = header(headers, "content-type").split(';').next().unwrap_or_default().trim();
    if media_type == protobuf::MEDIA_TYPE {
        let json = message(scheme, &unpacked).filter(|_| !is_cut)?.to_string();
        return Some(beginning(json.as_bytes(), false));
    }
    is_packed.then(|| beginning(&unpacked, is_cut))
}

/// Kinds of which no body is told, wherever it was sent.
const SECRET_KINDS: &[&str] = &["Secret", "TokenReview", "TokenRequest"];

/// Whether a body is a secret, or a list in which some are: sent to a path of something else it is kept like
/// any other. Of what cannot be read whole, any word that says so is enough.
pub(super) fn is_secret(text: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Typed {
        #[serde(default)]
        kind: String,
    }
    match serde_json::from_str::<Typed>(text) {
        Ok(Typed { kind }) if !kind.ends_with("List") => SECRET_KINDS.contains(&&*kind),
        _ => text.split("kind").skip(1).any(is_of_secret_kind),
    }
}

/// What stands behind the word, in JSON or YAML.
fn is_of_secret_kind(rest: &str) -> bool {
    let value = rest.trim_start_matches(|letter: char| letter.is_whitespace() || "\"':".contains(letter));
    let end = value.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(value.len());
    SECRET_KINDS.contains(&value[..end].trim_end_matches("List"))
}

fn header<'h>(headers: &'h SentHeaders, wanted: &str) -> &'h str {
    let found = headers.iter().find(|(name, _)| &**name == wanted);
    found.and_then(|(_, value)| value.as_deref()).unwrap_or_default()
}

/// As much as may be read; of what is cut or broken, what comes before that.
fn unpack(bytes: &[u8], is_cut: bool) -> (Vec<u8>, bool) {
    let mut unpacked = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(MAX_READ_BYTES as u64 + 1).read_to_end(&mut unpacked);
    let is_long = unpacked.len() > MAX_READ_BYTES;
    unpacked.truncate(MAX_READ_BYTES);
    (unpacked, is_cut || is_long || read.is_err())
}

/// What is cut may end within a letter.
fn beginning(bytes: &[u8], is_cut: bool) -> ReadableBody {
    let first = &bytes[..bytes.len().min(MAX_READ_BYTES)];
    let end = std::str::from_utf8(first).map_or_else(|error| error.valid_up_to(), str::len);
    let text = String::from_utf8_lossy(&first[..end]).into_owned();
    ReadableBody { text, is_cut: is_cut || end < bytes.len() }
}

/// The object in an envelope.
fn message(scheme: &Scheme, bytes: &[u8]) -> Option<Value> {
    let envelope = protobuf::open(bytes).ok()?;
    let schema = schema(scheme, &envelope.api_version, &envelope.kind)?;
    let mut tree = protobuf::decode(schema, envelope.raw).ok()?;
    tree["apiVersion"] = envelope.api_version.into();
    tree["kind"] = envelope.kind.into();
    Some(tree)
}

/// Of a kind that is served, or of one that is only sent to and fro.
fn schema(scheme: &Scheme, api_version: &str, kind: &str) -> Option<&'static Schema> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if let Some(kind) = scheme.kind(&GroupVersion::new(group, version), kind) {
        return Schemas::lookup(&kind.definition);
    }
    let folder = if group.is_empty() { "core" } else { group.split('.').next().unwrap_or_default() };
    Schemas::lookup(&format!("io.k8s.apimachinery.pkg.apis.meta.v1.{kind}"))
        .or_else(|| Schemas::lookup(&format!("io.k8s.api.{folder}.{version}.{kind}")))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use serde_json::json;

    use super::*;

    fn headers(media_type: &str, encoding: &str) -> SentHeaders {
        let header = |name: &str, value: &str| (name.into(), Some(value.into()));
        vec![header("content-type", media_type), header("content-encoding", encoding)]
    }

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut packing = GzEncoder::new(Vec::new(), Compression::default());
        packing.write_all(bytes).unwrap();
        packing.finish().unwrap()
    }

    fn pod() -> Vec<u8> {
        let tree = json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c"}]}});
        let schema = Schemas::lookup("io.k8s.api.core.v1.Pod").unwrap();
        let mut message = Vec::new();
        protobuf::encode(schema, &tree, &mut message).unwrap();
        let mut out = Vec::new();
        protobuf::seal(&mut out, "v1", "Pod", |out| out.append(&mut message));
        out
    }

    #[test]
    fn protobuf_is_read_as_json_packed_or_not() {
        let scheme = Scheme::builtin();
        for (encoding, sent) in [("", pod()), ("gzip", packed(&pod()))] {
            let headers = headers(protobuf::MEDIA_TYPE, encoding);
            let read = readable(&scheme, &headers, &sent, false).unwrap();
            let tree: Value = serde_json::from_str(&read.text).unwrap();
            assert_eq!((&tree["kind"], &tree["metadata"]["name"]), (&json!("Pod"), &json!("web")));
            assert!(!read.is_cut);
            assert!(readable(&scheme, &headers, &sent[..sent.len() - 4], true).is_none());
        }
        let status = protobuf::encode_document(&json!({"kind": "Status", "apiVersion": "v1", "code": 404}));
        let sent = headers(protobuf::MEDIA_TYPE, "");
        let read = readable(&scheme, &sent, &status.unwrap(), false).unwrap();
        assert!(read.text.contains("\"code\":404"), "{}", read.text);
        assert!(readable(&scheme, &sent, b"k8s\0nonsense", false).is_none());
    }

    #[test]
    fn a_secret_is_one_wherever_it_was_sent() {
        for secret in [
            r#"{"kind":"Secret","data":{"a":"Yg=="}}"#,
            r#"{"kind":"List","items":[{"kind":"Secret"}]}"#,
            "{\"apiVersion\":\"v1\",\"kind\" : \"Secret\",\"data\":{\"a\":",
            "apiVersion: v1\nkind: 'Secret'\nstringData: {a: b}\n",
            r#"{"kind":"TokenReview","spec":{"token":"a"}}"#,
            r#"{"kind":"SecretList","items":[]}"#,
        ] {
            assert!(is_secret(secret), "{secret}");
        }
        for other in [
            r#"{"kind":"Pod","spec":{"volumes":[{"kind":"Secret"}]}}"#,
            r#"{"data":{"kind":"Secret"}}"#,
            "kind: SecretStore\nmetadata: {name: a}\n",
            "kind",
            "",
        ] {
            assert!(!is_secret(other), "{other}");
        }
    }

    #[test]
    fn of_what_unpacks_to_much_the_beginning_is_told() {
        let scheme = Scheme::builtin();
        let sent = headers("application/json", "gzip");
        let long = format!("\"{}\"", "ä".repeat(MAX_READ_BYTES));
        let read = readable(&scheme, &sent, &packed(long.as_bytes()), false).unwrap();
        assert!(read.is_cut && (MAX_READ_BYTES - 1..=MAX_READ_BYTES).contains(&read.text.len()));
        let short = packed(b"{\"a\":1}");
        assert_eq!(readable(&scheme, &sent, &short, false).unwrap().text, "{\"a\":1}");
        assert!(readable(&scheme, &headers("application/json", ""), b"{}", false).is_none(), "it is text");
    }
}
