//! An answer's body as the server hands it to HTTP: bytes, or a long list in pieces.

use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::{Buf, Bytes};
use http_body::{Frame, SizeHint};

use super::endpoints::list_body::ListBody;
use super::endpoints::segments::Segments;
use super::refusals::Turn;
use crate::apimachinery::wire::ApiResponse;

/// A body that is sent.
pub(super) struct Sent {
    content: Content,
    _turn: Turn,
}

enum Content {
    /// What the answer has.
    Plain(Body),
    /// The list that it is.
    List(ListBody),
}

/// What is sent at a time.
pub(super) enum Data {
    /// One piece.
    Bytes(Bytes),
    /// Several.
    Segments(Segments),
}

/// The answer, ready to be sent; the turn ends with it.
pub(super) fn sent(mut answer: ApiResponse, turn: Turn) -> http::Response<Sent> {
    turn.answers(answer.status());
    let list = answer.extensions_mut().remove::<ListBody>();
    answer.map(|body| Sent { content: list.map_or(Content::Plain(body), Content::List), _turn: turn })
}

impl http_body::Body for Sent {
    type Data = Data;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Data>, axum::Error>>> {
        Poll::Ready(match &mut self.content {
            Content::Plain(body) => {
                let frame = ready!(Pin::new(body).poll_frame(cx));
                frame.map(|frame| Ok(frame?.map_data(Data::Bytes)))
            }
            Content::List(list) => {
                let frame = ready!(Pin::new(list).poll_frame(cx));
                frame.map(|frame| Ok(frame.unwrap_or_else(|never| match never {}).map_data(Data::Segments)))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Plain(body) => body.is_end_stream(),
            Content::List(list) => list.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Plain(body) => body.size_hint(),
            Content::List(list) => list.size_hint(),
        }
    }
}

impl Buf for Data {
    fn remaining(&self) -> usize {
        match self {
            Data::Bytes(bytes) => bytes.remaining(),
            Data::Segments(segments) => segments.remaining(),
        }
    }

    fn chunk(&self) -> &[u8] {
        match self {
            Data::Bytes(bytes) => bytes.chunk(),
            Data::Segments(segments) => segments.chunk(),
        }
    }

    fn advance(&mut self, count: usize) {
        match self {
            Data::Bytes(bytes) => bytes.advance(count),
            Data::Segments(segments) => segments.advance(count),
        }
    }

    fn chunks_vectored<'a>(&'a self, out: &mut [IoSlice<'a>]) -> usize {
        match self {
            Data::Bytes(bytes) => bytes.chunks_vectored(out),
            Data::Segments(segments) => segments.chunks_vectored(out),
        }
    }
}
