//! `Answer`: what a verb or subresource has to say, before it is written for whoever asked.

use std::sync::Arc;

use tokio::sync::mpsc::Receiver;

use apimachinery::list::List;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apimachinery::watch::WatchEvent;
use apimachinery::wire::ApiResponse;

/// What a verb answers.
pub(crate) enum Answer {
    /// One object of the path's kind (or a Scale, below `scale`), with the HTTP status.
    Object(u16, Arc<Object>),
    /// A list.
    List(List),
    /// Events until the client or the server has enough.
    Watch(Receiver<WatchEvent>),
    /// A success that is no object; its code is the HTTP status.
    Status(Status),
    /// Something of its own: a log.
    Raw(ApiResponse),
}
