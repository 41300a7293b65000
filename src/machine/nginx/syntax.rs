//! How nginx's configuration is written: directives with words, and blocks of them.

use std::sync::Arc;

/// So deep may blocks stand in one another; deeper ones are refused.
const MAX_DEPTH: usize = 32;

/// A directive, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Directive {
    pub(super) name: String,
    pub(super) words: Vec<String>,
    /// What is in its braces, where it has any.
    pub(super) block: Option<Vec<Directive>>,
    pub(super) file: Arc<str>,
    pub(super) line: usize,
}

impl Directive {
    /// Its first word.
    pub(super) fn word(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// As nginx says where it is.
    pub(super) fn place(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }
}

/// What is wrong with a file, and where.
#[derive(Debug, PartialEq)]
pub(super) struct ConfSyntaxError(pub(super) String);

/// What is between the words.
#[derive(Debug, PartialEq)]
enum ConfToken {
    Word(String),
    Ends,
    Opens,
    Closes,
}

/// The directives of a file.
///
/// # Errors
/// What is wrong with them, in nginx's words.
pub(super) fn parse(text: &str, file: &str) -> Result<Vec<Directive>, ConfSyntaxError> {
    let file: Arc<str> = file.into();
    let mut reader = ConfReader { rest: text, line: 1, file: &file };
    let (directives, is_closed) = reader.block(0)?;
    if is_closed { Err(reader.wrong("unexpected \"}\"")) } else { Ok(directives) }
}

struct ConfReader<'a> {
    rest: &'a str,
    line: usize,
    file: &'a Arc<str>,
}

impl ConfReader<'_> {
    fn wrong(&self, what: &str) -> ConfSyntaxError {
        ConfSyntaxError(format!("{what} in {}:{}", self.file, self.line))
    }

    /// Whether it ends with a brace.
    fn block(&mut self, depth: usize) -> Result<(Vec<Directive>, bool), ConfSyntaxError> {
        if depth > MAX_DEPTH {
            return Err(self.wrong("too many blocks in one another"));
        }
        let mut directives = Vec::new();
        let mut words = Vec::new();
        let mut line = self.line;
        loop {
            let token = self.token()?;
            if words.is_empty() {
                line = self.line;
            }
            match token {
                Some(ConfToken::Word(word)) => words.push(word),
                None if words.is_empty() => return Ok((directives, false)),
                None => return Err(self.wrong("unexpected end of file, expecting \";\" or \"}\"")),
                Some(ConfToken::Closes) if words.is_empty() => return Ok((directives, true)),
                Some(ConfToken::Closes) => return Err(self.wrong("unexpected \"}\"")),
                Some(ConfToken::Ends) if words.is_empty() => return Err(self.wrong("unexpected \";\"")),
                Some(ConfToken::Opens) if words.is_empty() => return Err(self.wrong("unexpected \"{\"")),
                Some(end) => {
                    let name = words.remove(0);
                    let block = if end == ConfToken::Opens { Some(self.inner(depth)?) } else { None };
                    let words = std::mem::take(&mut words);
                    directives.push(Directive { name, words, block, file: self.file.clone(), line });
                }
            }
        }
    }

    fn inner(&mut self, depth: usize) -> Result<Vec<Directive>, ConfSyntaxError> {
        match self.block(depth + 1)? {
            (directives, true) => Ok(directives),
            _ => Err(self.wrong("unexpected end of file, expecting \"}\"")),
        }
    }

    fn next(&mut self) -> Option<char> {
        let mut letters = self.rest.chars();
        let letter = letters.next()?;
        self.rest = letters.as_str();
        self.line += usize::from(letter == '\n');
        Some(letter)
    }

    fn token(&mut self) -> Result<Option<ConfToken>, ConfSyntaxError> {
        loop {
            let Some(letter) = self.rest.chars().next() else { return Ok(None) };
            match letter {
                '#' => while self.next().is_some_and(|letter| letter != '\n') {},
                letter if letter.is_whitespace() => {
                    self.next();
                }
                ';' | '{' | '}' => {
                    self.next();
                    let ended = if letter == ';' { ConfToken::Ends } else { ConfToken::Opens };
                    return Ok(Some(if letter == '}' { ConfToken::Closes } else { ended }));
                }
                '"' | '\'' => {
                    self.next();
                    return self.quoted(letter).map(Some);
                }
                _ => return Ok(Some(ConfToken::Word(self.bare()))),
            }
        }
    }

    fn quoted(&mut self, quote: char) -> Result<ConfToken, ConfSyntaxError> {
        let mut word = String::new();
        while let Some(letter) = self.next() {
            match letter {
                '\\' => self.escaped(&mut word),
                letter if letter == quote => return Ok(ConfToken::Word(word)),
                letter => word.push(letter),
            }
        }
        Err(self.wrong("unexpected end of file, expecting \";\" or \"}\""))
    }

    /// A backslash is kept before what needs none.
    fn escaped(&mut self, word: &mut String) {
        match self.next() {
            Some('n') => word.push('\n'),
            Some('t') => word.push('\t'),
            Some('r') => word.push('\r'),
            Some(letter @ ('"' | '\'' | '\\')) => word.push(letter),
            Some(letter) => word.extend(['\\', letter]),
            None => word.push('\\'),
        }
    }

    fn bare(&mut self) -> String {
        let mut word = String::new();
        while let Some(letter) = self.rest.chars().next() {
            // `${name}` is part of a word.
            let is_named = letter == '{' && word.ends_with('$');
            if letter.is_whitespace() || letter == ';' || letter == '{' && !is_named {
                break;
            }
            self.next();
            match letter {
                '\\' => self.escaped(&mut word),
                letter => word.push(letter),
            }
        }
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_quotes_and_blocks() {
        let text = "# c\nlisten 80;\nlocation ~ \\.php$ {\n return 200 'a \"b\"\\n';\n}\nset $x ${y}z;";
        let directives = parse(text, "a.conf").unwrap();
        let names: Vec<&str> = directives.iter().map(|own| own.name.as_str()).collect();
        assert_eq!(names, ["listen", "location", "set"]);
        assert_eq!(directives[1].words, ["~", "\\.php$"]);
        let inner = directives[1].block.as_ref().unwrap();
        assert_eq!((inner[0].words[1].as_str(), inner[0].place().as_str()), ("a \"b\"\n", "a.conf:4"));
        assert_eq!(directives[2].words, ["$x", "${y}z"]);
    }

    #[test]
    fn what_is_wrong_is_said_as_nginx_says_it() {
        for (text, wanted) in [
            ("a {\n", "unexpected end of file, expecting \"}\" in a.conf:2"),
            ("a", "unexpected end of file, expecting \";\" or \"}\" in a.conf:1"),
            ("a; }", "unexpected \"}\" in a.conf:1"),
            (";", "unexpected \";\" in a.conf:1"),
        ] {
            assert_eq!(parse(text, "a.conf").unwrap_err().0, wanted, "{text}");
        }
        assert!(parse(&"a {".repeat(100), "a.conf").unwrap_err().0.starts_with("too many blocks"));
    }
}
