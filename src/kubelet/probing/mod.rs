//! Probes and hooks that ask the network, from the node's own address (`pkg/probe`, `pkg/kubelet/lifecycle`):
//! whose answers are not known ahead, or that something on the way may change.
//!
//! What comes in: what a probe or a hook says, and who is probed. What goes out: an answer in the words of
//! the real kubelet. Who asks is a task for the time of that question, one for each probe at most.

mod dialling;

mod grpc;
mod http;

mod inquiry;

mod asking;
