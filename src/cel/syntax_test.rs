//! What is said of texts that are no expressions: facts of cel-go's `parser_test.go`.

use super::Environment;

const START: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, \
    STRING, BYTES, IDENTIFIER}";
const IN_BRACES: &str = "{'[', '{', '}', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, \
    NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

/// Texts, and what is wrong with them.
const CASES: &[(&str, &[&str])] = &[
    (
        "*@a | b",
        &[
            "1:1: extraneous input '*' expecting START",
            "1:2: token recognition error at: '@'",
            "1:5: token recognition error at: '| '",
            "1:7: extraneous input 'b' expecting <EOF>",
        ],
    ),
    ("a | b", &["1:3: token recognition error at: '| '", "1:5: extraneous input 'b' expecting <EOF>"]),
    ("{", &["1:2: mismatched input '<EOF>' expecting BRACES"]),
    ("TestAllTypes(){}", &["1:15: mismatched input '{' expecting <EOF>"]),
    ("TestAllTypes{}()", &["1:15: mismatched input '(' expecting <EOF>"]),
    ("1 + $", &["1:5: token recognition error at: '$'", "1:6: mismatched input '<EOF>' expecting START"]),
    ("1 + 2\n3 +", &["2:1: mismatched input '3' expecting <EOF>"]),
    (
        "1 + +",
        &["1:5: mismatched input '+' expecting START", "1:6: mismatched input '<EOF>' expecting START"],
    ),
    ("{\"a\": 1}.\"a\"", &["1:10: no viable alternative at input '.\"a\"'"]),
    (
        "\"\\xFh\"",
        &[
            "1:1: token recognition error at: '\"\\xFh'",
            "1:6: token recognition error at: '\"'",
            "1:7: mismatched input '<EOF>' expecting START",
        ],
    ),
    (
        "'😁' in ['😁']\n && in.😁",
        &[
            "2:5: extraneous input 'in' expecting START",
            "2:8: token recognition error at: '😁'",
            "2:9: no viable alternative at input '.'",
        ],
    ),
    ("in", &["1:1: mismatched input 'in' expecting START", "1:3: mismatched input '<EOF>' expecting START"]),
    (
        "func{{a}}",
        &[
            "1:6: extraneous input '{' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}",
            "1:8: mismatched input '}' expecting ':'",
            "1:9: extraneous input '}' expecting <EOF>",
        ],
    ),
    (
        "msg{:a}",
        &[
            "1:5: extraneous input ':' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}",
            "1:7: mismatched input '}' expecting ':'",
        ],
    ),
    ("{a}", &["1:3: mismatched input '}' expecting ':'"]),
    ("{:a}", &["1:2: extraneous input ':' expecting BRACES", "1:4: mismatched input '}' expecting ':'"]),
    ("ind[a{b}]", &["1:8: mismatched input '}' expecting ':'"]),
    ("--", &["1:3: no viable alternative at input '-'", "1:3: mismatched input '<EOF>' expecting START"]),
    ("?", &["1:1: mismatched input '?' expecting START", "1:2: mismatched input '<EOF>' expecting START"]),
    ("self.true == 1", &["1:6: mismatched input 'true' expecting IDENTIFIER"]),
    ("`b-c`", &["1:1: mismatched input '`b-c`' expecting START"]),
    (
        "`b-c`()",
        &["1:1: extraneous input '`b-c`' expecting START", "1:7: mismatched input ')' expecting START"],
    ),
    ("a.`$b`", &["1:3: token recognition error at: '`$'", "1:6: token recognition error at: '`'"]),
    ("a.`b.c`()", &["1:8: mismatched input '(' expecting <EOF>"]),
    ("'asdf'.contains('x'", &["1:20: missing ')' at '<EOF>'"]),
    (
        "request.user = 'test'",
        &["1:14: token recognition error at: '= '", "1:16: extraneous input ''test'' expecting <EOF>"],
    ),
    ("self.objs[0][0].k! == '1'", &["1:18: mismatched input '!' expecting <EOF>"]),
    ("1 +", &["1:4: mismatched input '<EOF>' expecting START"]),
    ("(1", &["1:3: missing ')' at '<EOF>'"]),
    ("[1", &["1:3: mismatched input '<EOF>' expecting {']', ','}"]),
    ("a[1", &["1:4: missing ']' at '<EOF>'"]),
    ("a b", &["1:3: extraneous input 'b' expecting <EOF>"]),
    ("a ? b", &["1:6: mismatched input '<EOF>' expecting ':'"]),
    ("foo(1,)", &["1:7: mismatched input ')' expecting START"]),
    ("1 + + 2", &["1:5: extraneous input '+' expecting START"]),
    ("a &b", &["1:3: token recognition error at: '&b'"]),
    ("'abc", &["1:1: token recognition error at: ''abc'", "1:5: mismatched input '<EOF>' expecting START"]),
    ("a == ", &["1:6: mismatched input '<EOF>' expecting START"]),
    (")", &["1:1: mismatched input ')' expecting START"]),
    ("a.?", &["1:4: mismatched input '<EOF>' expecting {IDENTIFIER, ESC_IDENTIFIER}"]),
    ("{'a' 1}", &["1:6: missing ':' at '1'"]),
    ("x in", &["1:5: mismatched input '<EOF>' expecting START"]),
    (".", &["1:2: no viable alternative at input '.'"]),
    ("A{a: 1", &["1:7: mismatched input '<EOF>' expecting {'}', ','}"]),
    (
        "f(",
        &["1:3: mismatched input '<EOF>' expecting {'[', '{', '(', ')', '.', '-', '!', 'true', 'false', \
            'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"],
    ),
    ("a\t#", &["1:3: token recognition error at: '#'"]),
];

/// The mistakes in a text, without the lines that show them.
fn mistakes(source: &str) -> Vec<String> {
    let error = Environment::new().compile(source).expect_err(source).to_string();
    let lines = error.lines().filter_map(|line| line.strip_prefix("ERROR: <input>:"));
    lines.map(|line| line.replace(START, "START").replace(IN_BRACES, "BRACES")).collect()
}

#[test]
fn syntax_errors_are_those_of_the_generated_parser() {
    for (source, wanted) in CASES {
        let wanted: Vec<String> =
            wanted.iter().map(|line| line.replacen(": ", ": Syntax error: ", 1)).collect();
        assert_eq!(mistakes(source), wanted, "{source}");
    }
}

#[test]
fn the_place_of_a_syntax_error_is_shown() {
    let error = Environment::new().compile("1 ==\n  2 2").unwrap_err().to_string();
    assert_eq!(
        error,
        "ERROR: <input>:2:5: Syntax error: extraneous input '2' expecting <EOF>\n |   2 2\n | ....^"
    );
}
