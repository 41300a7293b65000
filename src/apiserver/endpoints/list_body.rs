//! The body of a long list: written while it is sent, a chunk at a time.
//!
//! A list is a concatenation of what is in memory already. Made at once it would be there twice, and all of
//! it would travel through the processor's caches once more; a chunk goes from there to the socket.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use http_body::{Frame, SizeHint};

use super::printer::Pieces;
use crate::apimachinery::list::List;

/// About how large a chunk is. One object that is larger is a chunk of its own.
pub(super) const CHUNK_BYTES: usize = 64 * 1024;

/// A list that is being sent. Its length is known from the beginning.
pub(super) struct ListBody {
    list: List,
    pieces: Pieces,
    next: usize,
    left: usize,
}

impl ListBody {
    /// All of a list, and the line break behind it.
    pub fn new(list: List, pieces: Pieces) -> ListBody {
        let items = list.items.iter().enumerate().map(|(at, object)| pieces.item_bytes(at, object));
        let left = pieces.head.len() + items.sum::<usize>() + Pieces::TAIL.len() + 1;
        ListBody { list, pieces, next: 0, left }
    }

    /// How many bytes are still to come.
    pub fn bytes_left(&self) -> usize {
        self.left
    }

    fn chunk(&mut self) -> Bytes {
        let mut out = BytesMut::with_capacity(CHUNK_BYTES.min(self.left));
        out.put_slice(&std::mem::take(&mut self.pieces.head));
        while let Some(object) = self.list.items.get(self.next) {
            let bytes = self.pieces.item_bytes(self.next, object);
            if !out.is_empty() && out.len() + bytes > CHUNK_BYTES {
                return out.freeze();
            }
            self.pieces.write_item(&mut out, self.next, object);
            self.next += 1;
        }
        out.put_slice(Pieces::TAIL);
        out.put_u8(b'\n');
        out.freeze()
    }
}

impl From<ListBody> for Body {
    fn from(list: ListBody) -> Body {
        Body::new(list)
    }
}

impl http_body::Body for ListBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let chunk = self.chunk();
        self.left -= chunk.len();
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chrono::DateTime;
    use http_body::Body as _;
    use http_body_util::BodyExt;
    use serde_json::json;

    use super::super::negotiation::Output;
    use super::super::printer::Printer;
    use super::super::table::IncludeObject;
    use super::*;
    use crate::apimachinery::object::Object;
    use crate::apis::kind::Kind;
    use crate::clock::Clock;

    fn list(sizes: &[usize]) -> List {
        let object = |(at, size): (usize, &usize)| {
            let tree = json!({"metadata": {"name": format!("a{at}"), "resourceVersion": (at * 7).to_string()},
                "data": {"text": "x".repeat(*size)}});
            Arc::new(Object::from_value(&tree, vec![]).unwrap())
        };
        List::complete(sizes.iter().enumerate().map(object).collect(), 9)
    }

    #[tokio::test]
    async fn in_chunks_it_is_the_same_as_at_once() {
        let sizes =
            [&[][..], &[1], &[CHUNK_BYTES * 2, 5, 7], &[30_000; 9], &[5, CHUNK_BYTES, CHUNK_BYTES - 200, 3]];
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
            assert_eq!(body.collect().await.unwrap().to_bytes(), whole.freeze());
        }
    }
}
