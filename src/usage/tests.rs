//! Each text of a curve at some times, and texts that are none.

use serde_json::json;

use super::load::LoadBook;
use super::{Against, Curve};

fn against(whole: f64) -> Against<'static> {
    Against { whole, ..Against::default() }
}

fn near(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() < 1e-6 * wanted.abs().max(1.0)
}

#[test]
fn each_text_is_a_number_and_a_sum_at_each_time() {
    // Text, seconds, value, sum since the beginning.
    let cases = [
        ("250m", 60.0, 0.25, 15.0),
        ("64Mi", 1.0, 67_108_864.0, 67_108_864.0),
        ("40%", 10.0, 0.8, 8.0),
        ("ramp 100m 500m 1m", 30.0, 0.3, 6.0),
        ("ramp 100m 500m 1m", 90.0, 0.5, 33.0),
        ("ramp 1 0 10s", 20.0, 0.0, 5.0),
        ("wave 0 1 1m", 30.0, 1.0, 15.0),
        ("wave 1 3 1m", 60.0, 1.0, 120.0),
        ("steps 1, 3 at 10s, 0 at 20s", 15.0, 3.0, 25.0),
        ("steps 1, 3 at 10s, 0 at 20s", 60.0, 0.0, 40.0),
        ("cel: age / 10.0", 30.0, 3.0, 45.0),
        ("cel: '500m'", 4.0, 0.5, 2.0),
        ("cel: whole * 0.5", 4.0, 1.0, 4.0),
    ];
    for (text, seconds, value, sum) in cases {
        let (curve, against) = (Curve::parse(text).unwrap(), against(2.0));
        let found = (curve.value(seconds, &against), curve.sum(0.0, seconds, &against));
        assert!(near(found.0, value) && near(found.1, sum), "{text} at {seconds}: {found:?}");
    }
}

#[test]
fn a_limit_is_passed_at_a_time() {
    let cases = [
        ("2Mi", Some(0.0)),
        ("1Mi", None),
        ("ramp 0 2Mi 1m", Some(30.0)),
        ("ramp 0 1Mi 1m", None),
        ("wave 0 2Mi 1m", Some(15.0)),
        ("steps 0, 1Mi at 5s, 2Mi at 7s", Some(7.0)),
        ("cel: age * 100000.0", Some(15.0)),
        ("cel: 0", None),
    ];
    for (text, wanted) in cases {
        let found = Curve::parse(text).unwrap().first_above(1_048_576.0, &against(0.0));
        let is_it = match (found, wanted) {
            (Some(found), Some(wanted)) => near(found, wanted),
            (found, wanted) => found == wanted,
        };
        assert!(is_it, "{text}: {found:?}");
    }
}

#[test]
fn expressions_see_what_is_measured() {
    let variables = json!({"pod": {"metadata": {"labels": {"load": "3"}}}});
    let against = Against { whole: 1.0, variables: Some(&variables), began: 1_767_225_600.0, load: None };
    let of = |text: &str| Curve::parse(text).unwrap().value(30.0, &against);
    assert!(near(of("cel: int(pod.metadata.labels.load) * 2"), 6.0));
    assert!(near(of("cel: now.getSeconds()"), 30.0));
    // What fails or costs too much is nothing.
    assert!(near(of("cel: pod.metadata.labels.missing"), 0.0));
    let huge = "cel: [1,2,3,4,5,6,7,8,9].map(a, [1,2,3,4,5,6,7,8,9].map(b, [1,2,3,4,5,6,7,8,9].map(c, \
                [1,2,3,4,5,6,7,8,9].map(d, a * b * c * d)))).size()";
    assert!(near(of(huge), 0.0));
}

