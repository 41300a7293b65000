//! What was sent to and fro in requests: headers and bodies, for whoever looks at a story from near.
//!
//! Nothing of it is kept unless somebody asks beforehand: while a page is open, while `kubarium trace
//! --bodies --follow` runs, with `--keep-bodies`, and while the cluster is stepped. Otherwise that is a look
//! at two numbers a write. What was kept stays until younger ones push it out.
//!
//! Bounds: of people's requests the last [`MAX_EXCHANGES`], and as many of components'; of each body the
//! first [`MAX_BODY_BYTES`], of headers the first [`MAX_HEADERS`]. What may be kept at all, and who may read
//! it, is for the apiserver to say: here nobody knows what a secret is.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sync::Mutex;

use super::recorded::StepId;

/// Of so many requests of people, and of so many of components, bodies and headers are kept.
pub const MAX_EXCHANGES: usize = 128;
/// So much of a body is kept; behind it only its length is counted.
pub const MAX_BODY_BYTES: usize = 16 * 1024;
/// While they are kept, values are told of so many writes of components a second: of further ones that there
/// were some, so that a crowd is held up by nobody who looks. On a clock that stands nothing is counted.
pub const MAX_VALUED_WRITES_A_SECOND: usize = 64;
/// And what caches hold of so many changes: each write is seen by several caches, a rollout by hundreds.
pub const MAX_ENTRIES_A_SECOND: usize = 512;
/// So many headers of a message are kept.
pub const MAX_HEADERS: usize = 64;
/// Beside a tree's texts, what each of its nodes counts for.
const NODE_BYTES: usize = 8;

/// A request and its answer.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// As `POST /api/v1/namespaces/default/pods?fieldManager=kubectl`.
    pub line: Arc<str>,
    /// What was sent.
    pub request: SentMessage,
    /// What came back, as far as it has been sent already.
    pub response: Arc<Mutex<Option<SentMessage>>>,
}

/// Names and values; none where the value is not kept.
pub type SentHeaders = Vec<(Arc<str>, Option<Arc<str>>)>;

/// What somebody made of bytes that are no text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadableBody {
    /// As JSON.
    pub text: String,
    /// Whether it is the beginning alone.
    pub is_cut: bool,
}

/// Reads bytes that are no text, by the headers of their message; says no more where that cannot be. The last
/// says whether more was sent than is here.
pub type BodyReader<'a> = dyn Fn(&SentHeaders, &[u8], bool) -> Option<ReadableBody> + Send + Sync + 'a;

/// Headers and a body.
#[derive(Clone, Debug)]
pub struct SentMessage {
    /// Of an answer its status, else 0.
    pub code: u16,
    /// Names and values; none where the value is not kept.
    pub headers: SentHeaders,
    /// The body.
    pub body: SentBody,
}

/// A body, as far as it is kept.
#[derive(Clone, Debug)]
pub enum SentBody {
    /// What passes by is put in.
    Bytes(PassingBytes),
    /// An object that was handed over in memory.
    Tree(Arc<Value>),
}

/// The first bytes of what passes by, and how many there were. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct PassingBytes(Arc<Mutex<KeptBytes>>);

#[derive(Debug, Default)]
struct KeptBytes {
    first: Vec<u8>,
    length: u64,
}

/// A body as people read it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BodyText {
    /// The beginning; empty for what is no text.
    pub text: String,
    /// How long it is in all.
    pub bytes: u64,
    /// Whether more was sent than stands here.
    pub is_cut: bool,
}

/// A message as people read it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageText {
    /// Of an answer its status, else 0.
    #[serde(default, skip_serializing_if = "is_none")]
    pub code: u16,
    /// Names and values; none where the value is not kept.
    pub headers: SentHeaders,
    /// The body.
    pub body: BodyText,
}

/// A request and its answer as people read them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangeText {
    /// The [`super::Step::RequestReceived`] of it.
    pub step: StepId,
    /// As `POST /api/v1/namespaces/default/pods?fieldManager=kubectl`.
    pub line: Arc<str>,
    /// What was sent.
    pub request: MessageText,
    /// What came back; none while nothing has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<MessageText>,
}

