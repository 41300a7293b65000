//! How this process was called, as it may be shown.

/// Flags whose values have passwords in them.
const SECRET_FLAGS: &[&str] = &["--private-registries"];

/// A command line, but for passwords.
pub(super) fn without_secrets(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let mut hides_next = false;
    let mut shown = Vec::new();
    for argument in arguments {
        let flag = argument.split_once('=').map_or(argument.as_str(), |(flag, _)| flag);
        let is_secret = SECRET_FLAGS.contains(&flag);
        shown.push(match (hides_next, is_secret && flag.len() < argument.len()) {
            (true, _) => "...".to_owned(),
            (_, true) => format!("{flag}=..."),
            _ => argument.clone(),
        });
        hides_next = is_secret && flag.len() == argument.len();
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_stands_in_the_command_line() {
        let line = "kubarium up --private-registries a.io=u:p --nodes 2 --private-registries=b.io=v:q -v=2";
        let shown = without_secrets(line.split(' ').map(str::to_owned)).join(" ");
        assert_eq!(shown, "kubarium up --private-registries ... --nodes 2 --private-registries=... -v=2");
    }
}
