//! An answer's body as the server hands it to HTTP: bytes, or a long list in pieces.

use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::{Buf, Bytes};
use http_body::{Frame, SizeHint};

use super::bad_requests::AnswerTurn;
use crate::endpoints::response::list_body::ListBody;
use crate::endpoints::response::segments::Segments;
use crate::endpoints::response::unread_watches::{HangUp, Piece, Sending, UnreadWatches};
use apimachinery::wire::{ApiResponse, WatchStream};

/// A body that is sent.
pub(super) struct Sent {
    content: BodyContent,
    _turn: AnswerTurn,
}

enum BodyContent {
    /// What the answer has.
    Plain(Body),
    /// The list that it is.
    List(ListBody),
    /// A watch, and what of it is on its way.
    Watch(Body, Sending),
}

/// What is sent at a time.
pub(super) enum Data {
    /// One piece.
    Bytes(Bytes),
    /// Several pieces, one after the other.
    Segments(Segments),
    /// One of a watch.
    Watched(Piece),
}

/// The answer, ready to be sent over a connection; the turn ends with it.
pub(super) fn sent(
    mut answer: ApiResponse,
    turn: AnswerTurn,
    watches: &UnreadWatches,
    hang_up: &HangUp,
) -> http::Response<Sent> {
    turn.answers(answer.status());
    let list = answer.extensions_mut().remove::<ListBody>();
    let is_watch = answer.extensions_mut().remove::<WatchStream>().is_some();
    let content = |body| match list {
        Some(list) => BodyContent::List(list),
        None if is_watch => BodyContent::Watch(body, watches.begin(hang_up)),
        None => BodyContent::Plain(body),
    };
    answer.map(|body| Sent { content: content(body), _turn: turn })
}

impl http_body::Body for Sent {
    type Data = Data;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Data>, axum::Error>>> {
        Poll::Ready(match &mut self.content {
            BodyContent::Plain(body) => {
                let frame = ready!(Pin::new(body).poll_frame(cx));
                frame.map(|frame| Ok(frame?.map_data(Data::Bytes)))
            }
            BodyContent::Watch(body, sending) => {
                let Poll::Ready(frame) = Pin::new(body).poll_frame(cx) else {
                    // All that there was is said.
                    return sending.poll_over(cx).map(|()| None);
                };
                frame.map(|frame| Ok(frame?.map_data(|bytes| Data::Watched(sending.send(bytes)))))
            }
            BodyContent::List(list) => {
                let frame = ready!(Pin::new(list).poll_frame(cx));
                frame.map(|frame| Ok(frame.unwrap_or_else(|never| match never {}).map_data(Data::Segments)))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            BodyContent::Plain(body) | BodyContent::Watch(body, _) => body.is_end_stream(),
            BodyContent::List(list) => list.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            BodyContent::Plain(body) | BodyContent::Watch(body, _) => body.size_hint(),
            BodyContent::List(list) => list.size_hint(),
        }
    }
}

impl Buf for Data {
    fn remaining(&self) -> usize {
        match self {
            Data::Bytes(bytes) => bytes.remaining(),
            Data::Segments(segments) => segments.remaining(),
            Data::Watched(piece) => piece.remaining(),
        }
    }

    fn chunk(&self) -> &[u8] {
        match self {
            Data::Bytes(bytes) => bytes.chunk(),
            Data::Segments(segments) => segments.chunk(),
            Data::Watched(piece) => piece.chunk(),
        }
    }

    fn advance(&mut self, count: usize) {
        match self {
            Data::Bytes(bytes) => bytes.advance(count),
            Data::Segments(segments) => segments.advance(count),
            Data::Watched(piece) => piece.advance(count),
        }
    }

    fn chunks_vectored<'a>(&'a self, out: &mut [IoSlice<'a>]) -> usize {
        match self {
            Data::Bytes(bytes) => bytes.chunks_vectored(out),
            Data::Segments(segments) => segments.chunks_vectored(out),
            Data::Watched(piece) => piece.chunks_vectored(out),
        }
    }
}
