//! What go-yaml makes of texts: facts of its `decode_test.go` and `resolve.go`, and of `sigs.k8s.io/yaml`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::Error;
use serde_json::{Value, json};

use super::*;

/// What a text is as the value of a key.
fn value(text: &str) -> Value {
    let body = format!("v: {text}\n");
    let document = to_json(body.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
    document.value["v"].clone()
}

fn refusal(text: &str) -> BadYaml {
    to_json(text.as_bytes()).map(|document| document.value).expect_err(text)
}

#[test]
fn scalars_are_what_go_takes_them_for() {
    let words = |text: &str, value: Value| -> Vec<(String, Value)> {
        text.split_whitespace().map(|word| (word.to_owned(), value.clone())).collect()
    };
    let same = |text: &str| -> Vec<(String, Value)> {
        text.split_whitespace().map(|word| (word.to_owned(), word.into())).collect()
    };
    let numbers = [
        ("12", json!(12)),
        ("-12", json!(-12)),
        ("+12", json!(12)),
        ("0777", json!(511)),
        ("0o777", json!(511)),
        ("0O17", json!(15)),
        ("-0o17", json!(-15)),
        ("08", json!(8)),
        ("010.5", json!(10.5)),
        ("0x1F", json!(31)),
        ("0XfF", json!(255)),
        ("-0x10", json!(-16)),
        ("0b1010", json!(10)),
        ("-0b11", json!(-3)),
        ("0b-11", json!(-3)),
        ("1_000", json!(1000)),
        ("0x_0A_74_AE", json!(685_230)),
        ("0b1010_0111", json!(167)),
        ("_1", json!("_1")),
        ("9223372036854775807", json!(9_223_372_036_854_775_807_i64)),
        ("9223372036854775808", json!(9_223_372_036_854_775_808_u64)),
        ("-9223372036854775808", json!(-9_223_372_036_854_775_808_i64)),
        ("18446744073709551616", json!(18_446_744_073_709_551_616.0)),
        ("0xffffffffffffffffff", json!("0xffffffffffffffffff")),
        (".5", json!(0.5)),
        ("-.5", json!(-0.5)),
        ("5.", json!(5)),
        ("1.0", json!(1)),
        ("1e3", json!(1000)),
        ("1E-2", json!(0.01)),
        ("685.230_15e+03", json!(685_230.15)),
        ("1e400", json!("1e400")),
        ("-0.0", json!(0)),
    ];
    let cases = words("y Y yes Yes YES true True TRUE on On ON", json!(true))
        .into_iter()
        .chain(words("n N no No NO false False FALSE off Off OFF", json!(false)))
        .chain(words("~ null Null NULL", Value::Null))
        .chain(numbers.map(|(text, value)| (text.to_owned(), value)))
        .chain(same("yEs oN nO tRue nULL yess 1:30 190:20:30 -1:30 2001-01-01 2001-12-14t21:59:43.10-05:00"))
        .chain(same("0b12 0o8 0xg 1__e 1.2.3 1Gi 100m + . .e3 1_000.x e5 << = 0b 0x + v1 inf nan"));
    for (text, wanted) in cases {
        assert_eq!(value(&text), wanted, "{text}");
        assert_eq!(value(&format!("'{text}'")), json!(text), "quoted {text}");
        assert_eq!(value(&format!("\"{text}\"")), json!(text), "quoted {text}");
    }
    assert_eq!(value(""), Value::Null);
    assert_eq!(value("''"), json!(""));
    assert_eq!(value("|\n  yes"), json!("yes\n"));
    for (text, wanted) in [(".inf", "+Inf"), ("+.INF", "+Inf"), ("-.inf", "-Inf"), (".NaN", "NaN")] {
        assert_eq!(refusal(&format!("v: {text}")), format!("json: unsupported value: {wanted}"));
    }
}

#[test]
fn tags_say_what_a_scalar_is() {
    for (text, wanted) in [
        ("!!str yes", json!("yes")),
        ("!!str", json!("")),
        ("!!int '0x10'", json!(16)),
        ("!!float 3", json!(3)),
        ("!!bool \"on\"", json!(true)),
        ("!!null ~", Value::Null),
        ("!!binary aGVsbG8=", json!("hello")),
        ("!!binary |\n  aGVs\n  bG8=", json!("hello")),
        ("! yes", json!("yes")),
        ("!mine 12", json!("12")),
        ("!<tag:yaml.org,2002:str> 5", json!("5")),
        ("!!timestamp 2001-01-01", json!("2001-01-01")),
        ("!!set {a: 1}", json!({"a": 1})),
        ("!!str &x 1", json!("1")),
        ("&x !!str 1", json!("1")),
    ] {
        assert_eq!(value(text), wanted, "{text}");
    }
    for (text, wanted) in [
        ("!!int a", "yaml: cannot decode !!str `a` as a !!int"),
        ("!!bool 1", "yaml: cannot decode !!int `1` as a !!bool"),
        ("!!int", "yaml: cannot decode !!null `` as a !!int"),
        ("!!binary '*'", "yaml: !!binary value contains invalid base64 data"),
    ] {
        assert_eq!(refusal(&format!("v: {text}")), wanted);
    }
    let directive = "%YAML 1.1\n%TAG !e! tag:yaml.org,2002:\n---\nv: !e!str 1\n";
    assert_eq!(to_json(directive.as_bytes()).unwrap().value, json!({"v": "1"}));
}

/// A prefix counts once, not once for each node that names it.
#[test]
fn tags_are_neither_long_nor_many() {
    let prefixed = |prefix: usize, suffix: usize| {
        let (prefix, suffix) = ("p".repeat(prefix), "s".repeat(suffix));
        format!("%TAG !a! {prefix}\n---\n[!a!{suffix} 1, !a!{suffix} b]")
    };
    assert_eq!(to_json(prefixed(1024, 1000).as_bytes()).unwrap().value, json!(["1", "b"]));
    let handle = "h".repeat(2000);
    for long in [
        prefixed(1025, 1),
        prefixed(1, 1025),
        prefixed(1_500_000, 1),
        format!("%TAG !{handle}! p\n---\na"),
        format!("!{handle}!x a"),
        format!("!{handle} a"),
        format!("!<{handle}> a"),
        format!("!<{}> a", "%41".repeat(2000)),
    ] {
        assert!(refusal(&long).ends_with("found extremely long tag"), "{long:.40}");
    }
    let directives = |count: usize| {
        let lines: String = (0..count).map(|at| format!("%TAG !t{at}! tag:yaml.org,2002:\n")).collect();
        format!("{lines}---\n!t{}!int '1'\n", count - 1)
    };
    assert_eq!(to_json(directives(64).as_bytes()).unwrap().value, json!(1));
    assert!(refusal(&directives(65)).ends_with("found too many %TAG directives"));
}

/// Nodes keep a tag that is shared by all: one of their own each would be a gigabyte here.
#[test]
fn tags_of_many_nodes_take_no_room() {
    let body = format!("%TAG !a! {}\n---\n[{}]", "p".repeat(1024), "!a!x ,".repeat(100_000));
    let document = composer::Composer::new(&body).document().unwrap().unwrap();
    assert_eq!(document.nodes.len(), 100_001);
    let first = document.nodes[1].tag;
    assert!(document.nodes[1..].iter().all(|node| std::ptr::eq(node.tag, first)));
}

#[test]
fn refusals_show_the_first_key_and_the_beginning_of_its_value() {
    let nested = format!("{}1{}", "{~: ".repeat(100), "}".repeat(100));
    let wanted = "unsupported map key of type: %!s(<nil>), key: <nil>, value: 1";
    assert_eq!(refusal(&nested), wanted);
    for value in
        [format!("[{}]", "é, ".repeat(10_000)), "é".repeat(10_000), format!("{{{}: 1}}", "é".repeat(900))]
    {
        for refused in [format!("~: {value}"), format!("? [{value}]\n: 1")] {
            let shown = refusal(&refused);
            assert!(shown.ends_with("...") && shown.len() < 1200, "{shown}");
        }
    }
}

#[test]
fn documents_have_the_shape_that_go_sees() {
    for (text, wanted) in [
        ("", Value::Null),
        ("# nothing\n", Value::Null),
        ("---\n", Value::Null),
        ("a", json!("a")),
        ("\u{feff}a: 1", json!({"a": 1})),
        ("a:\n- b\n- c:\n  - d\n  -\n", json!({"a": ["b", {"c": ["d", null]}]})),
        ("a: [b, c: d, {e: f}, [], {}, ]", json!({"a": ["b", {"c": "d"}, {"e": "f"}, [], {}]})),
        ("{a, b: , 'c':1, \"d\": [e\n  f]}", json!({"a": null, "b": null, "c": 1, "d": ["e f"]})),
        ("? a\n: b\n? c\n", json!({"a": "b", "c": null})),
        ("- - 1\n  - 2\n- a: 1\n  b: 2\n", json!([[1, 2], {"a": 1, "b": 2}])),
        ("a: b # c\nd: e#f\n", json!({"a": "b", "d": "e#f"})),
        ("a: b\n  c\n\n  d\n", json!({"a": "b c\nd"})),
        ("a: 'b\n\n  c''d'", json!({"a": "b\nc'd"})),
        (
            r#"a: "b\
             c\x41\u00e9\U0001F600\n\tx\/""#,
            Value::Null,
        ),
        ("a: \"b\\\n  c\\x41\\u00e9\\U0001F600\\n\"", json!({"a": "bcAé😀\n"})),
        ("a: |\n  b\n   c\n\n  d\n\ne: 1", json!({"a": "b\n c\n\nd\n", "e": 1})),
        ("a: |-\n  b\nc: |+\n  d\n\n", json!({"a": "b", "c": "d\n\n"})),
        ("a: |2\n   b\n", json!({"a": " b\n"})),
        ("a: >\n  b\n  c\n\n  d\n   e\n  f\n", json!({"a": "b c\nd\n e\nf\n"})),
        ("a: http://b:80/c?d\n", json!({"a": "http://b:80/c?d"})),
        ("a:\n  - b\n---\nc: [", json!({"a": ["b"]})),
        ("a: &x {b: [1]}\nc: *x\n", json!({"a": {"b": [1]}, "c": {"b": [1]}})),
        (
            "1: a\n1.5: b\ntrue: c\nno: d\n0x10: e\n1e20: f\n2001-01-01: g\n",
            json!({
                "1": "a", "1.5": "b", "true": "c", "false": "d", "16": "e", "1e+20": "f", "2001-01-01": "g",
            }),
        ),
        ("a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\n", json!({"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}})),
        ("a: {'<<': {b: 1}}\n", json!({"a": {"<<": {"b": 1}}})),
        ("a: {<<: [{b: 1}, {b: 2, c: 3}]}\n", json!({"a": {"b": 1, "c": 3}})),
        ("a: !!str &x yes\nb: *x\n", json!({"a": "yes", "b": "yes"})),
        ("a:\r\n  b: 1\r\n", json!({"a": {"b": 1}})),
    ] {
        if wanted.is_null() && text.starts_with("a:") {
            assert_eq!(refusal(text), "yaml: line 2: found unknown escape character");
            continue;
        }
        let found = to_json(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(found.value, wanted, "{text}");
    }
}

#[test]
fn what_is_wrong_is_told_in_the_words_of_go() {
    for (text, wanted) in [
        ("a: b: c", "yaml: mapping values are not allowed in this context"),
        ("x: 1\na: b: c", "yaml: line 2: mapping values are not allowed in this context"),
        ("a:\n  b: 1\n c: 2\n", "yaml: line 2: did not find expected key"),
        ("a: [b", "yaml: line 1: did not find expected ',' or ']'"),
        ("a: {b", "yaml: line 1: did not find expected ',' or '}'"),
        ("- a\nb: c", "yaml: line 1: did not find expected '-' indicator"),
        ("a:\n\tb: 1", "yaml: line 2: found character that cannot start any token"),
        ("a: 'b", "yaml: found unexpected end of stream"),
        ("a: 'b\n", "yaml: line 2: found unexpected end of stream"),
        ("a: @b", "yaml: found character that cannot start any token"),
        ("a\nb: c", "yaml: line 2: mapping values are not allowed in this context"),
        ("a: *x", "yaml: unknown anchor 'x' referenced"),
        ("a: &x [*x]", "yaml: anchor 'x' value contains itself"),
        ("a: !x!y z", "yaml: found undefined tag handle"),
        ("a: - b", "yaml: block sequence entries are not allowed in this context"),
        ("a: |0\n b", "yaml: found an indentation indicator equal to 0"),
        ("%YAML 1.2\n---\na", "yaml: found incompatible YAML document"),
        ("%FOO\n---\na", "yaml: found unknown directive name"),
        ("a: \x01", "yaml: control characters are not allowed"),
        ("a: {<<: 1}", "yaml: map merge requires map or sequence of maps as the value"),
        ("? [a]\n: b", "yaml: invalid map key: []interface {}{\"a\"}"),
        ("{{a: b}: c}", "yaml: invalid map key: map[interface {}]interface {}{\"a\":\"b\"}"),
        ("~: a", "unsupported map key of type: %!s(<nil>), key: <nil>, value: \"a\""),
    ] {
        assert_eq!(refusal(text), wanted, "{text}");
    }
    assert_eq!(to_json(b"a: \xff").err().unwrap(), "yaml: invalid leading UTF-8 octet");
    assert_eq!(to_json(b"a: \xc3").err().unwrap(), "yaml: incomplete UTF-8 octet sequence");
}

#[test]
fn duplicate_keys_are_told_with_the_lines_of_their_values() {
    let duplicates = |text: &str| to_json(text.as_bytes()).unwrap().duplicates;
    assert_eq!(duplicates("a: 1\n'1': b\n1: c\n"), None);
    let twice = "a: 1\na:\n  2\n1: a\n0x1: b\nb: &x {c: 1}\nd: {<<: *x, c: 2}\n";
    let lines = ["line 3: key \"a\"", "line 5: key 1", "line 7: key \"c\""]
        .map(|line| format!("\n  {line} already set in map"));
    assert_eq!(duplicates(twice), Some(format!("yaml: unmarshal errors:{}", lines.concat())));
    let many = duplicates(&"a: 1\n".repeat(100)).unwrap();
    assert_eq!(many.lines().count(), 17);
}

#[test]
fn nesting_has_a_bound_with_aliases_and_without() {
    let deep = format!("{}{}", "[".repeat(128), "]".repeat(128));
    assert!(to_json(deep.as_bytes()).is_ok());
    for refused in [format!("[{deep}]"), "- ".repeat(10_000), "[".repeat(100_000), "{a: ".repeat(10_000)] {
        assert!(refusal(&refused).ends_with("exceeded max depth of 128"));
    }
    let chain = |inner: &str| {
        let link = |at: usize| format!("a{}: &a{} {}\n", at + 1, at + 1, inner.replace('X', &at.to_string()));
        format!("a0: &a0 {{}}\n{}", (0..1_000).map(link).collect::<String>())
    };
    assert_eq!(refusal(&chain("[*aX]")), "yaml: exceeded max depth of 128");
    assert_eq!(refusal(&chain("{<<: *aX}")), "yaml: exceeded max depth of 128");
    let doubling = |at: usize| format!("a{}: &a{} {{<<: [*a{at}, *a{at}]}}\n", at + 1, at + 1);
    let doubled = format!("a0: &a0 {{}}\n{}", (0..40).map(doubling).collect::<String>());
    assert_eq!(refusal(&doubled), "yaml: document contains excessive aliasing");
}

/// What is written is read back as it was, whatever the texts in it look like.
#[test]
fn what_is_written_is_read_back() {
    let texts = "yes|No|on|OFF|y|N|~|null|Null||0777|0o17|0x1F|0b-1|0b11|1_0|.5|1e3|.inf|-.INF|.NaN|1:30|2001-01-01|<<|=|- a|a: b|#x| x |a\nb|\ta|'|\"|{|[|!x|&x|*x|%x|@x|?|:|-|---|...|é|\u{1f600}|\u{85}|\u{feff}|08|+1|0x_f|100m";
    for text in texts.split('|') {
        let value = json!({"v": text, "l": [text], text: 1});
        let written = to_string(&value);
        let read = to_json(written.as_bytes()).unwrap_or_else(|error| panic!("{written}: {error}"));
        assert_eq!(read.value, value, "{written}");
    }
}

/// The manifests of this project are read as another reader reads them.
#[test]
fn manifests_are_read_alike_by_both_readers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["manifests", "tests"] {
        find(&root.join(folder), &mut files);
    }
    assert!(files.len() > 50, "{}", files.len());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let theirs: Result<Vec<Value>, _> = serde_yaml::Deserializer::from_str(&text).map(merged).collect();
        let Ok(theirs) = theirs else { continue };
        let shown = file.display();
        let ours = documents(&text).unwrap_or_else(|error| panic!("{shown}: {error}"));
        assert!(ours.iter().zip(&theirs).all(|(ours, theirs)| is_alike(ours, theirs)), "{shown}");
        assert_eq!(ours.len(), theirs.len(), "{shown}");
    }
}

fn merged(document: serde_yaml::Deserializer) -> Result<Value, serde_yaml::Error> {
    let mut value = serde_yaml::Value::deserialize(document)?;
    value.apply_merge()?;
    serde_json::to_value(value).map_err(serde_yaml::Error::custom)
}

/// Whether both read the same, but for the words that only one of them takes for booleans, which may be keys.
fn is_alike(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Bool(_), Value::String(text)) => resolve::resolve("", text) != Ok(resolve::YamlScalar::Text),
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(one, other)| is_alike(one, other))
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            let is_there = |(key, one): (&String, &Value)| match theirs.get(key) {
                Some(other) => is_alike(one, other),
                None => key == "true" || key == "false",
            };
            ours.len() == theirs.len() && ours.iter().all(is_there)
        }
        _ => ours == theirs,
    }
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
}