/// What is kept of one cluster's requests.
#[derive(Default)]
pub struct Exchanges {
    asking: Arc<AtomicUsize>,
    people: Mutex<VecDeque<(StepId, Exchange)>>,
    components: Mutex<VecDeque<(StepId, Exchange)>>,
    valued_writes: SecondsBudget,
    valued_entries: SecondsBudget,
}

/// So much may be done in each second of the cluster's time.
#[derive(Default)]
struct SecondsBudget(Mutex<SpentInSecond>);

#[derive(Default)]
struct SpentInSecond {
    second: u64,
    spent: usize,
}

impl SecondsBudget {
    fn takes_one(&self, now: Duration, most: usize) -> bool {
        let mut budget = self.0.lock();
        if budget.second != now.as_secs() {
            *budget = SpentInSecond { second: now.as_secs(), spent: 0 };
        }
        budget.spent += 1;
        budget.spent <= most
    }
}

/// For as long as this is held, headers and bodies are kept.
#[must_use = "headers and bodies are kept until this is dropped"]
pub struct KeepsExchanges(Arc<AtomicUsize>);

impl Exchanges {
    /// Headers and bodies of requests are kept for as long as the answer lives.
    pub fn ask(&self) -> KeepsExchanges {
        self.asking.fetch_add(1, Ordering::Relaxed);
        KeepsExchanges(self.asking.clone())
    }

    pub(super) fn are_asked_for(&self) -> bool {
        self.asking.load(Ordering::Relaxed) > 0
    }

    /// Whether values are told of one more write; without a time all are.
    pub(super) fn takes_write(&self, now: Option<Duration>) -> bool {
        let is_within = |now| self.valued_writes.takes_one(now, MAX_VALUED_WRITES_A_SECOND);
        self.are_asked_for() && now.is_none_or(is_within)
    }

    /// Whether one more entry is told; without a time all are.
    pub(super) fn takes_entry(&self, now: Option<Duration>) -> bool {
        let is_within = |now| self.valued_entries.takes_one(now, MAX_ENTRIES_A_SECOND);
        self.are_asked_for() && now.is_none_or(is_within)
    }

    /// Keeps what is sent to and fro in a request, which this step began.
    pub fn keep(&self, request: StepId, exchange: Exchange, is_persons: bool) {
        let ring = if is_persons { &self.people } else { &self.components };
        let mut ring = ring.lock();
        if ring.len() == MAX_EXCHANGES {
            ring.pop_front();
        }
        ring.push_back((request, exchange));
    }

    /// Those of one request, else all, oldest first.
    pub fn kept(&self, request: Option<StepId>) -> Vec<(StepId, Exchange)> {
        let mut all: Vec<(StepId, Exchange)> = Vec::new();
        for ring in [&self.people, &self.components] {
            let ring = ring.lock();
            all.extend(ring.iter().filter(|(step, _)| request.is_none_or(|one| one == *step)).cloned());
        }
        all.sort_by_key(|(step, _)| *step);
        all
    }
}

impl Drop for KeepsExchanges {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for KeepsExchanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeepsExchanges")
    }
}

impl PassingBytes {
    /// These pass by.
    pub fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock();
        let room = MAX_BODY_BYTES.saturating_sub(kept.first.len()).min(bytes.len());
        kept.first.extend_from_slice(&bytes[..room]);
        kept.length += bytes.len() as u64;
    }

    /// All that passed by; none where that was more than is kept.
    pub fn whole(&self) -> Option<Vec<u8>> {
        let kept = self.0.lock();
        (kept.length == kept.first.len() as u64).then(|| kept.first.clone())
    }

    /// As text; with the help of who can read what is none.
    fn text(&self, headers: &SentHeaders, reader: &BodyReader<'_>) -> BodyText {
        let kept = self.0.lock();
        let told = BodyText::of(&kept.first, kept.length);
        if !told.text.is_empty() || told.bytes == 0 {
            return told;
        }
        let first = kept.first.clone();
        drop(kept);
        match reader(headers, &first, told.is_cut) {
            Some(ReadableBody { text, is_cut }) => BodyText { text, is_cut, ..told },
            None => told,
        }
    }
}

