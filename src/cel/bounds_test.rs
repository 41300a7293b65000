//! What an expression could make this process do beyond its cost: outgrow memory or the stack, run for free.

use super::*;

fn run_within(expression: &str, units: u64) -> Result<Value, String> {
    let environment = Environment::new().with_bindings().with_variable("x", Type::Dyn);
    let program = environment.compile(expression).map_err(|error| error.to_string())?;
    let x = Value::from_json(&serde_json::json!({"a": 1, "l": [[1]], "t": ["aaaaaaaaaa"]}));
    let activation = Activation::new().with("x", x);
    program.evaluate(&activation, &mut Budget::new(units)).map_err(|error| error.to_string())
}

fn run(expression: &str) -> Result<Value, String> {
    run_within(expression, Budget::PER_CALL)
}

fn fails(expression: &str, wanted: &str) {
    let found = run(expression);
    assert!(found.as_ref().is_err_and(|error| error.contains(wanted)), "{expression}: {found:?}");
}

#[test]
fn what_doubles_ends_with_its_budget() {
    for start in ["[[0]]", "x.l", "x.t"] {
        fails(&format!("{start}{}", ".map(a, a + a)".repeat(40)), "cost limit exceeded");
    }
}

#[test]
fn nothing_is_made_that_is_too_large() {
    let text = format!("['0123456789']{}", ".map(a, a + a)".repeat(12));
    fails(&format!("{text}.map(a, a.replace('', a))"), "text too large");
    fails(&format!("{text}.map(a, a.replace('0', a, 4000))"), "text too large");
    let shared = format!("[[1]]{}", ".map(a, [a, a])".repeat(40));
    fails(&format!("{shared}.map(a, '%s'.format([a]))"), "text too large");
    let list = format!("[[0]]{}", ".map(a, a + a)".repeat(10));
    fails(&format!("{list}.map(a, a.map(b, a)).map(a, a.map(b, a)).map(a, a.flatten(3))"), "list too large");
    fails("[[1], [2]].map(a, dyn(a)).sum()", "no such overload");
    assert_eq!(run("'abc'.replace('', '-')"), Ok("-a-b-c-".into()));
    assert_eq!(run("'aaa'.replace('a', 'b', 2)"), Ok("bba".into()));
}

#[test]
fn a_tree_is_no_higher_than_its_limit() {
    let limit = "recursion limit exceeded: 250";
    fails(&format!("x{}", ".a".repeat(300)), limit);
    fails(&format!("x{}", "[0]".repeat(300)), limit);
    fails(&vec!["1"; 300].join(" + "), limit);
    fails(&vec!["[1]"; 300].join(" + "), limit);
    let nested = (0..90).fold("x".to_owned(), |inner, _| format!("({inner}{})", ".a".repeat(90)));
    fails(&nested, limit);
    let nested = (0..90).fold("1".to_owned(), |inner, _| format!("({inner}{})", " + 1".repeat(90)));
    fails(&nested, limit);
    let nested = (0..300).fold("true".to_owned(), |inner, _| format!("(true && {inner})"));
    fails(&nested, limit);
    assert_eq!(run(&vec!["1"; 240].join(" + ")), Ok(Value::Int(240)));
    assert_eq!(run(&vec!["true"; 5_000].join(" && ")), Ok(Value::Bool(true)));
    assert_eq!(run(&vec!["false"; 5_000].join(" || ")), Ok(Value::Bool(false)));
    let deep = format!("{}1{}", "[".repeat(240), "]".repeat(240));
    assert!(run(&deep).is_ok());
    let program = Environment::new().with_variable("x", Type::Dyn);
    let program = program.compile(&format!("x{}", ".a".repeat(240))).unwrap();
    assert!(program.mentions("x"));
    assert!(!program.selects("x", "b"));
}

