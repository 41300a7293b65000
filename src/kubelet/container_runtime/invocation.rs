//! What a container starts, in the words of the machine.

use apis::views::pod::Container;
use machine::invocation::Invocation;

/// The image and the command line of a container.
pub(crate) fn of(container: &Container) -> Invocation<'_> {
    Invocation {
        image: &container.image,
        command: &container.command,
        args: &container.args,
        stdin: container.stdin,
        stop_signal: container.lifecycle.as_ref().and_then(|lifecycle| lifecycle.stop_signal.as_deref()),
    }
}