#[test]
fn bad_texts_are_told_what_they_may_be() {
    let long = format!("cel: {}", "1 + ".repeat(300));
    let steps = format!("steps 1{}", (1..70).map(|at| format!(", 1 at {at}s")).collect::<String>());
    let cases = [
        ("much", "it may be a quantity"),
        ("-1", "it may be a quantity"),
        ("12000%", "it may be a quantity"),
        ("up 1 2", "ramp FROM TO TIME"),
        ("ramp 1 2", "two amounts and a time"),
        ("ramp 1 2 0s", "longer than 0s"),
        ("wave 1 2 soon", "is no time"),
        ("steps 1, 2", "AMOUNT at TIME"),
        ("steps 1, 2 at 5s, 3 at 5s", "later than the step before"),
        (&steps, "more than 64 steps"),
        ("cel: pod +", "Syntax error"),
        ("cel: load", "undeclared reference"),
        (&long, "longer than 1024 bytes"),
    ];
    for (text, words) in cases {
        let why = Curve::parse(text).unwrap_err().to_string();
        assert!(why.contains(words), "{text}: {why}");
    }
}

#[test]
fn the_sum_of_an_expression_never_goes_down() {
    let curve = Curve::parse("cel: age < 100.0 || age > 3000.0 ? 1.0 : 0.0").unwrap();
    let against = against(1.0);
    let sums: Vec<f64> = (0..200).map(|step| curve.sum(0.0, f64::from(step * 25), &against)).collect();
    assert!(sums.is_sorted(), "{sums:?}");
    assert!((950.0..1100.0).contains(&(sums[160] - sums[40])), "{}", sums[160] - sums[40]);
    // What it uses lately does not wait for the middle of a long piece.
    assert!(
        near(curve.sum(2990.0, 3000.0, &against), 0.0) && near(curve.sum(3010.0, 3020.0, &against), 10.0)
    );
}

#[test]
fn requests_are_divided_among_who_is_there_and_what_was_is_not_changed() {
    let book = LoadBook::default();
    let [one, two] = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap());
    book.put("default/web", "100", Box::new(|_| 100.0), 0.0);
    book.divide("default/web", &[one].into(), 0.0);
    let curve = Curve::parse("requests 10m 5m").unwrap();
    let of = |address| Against { load: Some(book.at([Some(address), None])), ..Against::default() };
    assert!(near(curve.value(30.0, &of(one)), 0.51) && near(curve.value(30.0, &of(two)), 0.01));
    let used = curve.sum(0.0, 60.0, &of(one));
    assert!(near(used, 60.0 * 0.51), "{used}");
    book.divide("default/web", &[one, two].into(), 60.0);
    assert!(near(curve.value(61.0, &of(one)), 0.26) && near(curve.value(61.0, &of(two)), 0.26));
    assert!(near(curve.sum(0.0, 60.0, &of(one)), used));
    // Whoever says the same again changes nothing; another text begins anew, and a Service may go.
    book.put("default/web", "100", Box::new(|_| 100.0), 70.0);
    assert!(near(curve.value(61.0, &of(one)), 0.26));
    book.remove("default/web");
    assert!(near(curve.value(61.0, &of(one)), 0.01));
    assert!(Curve::parse("requests 1").is_err());
}

#[test]
fn changes_of_endpoints_are_remembered_up_to_a_bound() {
    let book = LoadBook::default();
    let [one, two] = ["10.0.0.1", "10.0.0.2"].map(|address: &str| address.parse().unwrap());
    book.put("a/b", "1", Box::new(|_| 1.0), 0.0);
    for number in 0..2000_u32 {
        let endpoints = if number % 2 == 0 { [one].into() } else { [one, two].into() };
        book.divide("a/b", &endpoints, f64::from(number));
    }
    let curve = Curve::parse("requests 0 1").unwrap();
    let against = Against { load: Some(book.at([Some(one), None])), ..Against::default() };
    // The last are known one by one, the first as the oldest that is known.
    assert!(near(curve.value(1998.0, &against), 1.0) && near(curve.value(1999.0, &against), 0.5));
    assert!(curve.value(0.0, &against) > 0.0);
}
