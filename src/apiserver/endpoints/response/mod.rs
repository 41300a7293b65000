//! How answers are written (`handlers/responsewriters`): objects, lists, tables and watches in the form that
//! the client reads.
//!
//! In comes an object as it is stored, out go bytes. Nothing here knows who asked, or for what reason.

pub(crate) mod answer;

pub(crate) mod negotiation;

pub(crate) mod json;
pub(crate) mod messages;
pub(crate) mod printer;
pub(crate) mod table;

pub(crate) mod writers;

pub mod list_body;
pub mod segments;

pub(crate) mod unread_watches;
pub(crate) mod watch_server;
pub(crate) mod websocket;
