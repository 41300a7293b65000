//! How programs are called.

/// A program's name without its folder.
pub(crate) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether a program is a shell.
pub(crate) fn is_shell(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "ash" | "dash")
}

/// `-c`, `-ec`, `-exc` ...
pub(crate) fn is_command_flag(flag: &str) -> bool {
    flag.starts_with('-') && flag.ends_with('c') && flag[1..].chars().all(|c| "cexlu".contains(c))
}
