//! How Apache's expressions are written: what is none is refused, what is not followed here is told.

use super::apache_expressions::{ApacheCondition, ExpressionWord, WordPart};
use super::apache_patterns::{ApacheMisreading, ApachePattern, PatternCount};

/// So deep may parentheses and negations stand in each other; what is deeper is not followed.
const MAX_DEPTH: usize = 32;
/// Variables that Apache has beside those that are known here.
const OTHER_VARIABLES: &[&str] = &[
    "API_VERSION",
    "AUTH_TYPE",
    "CONN_LOG_ID",
    "CONN_REMOTE_ADDR",
    "CONTEXT_DOCUMENT_ROOT",
    "CONTEXT_PREFIX",
    "DOCUMENT_ROOT",
    "HANDLER",
    "HTTP2",
    "IPV6",
    "IS_SUBREQ",
    "LAST_MODIFIED",
    "PATH_INFO",
    "REMOTE_HOST",
    "REMOTE_IDENT",
    "REMOTE_USER",
    "REQUEST_FILENAME",
    "REQUEST_LOG_ID",
    "SCRIPT_FILENAME",
    "SCRIPT_GROUP",
    "SCRIPT_NAME",
    "SCRIPT_USER",
    "SERVER_ADDR",
    "SERVER_ADMIN",
    "SERVER_PORT",
    "SERVER_SOFTWARE",
    "TIME",
    "TIME_DAY",
    "TIME_HOUR",
    "TIME_MIN",
    "TIME_MON",
    "TIME_SEC",
    "TIME_WDAY",
    "TIME_YEAR",
    "CONTENT_LENGTH",
];
/// Those that are known.
const VARIABLES: &[&str] = &[
    "CONTENT_TYPE",
    "DOCUMENT_URI",
    "HTTPS",
    "HTTP_ACCEPT",
    "HTTP_COOKIE",
    "HTTP_FORWARDED",
    "HTTP_HOST",
    "HTTP_PROXY_CONNECTION",
    "HTTP_REFERER",
    "HTTP_USER_AGENT",
    "QUERY_STRING",
    "REMOTE_ADDR",
    "REMOTE_PORT",
    "REQUEST_METHOD",
    "REQUEST_SCHEME",
    "REQUEST_STATUS",
    "REQUEST_URI",
    "SERVER_NAME",
    "SERVER_PROTOCOL",
    "THE_REQUEST",
];
/// Functions that Apache has beside those that are known here.
const OTHER_FUNCTIONS: &[&str] = &[
    "base64", "escape", "file", "filemod", "filesize", "ldap", "md5", "note", "osenv", "replace", "sha1",
    "unbase64", "unescape",
];
const FUNCTIONS: &[&str] = &["env", "http", "req", "req_novary", "reqenv", "resp", "tolower", "toupper"];
/// Operators between words that Apache has beside those that are known here.
const OTHER_OPERATORS: &[&str] = &["-in", "-ipmatch", "-strmatch", "-strcmatch", "-fnmatch"];
/// And before one.
const OTHER_UNARY: &str = "deflLhsxUAR";

type ExpressionRead<T> = Result<T, ApacheMisreading>;

/// Reads all of a text.
pub(super) fn read(text: &str, patterns: &mut PatternCount) -> ExpressionRead<ApacheCondition> {
    let mut reader = ExpressionReader { rest: text, depth: 0, patterns };
    let condition = reader.either()?;
    if reader.blank().is_empty() { Ok(condition) } else { Err(reader.unexpected()) }
}

/// Reads an expression from its beginning on.
struct ExpressionReader<'t, 'p> {
    rest: &'t str,
    depth: usize,
    patterns: &'p mut PatternCount,
}

