//! The body of a long list: put together while it is sent, a stretch at a time.
//!
//! A list is a concatenation of what is in memory already. Made at once it would be there twice; sent in
//! [`Segments`], the bytes of the objects go from where they lie to the socket.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::{Buf, Bytes};
use http_body::{Frame, SizeHint};

use super::printer::Pieces;
use super::segments::Segments;
use apimachinery::list::List;
use apimachinery::object::stored_ends;

/// About how much is sent at a time. One object that is larger is a stretch of its own.
pub(crate) const STRETCH_BYTES: usize = 64 * 1024;
/// So many objects are looked at before they are needed.
const LOOKAHEAD: usize = 32;

/// A list that is being sent. Its length is known from the beginning.
///
/// In the extensions of an answer it says what the answer's body is: whoever can send buffers of several
/// pieces takes it instead of that.
#[derive(Clone)]
pub struct ListBody {
    list: List,
    pieces: Pieces,
    next: usize,
    /// The ends of the next items.
    ahead: std::vec::IntoIter<Bytes>,
    left: usize,
}

/// The list for whoever wants bytes in one piece.
struct Copied(ListBody);

impl ListBody {
    /// All of a list, and the line break behind it.
    pub(crate) fn new(list: List, pieces: Pieces) -> ListBody {
        let items = list.items.iter().enumerate().map(|(at, object)| pieces.item_bytes(at, object));
        let left = pieces.head.len() + items.sum::<usize>() + Pieces::TAIL.len() + 1;
        ListBody { list, pieces, next: 0, ahead: Vec::new().into_iter(), left }
    }

    /// How many bytes are still to come.
    pub(crate) fn bytes_left(&self) -> usize {
        self.left
    }

    /// The next stretch; none behind the last.
    fn stretch(&mut self) -> Option<Segments> {
        if self.left == 0 {
            return None;
        }
        let mut out = Segments::default();
        out.put(|own| own.extend_from_slice(&std::mem::take(&mut self.pieces.head)));
        while self.next < self.list.items.len() && !out.is_full() && out.remaining() < STRETCH_BYTES {
            let Some(end) = self.ahead.next() else {
                self.ahead = stored_ends(self.list.items[self.next..].iter().take(LOOKAHEAD)).into_iter();
                continue;
            };
            out.put(|own| self.pieces.write_item_head(own, self.next, &self.list.items[self.next]));
            out.put_item(end);
            self.next += 1;
        }
        if self.next == self.list.items.len() {
            out.put(|own| {
                own.extend_from_slice(Pieces::TAIL);
                own.push(b'\n');
            });
        }
        self.left -= out.remaining();
        Some(out)
    }

    fn size(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}

impl From<ListBody> for Body {
    fn from(list: ListBody) -> Body {
        Body::new(Copied(list))
    }
}

impl http_body::Body for ListBody {
    type Data = Segments;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Segments>, Infallible>>> {
        Poll::Ready(self.stretch().map(|stretch| Ok(Frame::data(stretch))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        self.size()
    }
}

impl http_body::Body for Copied {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let stretch = self.0.stretch();
        let copied = stretch.map(|mut stretch| stretch.copy_to_bytes(stretch.remaining()));
        Poll::Ready(copied.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::{BufMut, BytesMut};
    use chrono::DateTime;
    use http_body::Body as _;
    use http_body_util::BodyExt;
    use serde_json::json;

    use super::super::negotiation::Output;
    use super::super::printer::Printer;
    use super::super::table::IncludeObject;
    use super::*;
    use apimachinery::object::Object;
    use apis::kind::Kind;
    use clock::Clock;

    fn list(sizes: &[usize]) -> List {
        let object = |(at, size): (usize, &usize)| {
            let tree = json!({"metadata": {"name": format!("a{at}"), "resourceVersion": (at * 7).to_string()},
                "data": {"text": "x".repeat(*size)}});
            Arc::new(Object::from_value(&tree, vec![]).unwrap())
        };
        List::complete(sizes.iter().enumerate().map(object).collect(), 9)
    }

    #[tokio::test]
    async fn in_stretches_it_is_the_same_as_at_once() {
        let sizes = [
            &[][..],
            &[1],
            &[STRETCH_BYTES * 2, 5, 7],
            &[30_000; 9],
            &[300; 500],
            &[5, STRETCH_BYTES, STRETCH_BYTES - 200, 3],
        ];
        for (sizes, is_custom) in sizes.into_iter().flat_map(|sizes| [(sizes, false), (sizes, true)]) {
            let kind = Kind { is_custom, ..Kind::builtin("", "v1", "ConfigMap", "configmaps", "x") };
            let clock = Clock::stepped(DateTime::UNIX_EPOCH);
            let printer =
                Printer::new(&Arc::new(kind), false, Output::default(), IncludeObject::Metadata, clock)
                    .unwrap();
            let (list, mut whole) = (list(sizes), BytesMut::new());
            printer.list(&mut whole, &list);
            whole.put_u8(b'\n');
            let pieces = printer.list_in_pieces(&list).unwrap();
            let body = ListBody::new(list, pieces);
            assert_eq!(body.size_hint().exact(), Some(whole.len() as u64));
            let copied = Body::from(body.clone());
            assert_eq!(copied.size_hint().exact(), Some(whole.len() as u64));
            assert_eq!(copied.collect().await.unwrap().to_bytes(), whole);
            assert_eq!(body.collect().await.unwrap().to_bytes(), whole);
        }
    }
}