impl SentBody {
    /// Of bytes that are there already.
    pub fn of_bytes(bytes: &[u8]) -> SentBody {
        let passing = PassingBytes::default();
        passing.add(bytes);
        SentBody::Bytes(passing)
    }

    /// Of a tree, which is shared when it is small and written as far as it is kept when it is not.
    pub fn of_tree(tree: &Arc<Value>) -> SentBody {
        let mut budget = MAX_BODY_BYTES;
        if is_small(tree, &mut budget) {
            return SentBody::Tree(tree.clone());
        }
        let passing = PassingBytes::default();
        // It takes whatever is written, and keeps the beginning.
        let _ = serde_json::to_writer(BytesWriter(&passing), &**tree);
        SentBody::Bytes(passing)
    }

    fn text(&self, headers: &SentHeaders, reader: &BodyReader<'_>) -> BodyText {
        match self {
            SentBody::Bytes(passing) => passing.text(headers, reader),
            SentBody::Tree(tree) => {
                let text = tree.to_string();
                BodyText::of(&text.as_bytes()[..text.len().min(MAX_BODY_BYTES)], text.len() as u64)
            }
        }
    }
}

/// Whether a tree is no larger than `budget`, which is looked at no further than that.
fn is_small(tree: &Value, budget: &mut usize) -> bool {
    let own = match tree {
        Value::String(text) => text.len(),
        Value::Object(fields) => fields.keys().map(String::len).sum(),
        _ => 0,
    };
    let Some(rest) = budget.checked_sub(own + NODE_BYTES) else { return false };
    *budget = rest;
    match tree {
        Value::Array(items) => items.iter().all(|item| is_small(item, budget)),
        Value::Object(fields) => fields.values().all(|field| is_small(field, budget)),
        _ => true,
    }
}

struct BytesWriter<'a>(&'a PassingBytes);

impl std::io::Write for BytesWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl BodyText {
    /// What is cut may end within a letter.
    fn of(first: &[u8], length: u64) -> BodyText {
        let is_cut = length > first.len() as u64;
        let text = match std::str::from_utf8(first) {
            Ok(text) => text,
            Err(error) if is_cut && error.error_len().is_none() => {
                std::str::from_utf8(&first[..error.valid_up_to()]).unwrap_or_default()
            }
            Err(_) => "",
        };
        // Protobuf and gzip have letters, too.
        let is_text = !text.contains('\0');
        BodyText { text: if is_text { text.to_owned() } else { String::new() }, bytes: length, is_cut }
    }
}

impl Exchange {
    /// As people read it, with the help of who can read what is no text.
    pub fn text(&self, step: StepId, reader: &BodyReader<'_>) -> ExchangeText {
        let response = self.response.lock().clone().map(|message| message.text(reader));
        ExchangeText { step, line: self.line.clone(), request: self.request.text(reader), response }
    }
}

impl SentMessage {
    fn text(&self, reader: &BodyReader<'_>) -> MessageText {
        let body = self.body.text(&self.headers, reader);
        MessageText { code: self.code, headers: self.headers.clone(), body }
    }
}

fn is_none(code: &u16) -> bool {
    *code == 0
}

#[cfg(test)]
mod tests {
    use clock::Clock;
    use serde_json::json;

    use super::*;
    use crate::Flow;

    fn flow() -> Flow {
        Flow::new(Clock::stepped(chrono::DateTime::UNIX_EPOCH))
    }

    fn text(body: &SentBody) -> BodyText {
        body.text(&vec![], &|_, _, _| None)
    }

    fn exchange(body: &str) -> Exchange {
        let body = SentBody::of_bytes(body.as_bytes());
        let request = SentMessage { code: 0, headers: vec![], body };
        Exchange { line: "POST /".into(), request, response: Arc::default() }
    }

    #[test]
    fn they_are_kept_while_somebody_asks_or_steps() {
        let flow = flow();
        assert!(!flow.keeps_exchanges());
        let ask = || flow.exchanges().unwrap().ask();
        let first = ask();
        let second = ask();
        drop(first);
        assert!(flow.keeps_exchanges());
        drop(second);
        assert!(!flow.keeps_exchanges());
        flow.stepping().unwrap().close();
        assert!(flow.keeps_exchanges());
        assert!(!Flow::off().keeps_exchanges() && Flow::off().exchanges().is_none());
    }

