//! What the generated parser of CEL's grammar says of a text that is no expression. Each rule of the grammar
//! is a function; what is done about mistakes stands in `syntax_recovery`.

use super::error::Issue;
use super::syntax_recovery::{Follow, Syntax, SyntaxRule, TokenKinds, escape_white, kinds, may, must};
use super::syntax_tokens::*;

/// What a primary may begin with.
const PRIMARY: TokenKinds = kinds(&[LEFT_BRACKET, LEFT_BRACE, LEFT_PAREN, DOT, MINUS, IDENTIFIER])
    | kinds(&[TRUE, TRUE + 1, TRUE + 2, FLOAT, INT, INT + 1, INT + 2, BYTES]);
/// What an expression may begin with.
const EXPRESSION: TokenKinds = PRIMARY | kinds(&[NOT]);
const FIELD: TokenKinds = kinds(&[IDENTIFIER, ESCAPED]);
const RELATIONS: TokenKinds = 0b1111_1110;
const CALCULATIONS: TokenKinds = kinds(&[MINUS, 22, 23, 24, 25]);
const STEPS: TokenKinds = kinds(&[DOT, LEFT_BRACKET]);

/// Everything that is wrong, in the order of the text.
pub(super) fn mistakes(source: &str) -> Vec<Issue> {
    let (tokens, wrong) = lexemes(source);
    let mut parser = Syntax::new(source, tokens);
    for (at, text) in wrong {
        let message = format!("token recognition error at: '{}'", escape_white(text));
        parser.issues.push(Issue { at, message: format!("Syntax error: {message}") });
    }
    parser.rule(Follow { kinds: 0, may_end: false }, Syntax::start);
    parser.issues.sort_by_key(|issue| issue.at);
    parser.issues
}

