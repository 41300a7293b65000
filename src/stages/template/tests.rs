//! What templates give.

use serde_json::{Value, json};

use super::error::TemplateError;
use super::*;

struct Fixed;

impl TemplateHost for Fixed {
    fn call(&self, function: &str, arguments: &[Value]) -> Option<Value> {
        match function {
            "Now" => Some("2026-01-01T00:00:00Z".into()),
            "NodeIPsWith" => Some(json!(["10.0.0.1"])),
            "Count" => Some(arguments.len().into()),
            _ => None,
        }
    }
}

fn render(text: &str) -> Result<String, TemplateError> {
    let tree = json!({"name": "web", "n": 3, "empty": "", "items": [{"a": 1}, {"a": 2}], "map": {"x": "y"}});
    Template::parse(text)?.render(&tree, &Fixed)
}

#[test]
fn actions_do_what_go_says() {
    let cases = [
        ("{{ .name }}", "web"),
        ("{{ .name | Quote }}", "\"web\""),
        ("{{ Now | Quote }}", "\"2026-01-01T00:00:00Z\""),
        ("{{ .missing.deep }}", "<no value>"),
        ("{{ .missing | Quote }}{{ .n | Quote }}", "\"null\"\"3\""),
        ("{{ (index .items 1).a }}{{ \"}}\" }}{{/* }} */}}", "2}}"),
        ("{{ .items | YAML }}", "- a: 1\n- a: 2\n"),
        (
            "{{ trunc 2 .name | upper }}{{ add .n 4 }}{{ default \"d\" .empty }}{{ .map.x | quote }}",
            "WE7d\"y\"",
        ),
        ("{{ ternary 1 2 (eq .n 3) }}{{ list 1 2 | join \"-\" }}{{ nindent 2 .name }}", "11-2\n  web"),
        ("{{ or .empty .missing \"x\" }}", "x"),
        ("{{ or .empty `\"\"` }}", "\"\""),
        ("{{ if .empty }}a{{ else if eq .name \"web\" \"b\" }}b{{ else }}c{{ end }}", "b"),
        ("{{ if and .name (not .empty) }}yes{{ end }}", "yes"),
        ("{{ range .items }}[{{ .a }}]{{ end }}", "[1][2]"),
        ("{{ range $i, $item := .items }}{{ $i }}={{ $item.a }};{{ end }}", "0=1;1=2;"),
        ("{{ range .missing }}x{{ else }}none{{ end }}", "none"),
        ("{{ range $k, $v := .map }}{{ $k }}{{ $v }}{{ end }}", "xy"),
        ("{{ with .map }}{{ .x }}{{ end }}{{ with .empty }}no{{ else }}{{ .name }}{{ end }}", "yweb"),
        ("{{ $found := false }}{{ range .items }}{{ $found = true }}{{ end }}{{ $found }}", "true"),
        ("{{ $root := . }}{{ range .items }}{{ $root.name }}{{ $.n }}{{ end }}", "web3web3"),
        ("{{ index .items 1 \"a\" }}{{ index .map \"x\" }}{{ index .missing 0 | Quote }}", "2y\"null\""),
        ("{{ printf \"kwok-%s %d%%\" .name 5 }}", "kwok-web 5%"),
        ("a {{- /* nothing */ -}} b", "ab"),
        ("a\n{{- .n }}", "a3"),
        ("{{ Count .name ( or .empty false ) ( len .items ) }}", "3"),
        ("{{ with NodeIPsWith .name }}{{ index . 0 }}{{ end }}", "10.0.0.1"),
        ("m:{{ YAML .map 1 }}", "m:\n  x: \"y\"\n  "),
        ("{{ gt .n 2 }}{{ lt .n 2 }}", "truefalse"),
    ];
    for (text, expected) in cases {
        assert_eq!(render(text).unwrap(), expected, "{text}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    let cases = [
        ("{{ .a", "unclosed action"),
        ("{{ if .a }}x", "unexpected EOF"),
        ("{{ end }}", "unexpected"),
        ("{{ nonsense .a }}", "function \"nonsense\" not defined"),
        ("{{ $x }}", "undefined variable \"$x\""),
        ("{{ ( .a }}", "unclosed left paren"),
        ("{{ .a | }}", "missing value for command"),
        ("{{ \"a }}", "unclosed action"),
        ("{{ lt .name 1 }}", "incompatible types"),
    ];
    for (text, said) in cases {
        let error = render(text).unwrap_err().to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
}

#[test]
fn a_template_that_does_too_much_ends() {
    let nested =
        "{{ range .a }}{{ range $.a }}{{ range $.a }}{{ range $.a }}x{{ end }}{{ end }}{{ end }}{{ end }}";
    let tree = json!({"a": vec![0; 100]});
    let error = Template::parse(nested).unwrap().render(&tree, &Fixed).unwrap_err();
    assert_eq!(error.to_string(), "the template does too much");
    let deep = "{{ if .a }}".repeat(100);
    assert!(Template::parse(&deep).unwrap_err().to_string().contains("deep in each other"));
    let grows = "{{ $x := list . . }}{{ range .a }}{{ $x = list $x $x }}{{ end }}";
    let error = Template::parse(grows).unwrap().render(&tree, &Fixed).unwrap_err();
    assert_eq!(error.to_string(), "the template does too much");
}
