//! Room on the stack for expressions that nest.

/// What one level of nesting needs at most, in bytes, and what is added when there is less.
const RED_ZONE: usize = 128 << 10;
const MORE_STACK: usize = 1 << 20;

/// Runs one level of something that nests. An expression comes from outside: it may be as deep as its limit
/// says wherever it is asked for, however much of the stack is used up there.
pub(super) fn on_enough_stack<T>(run: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(RED_ZONE, MORE_STACK, run)
}