impl Syntax<'_> {
    fn start(&mut self) -> SyntaxRule {
        self.rule(must(kinds(&[END])), Syntax::expr);
        self.expect(END, must(0), "start")
    }

    fn expr(&mut self) -> SyntaxRule {
        self.rule(may(kinds(&[QUESTION])), Syntax::conditional_or);
        if self.next() == QUESTION {
            self.take();
            self.rule(must(kinds(&[COLON])), Syntax::conditional_or);
            self.expect(COLON, must(EXPRESSION), "expr")?;
            self.rule(may(0), Syntax::expr);
        }
        Ok(())
    }

    fn conditional_or(&mut self) -> SyntaxRule {
        self.rule(may(kinds(&[OR])), Syntax::conditional_and);
        while self.next() == OR {
            self.take();
            self.rule(may(kinds(&[OR])), Syntax::conditional_and);
        }
        Ok(())
    }

    fn conditional_and(&mut self) -> SyntaxRule {
        self.rule(may(kinds(&[AND])), |parser| parser.relation());
        while self.next() == AND {
            self.take();
            self.rule(may(kinds(&[AND])), |parser| parser.relation());
        }
        Ok(())
    }

    fn relation(&mut self) -> SyntaxRule {
        self.rule(may(RELATIONS), Syntax::calc);
        while self.is_in(RELATIONS) {
            self.take();
            self.rule(may(RELATIONS), |parser| {
                parser.rule(may(RELATIONS), Syntax::calc);
                Ok(())
            });
        }
        Ok(())
    }

    fn calc(&mut self) -> SyntaxRule {
        self.rule(may(CALCULATIONS), Syntax::unary);
        while self.is_in(CALCULATIONS) {
            self.take();
            self.rule(may(CALCULATIONS), |parser| {
                parser.rule(may(CALCULATIONS), Syntax::unary);
                Ok(())
            });
        }
        Ok(())
    }

    fn unary(&mut self) -> SyntaxRule {
        self.sync(EXPRESSION, "unary")?;
        if !self.is_in(EXPRESSION) {
            return Err(self.no_way(0, "unary"));
        }
        while self.next() == NOT {
            self.take();
            if !self.is_in(EXPRESSION) {
                self.unwanted(EXPRESSION);
            }
            if self.next() != NOT {
                self.rule(may(0), Syntax::member);
                return Ok(());
            }
        }
        let mut is_first = true;
        while self.next() == MINUS && !matches!(self.ahead(1).kind, INT | FLOAT) {
            if self.ahead(1).kind != MINUS && PRIMARY & 1 << self.ahead(1).kind == 0 {
                return Err(self.no_way(1, if is_first { "unary" } else { "minus" }));
            }
            is_first = false;
            self.take();
        }
        self.rule(may(0), Syntax::member);
        Ok(())
    }

    fn member(&mut self) -> SyntaxRule {
        self.rule(may(STEPS), Syntax::primary);
        while self.is_in(STEPS) {
            match (self.next(), self.ahead(1).kind, self.ahead(2).kind) {
                (LEFT_BRACKET, ..) => self.index()?,
                (_, IDENTIFIER, LEFT_PAREN) => {
                    self.take();
                    self.take();
                    self.arguments()?;
                }
                (_, QUESTION, _) => {
                    self.take();
                    self.take();
                    self.rule(may(STEPS), Syntax::field);
                }
                (_, IDENTIFIER | ESCAPED, _) => {
                    self.take();
                    self.rule(may(STEPS), Syntax::field);
                }
                _ => return Err(self.no_way(1, "member")),
            }
        }
        Ok(())
    }

    fn index(&mut self) -> SyntaxRule {
        self.take();
        self.sync(EXPRESSION | kinds(&[QUESTION]), "index")?;
        if self.next() == QUESTION {
            self.take();
        }
        self.rule(must(kinds(&[RIGHT_BRACKET])), Syntax::expr);
        self.expect(RIGHT_BRACKET, may(STEPS), "index end")
    }

    fn field(&mut self) -> SyntaxRule {
        self.sync(FIELD, "field")?;
        if !self.is_in(FIELD) {
            return Err(self.no_way(0, "field"));
        }
        self.take();
        Ok(())
    }

    /// From the parenthesis on.
    fn arguments(&mut self) -> SyntaxRule {
        self.take();
        self.sync(EXPRESSION | kinds(&[RIGHT_PAREN]), "arguments")?;
        if self.is_in(EXPRESSION) {
            self.rule(must(kinds(&[RIGHT_PAREN])), |parser| {
                parser.rule(may(kinds(&[COMMA])), Syntax::expr);
                while parser.next() == COMMA {
                    parser.take();
                    parser.rule(may(kinds(&[COMMA])), Syntax::expr);
                }
                Ok(())
            });
        }
        self.expect(RIGHT_PAREN, may(STEPS), "arguments end")
    }

    fn primary(&mut self) -> SyntaxRule {
        self.sync(PRIMARY, "primary")?;
        match self.next() {
            DOT if self.ahead(1).kind != IDENTIFIER => Err(self.no_way(1, "primary")),
            DOT | IDENTIFIER => self.named(),
            LEFT_PAREN => {
                self.take();
                self.rule(must(kinds(&[RIGHT_PAREN])), Syntax::expr);
                self.expect(RIGHT_PAREN, may(0), "nested")
            }
            LEFT_BRACKET => self.list(),
            LEFT_BRACE => self.collection(EXPRESSION | kinds(&[QUESTION]), Syntax::entry),
            MINUS => {
                self.take();
                self.take();
                Ok(())
            }
            _ if self.is_in(PRIMARY) => {
                self.take();
                Ok(())
            }
            _ => Err(self.no_way(0, "primary")),
        }
    }

    /// A name, a call, or a message whose name may have dots. A dot with nothing to select behind it is
    /// thought to be in the name of a message.
    fn named(&mut self) -> SyntaxRule {
        let dot = usize::from(self.next() == DOT);
        let mut end = dot + 1;
        while self.ahead(end).kind == DOT && self.ahead(end + 1).kind == IDENTIFIER {
            end += 2;
        }
        let is_selection = matches!(self.ahead(end + 1).kind, IDENTIFIER | ESCAPED | QUESTION);
        if self.ahead(end).kind == DOT && !is_selection {
            (0..=end).for_each(|_| self.take());
            return self.expect(IDENTIFIER, must(kinds(&[DOT, LEFT_BRACE])), "message");
        }
        if self.ahead(end).kind == LEFT_BRACE {
            (0..end).for_each(|_| self.take());
            return self.collection(FIELD | kinds(&[QUESTION]), Syntax::field_entry);
        }
        (0..=dot).for_each(|_| self.take());
        if self.next() == LEFT_PAREN { self.arguments() } else { Ok(()) }
    }

    fn list(&mut self) -> SyntaxRule {
        self.take();
        let start = EXPRESSION | kinds(&[QUESTION]);
        self.sync(start | kinds(&[COMMA, RIGHT_BRACKET]), "list")?;
        if self.is_in(start) {
            self.rule(must(kinds(&[COMMA, RIGHT_BRACKET])), |parser| {
                parser.rule(may(kinds(&[COMMA])), Syntax::optional);
                while parser.next() == COMMA && start & 1 << parser.ahead(1).kind != 0 {
                    parser.take();
                    parser.rule(may(kinds(&[COMMA])), Syntax::optional);
                }
                Ok(())
            });
        }
        self.close(RIGHT_BRACKET)
    }

    /// A comma, if there is one, and the end of a list, map or message.
    fn close(&mut self, end: TokenKind) -> SyntaxRule {
        self.sync(kinds(&[COMMA, end]), "close")?;
        if self.next() == COMMA {
            self.take();
        }
        self.expect(end, may(0), "closed")
    }

    /// Entries in braces.
    fn collection(&mut self, start: TokenKinds, entry: fn(&mut Self) -> SyntaxRule) -> SyntaxRule {
        self.take();
        self.sync(start | kinds(&[COMMA, RIGHT_BRACE]), "entries")?;
        if self.is_in(start) {
            self.rule(must(kinds(&[COMMA, RIGHT_BRACE])), |parser| {
                entry(parser)?;
                while parser.next() == COMMA && start & 1 << parser.ahead(1).kind != 0 {
                    parser.take();
                    entry(parser)?;
                }
                Ok(())
            });
        }
        self.close(RIGHT_BRACE)
    }

    fn optional(&mut self) -> SyntaxRule {
        self.sync(EXPRESSION | kinds(&[QUESTION]), "optional")?;
        if self.next() == QUESTION {
            self.take();
        }
        self.rule(may(0), Syntax::expr);
        Ok(())
    }

    fn entry(&mut self) -> SyntaxRule {
        self.rule(must(kinds(&[COLON])), Syntax::optional);
        self.entry_value()
    }

    fn field_entry(&mut self) -> SyntaxRule {
        self.rule(must(kinds(&[COLON])), |parser| {
            parser.sync(FIELD | kinds(&[QUESTION]), "optional field")?;
            if parser.next() == QUESTION {
                parser.take();
            }
            parser.rule(may(0), Syntax::field);
            Ok(())
        });
        self.entry_value()
    }

    fn entry_value(&mut self) -> SyntaxRule {
        self.expect(COLON, must(EXPRESSION), "entry")?;
        self.rule(may(kinds(&[COMMA])), Syntax::expr);
        Ok(())
    }
}
