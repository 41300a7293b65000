//! golang: how Go writes values into texts, which is what clients read in messages of Kubernetes.
//!
//! Comes in: values of JSON. Goes out: what `fmt`'s verbs and `strconv` make of them. Knows no kind of
//! Kubernetes.

#![warn(missing_docs, unreachable_pub)]

pub mod base64_text;
pub mod duration;
pub mod first_bytes;
pub mod fnv;
pub mod go_print;
pub mod go_text;
pub mod grpc_code;
pub mod object_key;
pub mod text_error;