impl<'t> ExpressionReader<'t, '_> {
    /// What comes behind blanks.
    fn blank(&mut self) -> &'t str {
        self.rest = self.rest.trim_start();
        self.rest
    }

    fn takes(&mut self, token: &str) -> bool {
        let taken = self.blank().strip_prefix(token);
        self.rest = taken.unwrap_or(self.rest);
        taken.is_some()
    }

    /// A whole word of letters.
    fn takes_word(&mut self, word: &str) -> bool {
        let rest = self.blank();
        let ends = |rest: &str| !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_');
        let taken = rest.strip_prefix(word).filter(|rest| ends(rest));
        self.rest = taken.unwrap_or(self.rest);
        taken.is_some()
    }

    fn unexpected(&mut self) -> ApacheMisreading {
        let what = match self.blank() {
            "" => "end of file".to_owned(),
            rest if rest.starts_with(|letter: char| letter.is_ascii_digit()) => "number".to_owned(),
            rest if rest.starts_with(|letter: char| letter.is_ascii_alphabetic()) => "identifier".to_owned(),
            rest => format!("'{}'", &rest[..rest.chars().next().map_or(0, char::len_utf8)]),
        };
        ApacheMisreading::Refused(format!("syntax error, unexpected {what}"))
    }

    fn either(&mut self) -> ExpressionRead<ApacheCondition> {
        let mut one = self.both()?;
        while self.takes("||") || self.takes_word("or") {
            one = ApacheCondition::Or(Box::new(one), Box::new(self.both()?));
        }
        Ok(one)
    }

    fn both(&mut self) -> ExpressionRead<ApacheCondition> {
        let mut one = self.negated()?;
        while self.takes("&&") || self.takes_word("and") {
            one = ApacheCondition::And(Box::new(one), Box::new(self.negated()?));
        }
        Ok(one)
    }

    fn negated(&mut self) -> ExpressionRead<ApacheCondition> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(ApacheMisreading::Unknown(format!(
                "an expression that is over {MAX_DEPTH} levels deep"
            )));
        }
        let read = if self.takes("!") || self.takes_word("not") {
            self.negated().map(|inner| ApacheCondition::Not(Box::new(inner)))
        } else {
            self.one()
        };
        self.depth -= 1;
        read
    }

    fn one(&mut self) -> ExpressionRead<ApacheCondition> {
        if self.takes_word("true") {
            return Ok(ApacheCondition::Constant(true));
        }
        if self.takes_word("false") {
            return Ok(ApacheCondition::Constant(false));
        }
        if self.takes("(") {
            let inner = self.either()?;
            return if self.takes(")") { Ok(inner) } else { Err(self.unexpected()) };
        }
        let mut letters = self.blank().chars();
        if let (Some('-'), Some(letter), Some(' ' | '\t' | '%' | '\'' | '"')) =
            (letters.next(), letters.next(), letters.next())
        {
            return self.unary(letter);
        }
        let word = self.word()?;
        self.compared(word)
    }

    fn unary(&mut self, letter: char) -> ExpressionRead<ApacheCondition> {
        match letter {
            'z' | 'n' | 'T' => {}
            letter if OTHER_UNARY.contains(letter) => {
                return Err(ApacheMisreading::Unknown(format!("-{letter}")));
            }
            letter => {
                return Err(ApacheMisreading::Refused(format!("Unary operator '{letter}' does not exist")));
            }
        }
        self.rest = &self.rest[2..];
        Ok(ApacheCondition::Unary(letter, self.word()?))
    }

    fn compared(&mut self, word: ExpressionWord) -> ExpressionRead<ApacheCondition> {
        if let Some(other) = OTHER_OPERATORS.iter().find(|other| self.takes_word(other)) {
            return Err(ApacheMisreading::Unknown((*other).to_owned()));
        }
        for (operator, fits) in [("=~", true), ("!~", false)] {
            if self.takes(operator) {
                return Ok(ApacheCondition::Matched(word, self.pattern()?, fits));
            }
        }
        for operator in ["==", "!=", "<=", ">=", "<", ">"] {
            if self.takes(operator) {
                return Ok(ApacheCondition::Compared(operator, word, self.word()?));
            }
        }
        if self.takes("=") {
            return Ok(ApacheCondition::Compared("==", word, self.word()?));
        }
        for operator in ["-eq", "-ne", "-le", "-ge", "-lt", "-gt"] {
            if self.takes_word(operator) || self.takes_word(&operator[1..]) {
                return Ok(ApacheCondition::Compared(operator, word, self.word()?));
            }
        }
        if self.blank().starts_with('.') {
            return Err(ApacheMisreading::Unknown("concatenation".to_owned()));
        }
        Err(self.unexpected())
    }

    /// `/pattern/i` or `m#pattern#i`
    fn pattern(&mut self) -> ExpressionRead<ApachePattern> {
        let rest = self.blank();
        let rest = rest.strip_prefix('m').unwrap_or(rest);
        let Some(sign) = rest.chars().next().filter(|sign| "/#$%^|?!'\",;:._-".contains(*sign)) else {
            return Err(self.unexpected());
        };
        let mut is_escaped = false;
        let end = rest[1..].find(|letter| {
            let ends = letter == sign && !is_escaped;
            is_escaped = letter == '\\' && !is_escaped;
            ends
        });
        let Some(end) = end else { return Err(ApacheMisreading::Refused("Unterminated regex".into())) };
        let text = rest[1..=end].replace(&format!("\\{sign}"), &sign.to_string());
        let rest = &rest[end + 2..];
        let flags = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
        let ignores_case = rest[..flags].contains('i');
        self.rest = &rest[flags..];
        self.patterns.compiled(&text, ignores_case)
    }

    fn word(&mut self) -> ExpressionRead<ExpressionWord> {
        let rest = self.blank();
        if let Some(quote) = rest.chars().next().filter(|first| matches!(first, '\'' | '"')) {
            self.rest = &rest[1..];
            return self.quoted(quote);
        }
        if rest.starts_with("%{") {
            return Ok(ExpressionWord(vec![self.variable()?]));
        }
        if rest.starts_with('$') {
            return Err(ApacheMisreading::Unknown("a back reference".to_owned()));
        }
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let end = rest.find(|letter| !is_letter(letter)).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        if !name.is_empty() && name.chars().all(|letter| letter.is_ascii_digit()) {
            self.rest = behind;
            return Ok(ExpressionWord(vec![WordPart::Text(name.to_owned())]));
        }
        if name.is_empty() || !behind.trim_start().starts_with('(') {
            return Err(self.unexpected());
        }
        if matches!(name, "sub" | "join" | "split") {
            return Err(ApacheMisreading::Unknown(name.to_owned()));
        }
        self.rest = behind;
        self.takes("(");
        let of = self.word()?;
        if !self.takes(")") {
            return Err(self.unexpected());
        }
        Ok(ExpressionWord(vec![called(name, of)?]))
    }

    /// Behind the quote: up to the next one.
    fn quoted(&mut self, quote: char) -> ExpressionRead<ExpressionWord> {
        let mut parts = vec![];
        let mut text = String::new();
        loop {
            let mut letters = self.rest.chars();
            match letters.next() {
                None => return Err(ApacheMisreading::Refused("Unterminated string".into())),
                Some(letter) if letter == quote => break,
                Some('\\') => text.extend(letters.next()),
                Some('%') if self.rest.starts_with("%{") => {
                    parts.push(WordPart::Text(std::mem::take(&mut text)));
                    parts.push(self.variable()?);
                    continue;
                }
                Some(letter) => text.push(letter),
            }
            self.rest = letters.as_str();
        }
        self.rest = &self.rest[1..];
        parts.push(WordPart::Text(text));
        Ok(ExpressionWord(parts))
    }

    /// `%{NAME}` or `%{function:of}`
    fn variable(&mut self) -> ExpressionRead<WordPart> {
        let Some((inner, behind)) = self.rest[2..].split_once('}') else {
            self.rest = "";
            return Err(self.unexpected());
        };
        self.rest = behind;
        if let Some((function, of)) = inner.split_once(':') {
            if function.is_empty() {
                return Err(ApacheMisreading::Unknown("an expression in a string".to_owned()));
            }
            return called(function, ExpressionWord(vec![WordPart::Text(of.to_owned())]));
        }
        let named =
            |names: &[&'static str]| names.iter().copied().find(|name| name.eq_ignore_ascii_case(inner));
        match (named(VARIABLES), named(OTHER_VARIABLES)) {
            (Some(name), _) => Ok(WordPart::Variable(name)),
            (None, Some(other)) => Err(ApacheMisreading::Unknown(format!("%{{{other}}}"))),
            (None, None) if inner.to_ascii_uppercase().starts_with("SSL_") => {
                Err(ApacheMisreading::Unknown(format!("%{{{inner}}}")))
            }
            (None, None) => Err(ApacheMisreading::Refused(format!("Variable '{inner}' does not exist"))),
        }
    }
}