#[test]
fn sorting_has_a_total_order() {
    let mixed = (0..60)
        .map(|n| match n % 3 {
            0 => Value::Int(9_007_199_254_740_992 + i64::from(n * 7 % 5)),
            1 => Value::Double(9_007_199_254_740_992.0 + f64::from(n * 3 % 4)),
            _ => Value::Double(if n % 2 == 0 { f64::NAN } else { f64::from(n * 31 % 17) }),
        })
        .collect::<Vec<_>>();
    let doubles: Vec<Value> =
        mixed.iter().filter(|value| matches!(value, Value::Double(_))).cloned().collect();
    let numbers: Vec<Value> =
        mixed.iter().filter(|value| !matches!(value, Value::Double(d) if d.is_nan())).cloned().collect();
    let environment = Environment::new().with_variable("l", Type::list(Type::Dyn));
    for (expression, list) in [("l.sort()", doubles), ("l.sortBy(n, n)", numbers)] {
        let program = environment.compile(expression).unwrap();
        let activation = Activation::new().with("l", Value::from(list));
        let sorted = program.evaluate(&activation, &mut Budget::new(Budget::PER_CALL)).unwrap();
        let Value::List(sorted) = sorted else { panic!("no list") };
        let ordered = |pair: &[Value]| operators::total_order(&pair[0], &pair[1]).is_le();
        assert!(sorted.items.windows(2).all(ordered), "{sorted:?}");
    }
    let order = |left: i64, right: f64| operators::total_order(&Value::Int(left), &Value::Double(right));
    assert!(order(9_007_199_254_740_993, 9_007_199_254_740_992.0).is_gt());
    assert!(order(1, 1.5).is_lt() && order(-1, -1.5).is_gt() && order(1, 1.0).is_eq());
    assert!(order(i64::MAX, f64::INFINITY).is_lt() && order(0, f64::NAN).is_lt());
}

#[test]
fn a_binding_is_worked_out_within_the_budget() {
    let costly = "[1, 2, 3, 4, 5, 6, 7, 8, 9].map(a, [1, 2, 3, 4, 5, 6, 7, 8, 9].map(b, x.a + b))";
    let limit = "operation cancelled: actual cost limit exceeded";
    let bind = format!("cel.bind(v, {costly}, 3)");
    assert_eq!(run_within(&bind, 100), Err(limit.into()));
    assert_eq!(run_within(&bind, 10_000), Ok(Value::Int(3)));
    let again = format!("[1, 2, 3, 4, 5, 6, 7, 8, 9].map(c, {bind})");
    assert_eq!(run_within(&again, 6_000), Err(limit.into()));
}

#[test]
fn a_duration_beyond_all_numbers_is_none() {
    for text in ["170141183460469231731687303715.8841057289h", "47262879.9h47262879.9h"] {
        assert!(run(&format!("duration(x.a == 1 ? '{text}' : '1s')")).is_err());
    }
    let most = i128::MAX.to_string();
    assert!(times::parse_duration(&format!("{most}ns1.9h")).is_none());
    assert!(times::parse_duration(&format!("{most}ns0.9h")).is_none());
    assert_eq!(times::parse_duration("1.5s"), Some(chrono::TimeDelta::milliseconds(1_500)));
}

#[test]
fn patterns_are_read_as_go_reads_them() {
    let matches = |pattern: &str, text: &str| go_patterns::compile(pattern).unwrap().is_match(text);
    for (pattern, text, wanted) in [
        (r"^\d$", "٣", false),
        (r"^\d$", "3", true),
        (r"^[\d]$", "٣", false),
        (r"^\w$", "é", false),
        (r"^[^\w]$", "é", true),
        (r"^\W$", "é", true),
        (r"^[\Wa]$", "é", true),
        (r"^\s$", "\u{a0}", false),
        (r"^[\S]$", "\u{a0}", true),
        (r"a\b", "aé", true),
        (r"a\B", "aé", false),
        (r"^.$", "é", true),
        (r"^[[a]$", "[", true),
        (r"^[]a&&b]+$", "]a&b", true),
        (r"^[[:alpha:]]$", "a", true),
        (r"^a{2,3}$", "aaa", true),
        (r"^a{b}$", "a{b}", true),
        (r"^\p{Greek}\x{3b1}$", "βα", true),
    ] {
        assert_eq!(matches(pattern, text), wanted, "{pattern} of {text}");
    }
}

#[test]
fn patterns_have_bounds() {
    fails("'a'.matches('a{1001}')", "invalid matches argument");
    fails("'a'.matches(string(x.a) + 'a{1001}')", "invalid repeat count: `{1001}`");
    fails("'a'.matches(string(x.a) + '((a{1000}){1000}){1000}')", "expression too large");
    assert_eq!(run("'1a'.matches(string(x.a) + 'a{1,1000}')"), Ok(Value::Bool(true)));
}
