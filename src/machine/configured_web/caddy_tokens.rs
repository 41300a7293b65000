//! Words and blocks of a Caddyfile.

/// So deep do blocks stand in blocks; a file with deeper ones is none.
const MAX_DEPTH: usize = 32;
/// So many lines are read; a longer file is none.
const MAX_LINES: usize = 10_000;

/// A directive: its words, the block behind them, and the line where it stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CaddyLine {
    pub(super) words: Vec<String>,
    pub(super) block: Option<Vec<CaddyLine>>,
    pub(super) line: usize,
}

struct CaddyToken {
    text: String,
    is_quoted: bool,
    line: usize,
}

/// The lines of a file; a line may have a block of others.
///
/// # Errors
/// The line, and what is wrong there.
pub(super) fn read(text: &str) -> Result<Vec<CaddyLine>, (usize, String)> {
    if text.lines().count() > MAX_LINES {
        return Err((MAX_LINES, "the file is longer than is read here".to_owned()));
    }
    let tokens = tokens(text);
    let mut at = 0;
    let lines = block(&tokens, &mut at, 0)?;
    match tokens.get(at) {
        Some(token) => Err((token.line, "unexpected '}' because no matching opening brace".to_owned())),
        None => Ok(lines),
    }
}

fn tokens(text: &str) -> Vec<CaddyToken> {
    let mut tokens = vec![];
    let mut letters = text.chars().peekable();
    let mut line = 1;
    while let Some(letter) = letters.next() {
        match letter {
            '\n' => line += 1,
            letter if letter.is_whitespace() => {}
            '#' => while letters.next_if(|next| *next != '\n').is_some() {},
            quote @ ('"' | '`') => {
                let begun = line;
                let mut text = String::new();
                while let Some(next) = letters.next().filter(|next| *next != quote) {
                    line += usize::from(next == '\n');
                    match (next, letters.peek()) {
                        ('\\', Some('"')) if quote == '"' => text.extend(letters.next()),
                        (next, _) => text.push(next),
                    }
                }
                tokens.push(CaddyToken { text, is_quoted: true, line: begun });
            }
            first => {
                let mut text = String::from(first);
                while let Some(next) = letters.next_if(|next| !next.is_whitespace()) {
                    text.push(next);
                }
                // At the end of a line it goes on with the next one.
                if text != "\\" {
                    tokens.push(CaddyToken { text, is_quoted: false, line });
                }
            }
        }
    }
    tokens
}

fn block(tokens: &[CaddyToken], at: &mut usize, depth: usize) -> Result<Vec<CaddyLine>, (usize, String)> {
    let mut lines: Vec<CaddyLine> = vec![];
    while let Some(token) = tokens.get(*at) {
        let is = |brace: &str| !token.is_quoted && token.text == brace;
        if is("}") {
            break;
        }
        *at += 1;
        if is("{") {
            let inner = block(tokens, at, depth + 1)?;
            if depth >= MAX_DEPTH {
                return Err((token.line, "blocks stand deeper in blocks than is read here".to_owned()));
            }
            if tokens.get(*at).is_none() {
                let last = tokens.last().map_or(token.line, |last| last.line);
                return Err((last, "unexpected EOF".to_owned()));
            }
            *at += 1;
            match lines.last_mut().filter(|last| last.line == token.line && last.block.is_none()) {
                Some(last) => last.block = Some(inner),
                None => lines.push(CaddyLine { words: vec![], block: Some(inner), line: token.line }),
            }
            continue;
        }
        match lines.last_mut().filter(|last| last.line == token.line && last.block.is_none()) {
            Some(last) => last.words.push(token.text.clone()),
            None => lines.push(CaddyLine { words: vec![token.text.clone()], block: None, line: token.line }),
        }
    }
    Ok(lines)
}

/// With the variables of its process in it: `{$NAME}`, `{$NAME:otherwise}`
pub(super) fn with_variables(text: &str, variable: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("{$") {
        out.push_str(before);
        let Some((inner, after)) = behind.split_once('}') else {
            out.push_str("{$");
            rest = behind;
            continue;
        };
        let (name, otherwise) = inner.split_once(':').unwrap_or((inner, ""));
        out.push_str(
            &variable(name).filter(|value| !value.is_empty()).unwrap_or_else(|| otherwise.to_owned()),
        );
        rest = after;
    }
    out + rest
}