    #[test]
    fn of_a_crowd_the_first_of_each_second_have_values() {
        let exchanges = Exchanges::default();
        let second = |at| Some(Duration::from_secs(at));
        assert!(!exchanges.takes_write(second(1)) && !exchanges.takes_entry(None), "nobody looks");
        let _keeps = exchanges.ask();
        let writes = |now| (0..1000).filter(|_| exchanges.takes_write(now)).count();
        let entries = |now| (0..1000).filter(|_| exchanges.takes_entry(now)).count();
        assert_eq!(writes(second(1)), MAX_VALUED_WRITES_A_SECOND);
        assert_eq!(entries(second(1)), MAX_ENTRIES_A_SECOND, "these are counted by themselves");
        assert_eq!(writes(second(2)), MAX_VALUED_WRITES_A_SECOND);
        assert_eq!(
            (writes(None), entries(None)),
            (1000, 1000),
            "time stands, and somebody looks at each step"
        );
    }

    #[test]
    fn the_last_are_kept_and_components_push_out_nobody_else() {
        let flow = flow();
        let exchanges = flow.exchanges().unwrap();
        exchanges.keep(StepId(1), exchange("people"), true);
        for step in 2..MAX_EXCHANGES as u64 + 4 {
            exchanges.keep(StepId(step), exchange("component"), false);
        }
        let steps: Vec<u64> = exchanges.kept(None).iter().map(|(StepId(step), _)| *step).collect();
        assert_eq!((steps.len(), steps[0], steps[1]), (MAX_EXCHANGES + 1, 1, 4));
        let [(step, one)] = &exchanges.kept(Some(StepId(1)))[..] else { panic!("one request") };
        assert_eq!(one.text(*step, &|_, _, _| None).request.body.text, "people");
        assert_eq!(one.text(*step, &|_, _, _| None).response, None);
    }

    #[test]
    fn what_is_no_text_is_read_by_who_can() {
        let read = |bytes: &[u8]| {
            let body = SentBody::of_bytes(bytes);
            let headers = vec![("content-type".into(), Some("odd".into()))];
            let message = SentMessage { code: 0, headers, body };
            let told = message.text(&|headers, bytes, is_cut| {
                let text = format!("{} {} {is_cut}", headers[0].0, bytes.len());
                Some(ReadableBody { text, is_cut: true })
            });
            (told.body.text, told.body.bytes, told.body.is_cut)
        };
        assert_eq!(read(b"k8s\0x"), ("content-type 5 false".into(), 5, true));
        assert_eq!(read(b"text"), ("text".into(), 4, false));
    }

    #[test]
    fn of_a_long_body_the_beginning_is_kept() {
        let body = text(&SentBody::of_bytes("ä".repeat(MAX_BODY_BYTES).as_bytes()));
        assert_eq!((body.text.len(), body.bytes, body.is_cut), (MAX_BODY_BYTES, 2 * 16 * 1024, true));
        let odd = text(&SentBody::of_bytes(format!("x{}", "ä".repeat(MAX_BODY_BYTES)).as_bytes()));
        assert_eq!(odd.text.len(), MAX_BODY_BYTES - 1, "it would end within a letter");
        for binary in [&b"k8s\0\n\x02"[..], &[0xff, 0xfe]] {
            let told = text(&SentBody::of_bytes(binary));
            assert_eq!((told.text.as_str(), told.bytes), ("", binary.len() as u64));
        }
    }

    #[test]
    fn a_small_tree_is_shared_and_a_large_one_cut() {
        let small = Arc::new(json!({"a": [1, null]}));
        assert!(matches!(SentBody::of_tree(&small), SentBody::Tree(_)));
        assert_eq!(text(&SentBody::of_tree(&small)).text, "{\"a\":[1,null]}");
        for large in [json!({"a": "x".repeat(MAX_BODY_BYTES)}), json!(vec![0; MAX_BODY_BYTES])] {
            let body = SentBody::of_tree(&Arc::new(large));
            assert!(matches!(body, SentBody::Bytes(_)));
            let told = text(&body);
            assert!(told.is_cut && told.text.len() == MAX_BODY_BYTES, "{}", told.bytes);
        }
    }
}
