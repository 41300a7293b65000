//! `QueryNode`: a part of a query.

use serde_json::Value;

/// A part of a query.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum QueryNode {
    /// `.`
    Whole,
    Literal(Value),
    /// `of[index]`, `of.name`
    At(Box<QueryNode>, Box<QueryNode>),
    /// `of[]`
    Each(Box<QueryNode>),
    /// `of[from:to]`
    Slice(Box<QueryNode>, Box<QueryNode>, Box<QueryNode>),
    /// `of?`
    Try(Box<QueryNode>),
    Binary(&'static str, Box<QueryNode>, Box<QueryNode>),
    If(Box<QueryNode>, Box<QueryNode>, Box<QueryNode>),
    List(Option<Box<QueryNode>>),
    Object(Vec<(String, QueryNode)>),
    Call(String, Vec<QueryNode>),
}
