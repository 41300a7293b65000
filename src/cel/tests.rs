//! Expressions and what they give, what they are refused with, and what they cost.

use serde_json::json;

use super::schema::{declared_type, value};
use super::*;

fn run(expression: &str) -> String {
    let environment = Environment::new()
        .with_variable("x", Type::Dyn)
        .with_variable("names", Type::list(Type::String))
        .with_variable("labels", Type::map_of(Type::String));
    let program = match environment.compile(expression) {
        Ok(program) => program,
        Err(error) => return error.to_string(),
    };
    let activation = Activation::new()
        .with("x", Value::from_json(&json!({"a": 1, "b": [1, 2, 3], "c": null})))
        .with("names", Value::from_json(&json!(["b", "a"])))
        .with("labels", Value::from_json(&json!({"app": "web", "tier": "front"})));
    match program.evaluate(&activation, &mut Budget::new(Budget::PER_CALL)) {
        Ok(value) => value.to_json().map_or(value.type_name().to_owned(), |json| json.to_string()),
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn expressions_give_what_cel_go_gives() {
    let cases = [
        ("1 + 2 * 3 == 7 && !(4 < 3)", "true"),
        ("-5 / 2", "-2"),
        ("7 % -2", "1"),
        ("1 == 1.0 && 1u == 1", "found no matching overload"),
        ("dyn(1) == 1.0 && dyn(1u) == 1", "true"),
        ("'a' + \"b\" + '''c'''", "\"abc\""),
        (r"r'\d' + '\n'.size().format([])", "found no matching overload"),
        ("b'abc'.size()", "3"),
        ("'héllo'.size()", "5"),
        ("x.a == 1 ? 'yes' : 'no'", "\"yes\""),
        ("x.b.all(n, n > 0) && x.b.exists(n, n == 3) && x.b.exists_one(n, n == 2)", "true"),
        ("x.b.map(n, n * 2)", "[2,4,6]"),
        ("x.b.map(n, n > 1, n * 2)", "[4,6]"),
        ("x.b.filter(n, n != 2)", "[1,3]"),
        ("labels.filter(k, k == 'app')", "[\"app\"]"),
        ("labels.all(k, v, k != v)", "true"),
        ("labels.transformMap(k, v, v == 'web', v + k)", "{\"app\":\"webapp\"}"),
        ("[3, 1].transformList(i, v, i + v)", "[3,2]"),
        ("labels.transformMapEntry(k, v, {v: k})", "{\"front\":\"tier\",\"web\":\"app\"}"),
        ("names.sortBy(n, n)", "[\"a\",\"b\"]"),
        ("names.sort()", "[\"a\",\"b\"]"),
        ("has(x.a) && !has(x.zzz) && has(x.c)", "true"),
        ("x.?zzz.orValue(7)", "7"),
        ("x.?a.optMap(a, a + 1).value()", "2"),
        ("[1, ?x.?zzz, ?x.?a]", "[1,1]"),
        ("{'k': 1, ?'l': x.?zzz}", "{\"k\":1}"),
        ("labels[?'nope'].hasValue()", "false"),
        ("type(1) == int && type('') == string && type(x) == map", "true"),
        ("'b' in names && 'app' in labels && !('z' in labels)", "true"),
        ("false && x.zzz == 1", "false"),
        ("x.zzz == 1 || true", "true"),
        ("x.zzz == 1", "error: no such key: zzz"),
        ("names[5]", "error: index out of bounds: 5"),
        ("1 / 0", "error: division by zero"),
        ("9223372036854775807 + 1", "error: integer overflow"),
        ("x.a.startsWith('b')", "error: no such overload"),
        ("{'a': 1, 'a': 2}", "{\"a\":2}"),
        ("format.named('uuid').hasValue()", "true"),
        ("sign(quantity('-1'))", "-1"),
        ("duration('1h30m').getMinutes()", "90"),
        ("timestamp('2024-03-01T00:00:00Z') - duration('24h')", "\"2024-02-29T00:00:00Z\""),
        ("timestamp('2024-03-01T10:20:30Z').getMonth()", "2"),
        ("string(1.5) + string(2) + string(true)", "\"1.52true\""),
        ("'abc'.matches('^a.c$')", "true"),
        ("'abc'.find('[bc]+')", "\"bc\""),
        ("'Hello'.lowerAscii().replace('l', 'L')", "\"heLLo\""),
        ("'a,b'.split(',')", "[\"a\",\"b\"]"),
        ("['a', 'b'].join('-')", "\"a-b\""),
        ("'%s is %d'.format(['x', 3])", "\"x is 3\""),
        ("[1, 2, 3].sum() == 6 && [3, 1].max() == 3 && [1, 2].isSorted()", "true"),
        ("quantity('1Gi').isGreaterThan(quantity('100M'))", "true"),
        ("quantity('1').add(quantity('500m')).compareTo(quantity('1500m'))", "0"),
        ("ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.2.3')", "true"),
        ("isURL('https://a.b/c') && url('https://a.b:80/c').getPort() == '80'", "true"),
        ("semver('1.2.3').isLessThan(semver('1.10.0'))", "true"),
        ("!format.dns1123Label().validate('UPPER').hasValue()", "false"),
        ("sets.contains([1, 2], [2])", "true"),
    ];
    for (expression, wanted) in cases {
        let found = run(expression);
        assert!(
            found == wanted || found.contains(wanted) && wanted.starts_with("found"),
            "{expression}: {found}"
        );
    }
}

#[test]
fn texts_are_split_as_go_splits_them() {
    for (expression, wanted) in [
        ("'abc'.split('')", "[\"a\",\"b\",\"c\"]"),
        ("'abc'.split('', 2)", "[\"a\",\"bc\"]"),
        ("'a,b,c'.split(',', 2)", "[\"a\",\"b,c\"]"),
        ("'a,b'.split(',', 0)", "[]"),
    ] {
        assert_eq!(run(expression), wanted, "{expression}");
    }
}

#[test]
fn what_does_not_compile_is_told_with_its_place() {
    let cases = [
        (
            "nope == 1",
            "ERROR: <input>:1:1: undeclared reference to 'nope' (in container '')\n | nope == 1\n | ^",
        ),
        (
            "size(names) == 'a'",
            "ERROR: <input>:1:13: found no matching overload for '_==_' applied to '(int, string)'\n | \
             size(names) == 'a'\n | ............^",
        ),
        (
            "names.startsWith('a')",
            "ERROR: <input>:1:17: found no matching overload for 'startsWith' applied to \
             'list(string).(string)'\n | names.startsWith('a')\n | ................^",
        ),
        ("jsonpatch.escapeKey('a')", "undeclared reference to 'jsonpatch'"),
        ("cel.bind(a, 1, a)", "undeclared reference to 'cel'"),
        ("quantity('1').sign()", "found no matching overload for 'sign'"),
        ("[{'a': 1}].sort()", "found no matching overload for 'sort' applied to 'list(map(string, int)).()'"),
        ("names.sortBy(n, [n])", "'@sortByAssociatedKeys' applied to 'list(string).(list(list(string)))'"),
        ("duration('abc')", "ERROR: <input>:1:10: invalid duration argument\n | duration('abc')"),
        ("'a'.matches('(')", "ERROR: <input>:1:13: invalid matches argument"),
        ("int('abc') == 1", "type conversion error from 'string' to 'int'"),
        ("names.foo()", "undeclared reference to 'foo'"),
        ("x.all(y.z, true)", "argument must be a simple name"),
        ("1 +", "ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>'"),
        ("package", "reserved identifier: package"),
        ("has(x)", "invalid argument to has() macro"),
        ("[1, 'a']", "expected type 'int' but found 'string'"),
    ];
    for (expression, wanted) in cases {
        let found = run(expression);
        assert!(found.contains(wanted), "{expression}:\n{found}");
    }
    let deep = "(".repeat(10_000);
    assert!(run(&deep).contains("recursion limit"));
    assert!(run(&vec!["x.a"; 5_000].join(" + ")).contains("recursion limit"));
    assert_eq!(run(&vec!["true"; 5_000].join(" && ")), "true");
}

#[test]
fn a_budget_ends_what_costs_too_much() {
    let program = Environment::new().with_variable("l", Type::list(Type::Int));
    let program = program.compile("l.all(a, l.all(b, l.all(c, a + b + c >= 0)))").unwrap();
    let list = Value::from((0..200).map(Value::Int).collect::<Vec<_>>());
    let activation = Activation::new().with("l", list);
    let mut budget = Budget::new(100_000);
    assert_eq!(program.evaluate(&activation, &mut budget), Err(EvaluationError::CostLimitExceeded));
}

#[test]
fn an_expression_costs_what_it_costs_upstream() {
    let world: serde_json::Value = serde_json::from_str(include_str!("testdata/world.json")).unwrap();
    let (schema, data) = (&world["schema"], &world["self"]);
    let of = declared_type(schema, true).unwrap();
    let environment = Environment::new().with_variable("self", of).with_variable("x", Type::Dyn);
    let activation =
        Activation::new().with("self", value(schema, true, data)).with("x", Value::from_json(data));
    let mut wrong = vec![];
    for line in include_str!("testdata/costs.txt").lines().filter(|line| !line.starts_with('#')) {
        let (cost, expression) = line.split_once(" | ").unwrap();
        let program = environment.compile(expression).unwrap_or_else(|error| panic!("{error}"));
        let mut budget = Budget::new(Budget::PER_CALL);
        let outcome = program.evaluate(&activation, &mut budget);
        if budget.spent().to_string() != cost {
            wrong.push(format!("{} instead of {cost}: {expression} ({outcome:?})", budget.spent()));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_only_some_know_is_known_to_them() {
    let run = |environment: Environment, expression: &str| {
        let program = environment.compile(expression).unwrap_or_else(|error| panic!("{error}"));
        let mut budget = Budget::new(Budget::PER_CALL);
        (program.evaluate(&Activation::new(), &mut budget).unwrap(), budget.spent())
    };
    let patches = Environment::new().with_json_patch();
    assert_eq!(run(patches, "jsonpatch.escapeKey('a/b~c')"), (Value::from("a~1b~0c"), 1));
    let bindings = || Environment::new().with_bindings();
    assert_eq!(run(bindings(), "cel.bind(a, size([1, 2]), a + a)"), (Value::Int(4), 4));
    assert_eq!(run(bindings(), "cel.bind(a, size([1, 2]), 3)"), (Value::Int(3), 0));
    assert_eq!(run(bindings(), "cel.bind(a, 1 / 0, true || a == 1)"), (Value::Bool(true), 0));
}

#[test]
fn what_does_not_fit_its_schema_is_an_error_where_it_is_asked_for() {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}, "m": {"type": "integer"}}});
    let of = declared_type(&schema, false).unwrap();
    let environment = Environment::new().with_variable("self", of);
    let data = json!({"n": 9_223_372_036_854_775_808_u64, "m": 1});
    let activation = Activation::new().with("self", value(&schema, false, &data));
    let run = |expression: &str| {
        let program = environment.compile(expression).unwrap();
        program.evaluate(&activation, &mut Budget::new(1_000)).map_err(|error| error.to_string())
    };
    assert_eq!(run("self.n > 1"), Err("invalid data, expected int, got float64".into()));
    assert_eq!(run("has(self.n) && self.m == 1"), Ok(Value::Bool(true)));
}

#[test]
fn a_schema_directs_types_and_values() {
    let schema = json!({"type": "object", "properties": {
        "port": {"x-kubernetes-int-or-string": true},
        "when": {"type": "string", "format": "date-time"},
        "takes": {"type": "string", "format": "duration"},
        "a.b-c": {"type": "integer"},
        "namespace": {"type": "string"},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}}},
        "share": {"type": "number"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    }});
    let of = declared_type(&schema, true).unwrap();
    let environment = Environment::new().with_variable("self", of.clone()).with_variable("oldSelf", of);
    let data = json!({"metadata": {"name": "m", "labels": {"a": "b"}}, "port": "http", "share": 1,
        "when": "2024-01-01T00:00:00Z", "takes": "90s", "a.b-c": 3, "namespace": "n", "unknown": 1,
        "set": ["a", "b"], "ports": [{"name": "x", "n": 1}, {"name": "y"}], "labels": {"k": "v"}});
    let old = json!({"set": ["b", "a"], "ports": [{"name": "y"}, {"name": "x", "n": 1}]});
    let activation = Activation::new()
        .with("self", value(&schema, true, &data))
        .with("oldSelf", value(&schema, true, &old));
    let holds = |expression: &str| {
        let program = environment.compile(expression).unwrap_or_else(|error| panic!("{error}"));
        program.evaluate(&activation, &mut Budget::new(1_000)).unwrap_or_else(|error| panic!("{error}"))
    };
    for expression in [
        "self.metadata.name == 'm'",
        "type(self.port) == string ? self.port == 'http' : self.port > 0",
        "self.when > timestamp('2023-01-01T00:00:00Z') && self.takes == duration('1m30s')",
        "self.a__dot__b__dash__c == 3 && self.__namespace__ == 'n'",
        "self.set == oldSelf.set && self.ports == oldSelf.ports",
        "self.set + ['a', 'c'] == ['a', 'b', 'c']",
        "self.share == 1.0",
        "self.labels.k == 'v' && self.labels['k'] == 'v'",
    ] {
        assert_eq!(holds(expression), Value::Bool(true), "{expression}");
    }
    for (expression, wanted) in [
        ("self.unknown == 1", "undefined field 'unknown'"),
        ("self.metadata.labels == {}", "undefined field 'labels'"),
        ("self.share == 'a'", "applied to '(double, string)'"),
    ] {
        let error = environment.compile(expression).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn an_authorizer_is_asked() {
    struct OnlyGet;
    impl authorizer::Authorize for OnlyGet {
        fn authorize(&self, check: &authorizer::Check) -> authorizer::AuthorizerVerdict {
            let allowed = check.verb == "get" && check.resource == "pods" && check.namespace == "ns";
            authorizer::AuthorizerVerdict { allowed, reason: "because".into(), error: None }
        }
    }
    let environment = Environment::new().with_variable("authorizer", authorizer::authorizer_type());
    let asked = "authorizer.group('').resource('pods').namespace('ns').check('get')";
    let program =
        environment.compile(&format!("{asked}.allowed() && {asked}.reason() == 'because'")).unwrap();
    let by = std::sync::Arc::new(OnlyGet);
    let activation = Activation::new().with("authorizer", authorizer::authorizer(by));
    let mut budget = Budget::new(Budget::PER_CALL);
    assert_eq!(program.evaluate(&activation, &mut budget), Ok(Value::Bool(true)));
}

#[test]
fn a_host_has_functions_of_its_own() {
    struct Doubles;
    impl HostFunctions for Doubles {
        fn call(
            &self,
            function: &str,
            target: Option<&Value>,
            args: &[Value],
        ) -> Option<Result<Value, EvaluationError>> {
            match (function, target, args) {
                ("Twice", None, [Value::Int(number)]) | ("Twice", Some(Value::Int(number)), []) => {
                    Some(Ok(Value::Int(number * 2)))
                }
                _ => None,
            }
        }
    }
    let environment = Environment::new().with_function("Twice", None, &[Type::Int], Type::Int).with_function(
        "Twice",
        Some(Type::Int),
        &[],
        Type::Int,
    );
    let activation = Activation::new().with_host(std::sync::Arc::new(Doubles));
    let of = |text: &str| environment.compile(text).unwrap().evaluate(&activation, &mut Budget::new(1_000));
    assert_eq!(of("Twice(4) + 4.Twice() + size('abc')"), Ok(Value::Int(19)));
    assert!(environment.compile("Twice('a')").unwrap_err().to_string().contains("no matching overload"));
    let unknown = Environment::new().compile("Twice(4)").unwrap_err().to_string();
    assert!(unknown.contains("undeclared reference to 'Twice'"), "{unknown}");
}