fn called(name: &str, of: ExpressionWord) -> ExpressionRead<WordPart> {
    let is_it = |own: &&&str| own.eq_ignore_ascii_case(name);
    match (FUNCTIONS.iter().find(is_it), OTHER_FUNCTIONS.iter().find(is_it)) {
        (Some(name), _) => Ok(WordPart::Called(name, of)),
        (None, Some(other)) => Err(ApacheMisreading::Unknown(format!("{other}()"))),
        (None, None) => Err(ApacheMisreading::Refused(format!("Function '{name}' does not exist"))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::configured_web::apache_expressions::RequestFacts;
    use crate::requests::{WebAnswer, WebRequest};

    fn holds(text: &str) -> bool {
        let asked = WebRequest {
            method: "GET",
            target: "/a/b?c=d",
            headers: vec![("host", "web:80"), ("x-own", "Y z")],
            from: "10.0.0.9:4000",
            ..WebRequest::default()
        };
        let answered =
            WebAnswer { code: 404, headers: vec![("x-said", "s".to_owned())], ..WebAnswer::default() };
        let environment = BTreeMap::from([("mine".to_owned(), "1".to_owned())]);
        let facts = RequestFacts {
            asked: &asked,
            path: "/a/b",
            query: "c=d",
            environment: &environment,
            answered: Some(&answered),
        };
        super::read(text, &mut PatternCount::default()).unwrap().holds(&facts)
    }

    #[test]
    fn what_is_known_of_a_request_is_compared() {
        for text in [
            "%{REQUEST_STATUS} == 404",
            "%{REQUEST_STATUS} -ge 400 && %{REQUEST_STATUS} -lt 500",
            "%{REQUEST_STATUS} eq 404",
            "%{HTTP:X-Own} == 'Y z'",
            "tolower(%{HTTP:x-own}) = \"y z\"",
            "-z %{HTTP:Other}",
            "-n %{HTTP_HOST}",
            "!(-z '%{HTTP:X-Own}')",
            "%{REQUEST_URI} =~ m#^/a/#",
            "%{REQUEST_URI} =~ /^\\/A/i && !(%{REQUEST_URI} =~ /x$/)",
            "%{QUERY_STRING} !~ /e/",
            "false || %{REQUEST_METHOD} == 'GET' && true",
            "'%{REMOTE_ADDR}:%{REMOTE_PORT}' == '10.0.0.9:4000'",
            "%{reqenv:mine} == '1' && -T reqenv('mine') && ! -T reqenv('other')",
            "%{resp:X-Said} == 's' && %{SERVER_NAME} == 'web'",
            "%{THE_REQUEST} == 'GET /a/b?c=d HTTP/1.1' && 'b' > 'a'",
            "not %{HTTPS} == 'on'",
        ] {
            assert!(holds(text), "{text}");
            assert!(!holds(&format!("!({text})")), "{text}");
        }
    }

    #[test]
    fn what_is_no_expression_is_refused_and_what_is_not_followed_is_told() {
        let misread = |text: &str| super::read(text, &mut PatternCount::default()).unwrap_err();
        for (text, why) in [
            ("", "syntax error, unexpected end of file"),
            ("%{REQUEST_STATUS} ==", "syntax error, unexpected end of file"),
            ("%{REQUEST_STATUS} 404", "syntax error, unexpected number"),
            ("%{REQUEST_STATUS", "syntax error, unexpected end of file"),
            ("true)", "syntax error, unexpected ')'"),
            ("%{NO_SUCH} == 1", "Variable 'NO_SUCH' does not exist"),
            ("%{nosuch:x} == 1", "Function 'nosuch' does not exist"),
            ("-q 'x'", "Unary operator 'q' does not exist"),
            ("'a == 1", "Unterminated string"),
            ("'a' =~ /b", "Unterminated regex"),
        ] {
            assert_eq!(misread(text), ApacheMisreading::Refused(why.to_owned()), "{text}");
        }
        let deep = format!("{}true{}", "(".repeat(MAX_DEPTH), ")".repeat(MAX_DEPTH));
        for text in ["-R '10.0.0.0/8'", "%{TIME_HOUR} -lt 9", "md5('a') == 'b'", "'a' -in {'a'}", &deep] {
            assert!(matches!(misread(text), ApacheMisreading::Unknown(_)), "{text}");
        }
        let fits = format!("{}true{}", "(".repeat(MAX_DEPTH - 1), ")".repeat(MAX_DEPTH - 1));
        assert!(holds(&fits));
    }
}
