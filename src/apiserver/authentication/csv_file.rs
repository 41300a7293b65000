//! The files of users that the historical flags name: CSV, secret first, then name, uid and groups.

use std::path::Path;
use std::sync::Arc;

use super::config_error::AuthenticationConfigError;
use apimachinery::user::UserInfo;

/// A line: the secret and whose it is.
pub(super) type Row = (String, Arc<UserInfo>);

/// Reads a file (`tokenfile.NewCSV`, `passwordfile.NewCSV`). `what` is `token` or `password`.
///
/// # Errors
/// A file that cannot be read, is no CSV, or has a line of less than three columns.
pub(super) fn read(path: &Path, what: &str) -> Result<Vec<Row>, AuthenticationConfigError> {
    let text = std::fs::read_to_string(path).map_err(|error| AuthenticationConfigError::file(path, error))?;
    parse(&text, what).map_err(|error| AuthenticationConfigError::file(path, error))
}

fn parse(text: &str, what: &str) -> Result<Vec<Row>, String> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        if record.len() < 3 {
            let needed = format!("must have at least 3 columns ({what}, user name, user uid)");
            return Err(format!("{what} file {needed}, found {}", record.len()));
        }
        let column = |at: usize| record.get(at).unwrap_or_default().trim();
        if column(0).is_empty() {
            tracing::warn!("an empty {what} in the {what} file is left out");
            continue;
        }
        let groups: Vec<&str> = column(3).split(',').filter(|group| !group.is_empty()).collect();
        let user = UserInfo { uid: column(2).into(), ..UserInfo::authenticated(column(1), &groups) };
        rows.push((record[0].to_owned(), Arc::new(user)));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_secret_a_name_a_uid_and_groups() {
        let text = "# people\nt1,jane,u1,\"dev,ops\"\n\nt2,joe,u2\n,nobody,u3\n";
        let rows = parse(text, "token").unwrap();
        let shown: Vec<String> = rows
            .iter()
            .map(|(secret, user)| format!("{secret} {} {} {:?}", user.name, user.uid, user.groups))
            .collect();
        let expected = [
            "t1 jane u1 [\"dev\", \"ops\", \"system:authenticated\"]",
            "t2 joe u2 [\"system:authenticated\"]",
        ];
        assert_eq!(shown, expected);
        let error = parse("secret,jane", "password").unwrap_err();
        let text = "password file must have at least 3 columns (password, user name, user uid), found 2";
        assert_eq!(error, text);
    }
}
