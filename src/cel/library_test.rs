//! The functions of the libraries: what they give, and what they are told by, in the words of cel-go and of
//! `k8s.io/apiserver/pkg/cel/library`.

use super::{Activation, Budget, Environment};

fn run(expression: &str) -> String {
    let environment = Environment::new().with_json_patch();
    let program = environment.compile(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
    match program.evaluate(&Activation::new(), &mut Budget::new(Budget::PER_CALL)) {
        Ok(value) => value.to_json().map_or(value.type_name().to_owned(), |json| json.to_string()),
        Err(error) => format!("error: {error}"),
    }
}

fn check(cases: &[(&str, &str)]) {
    for (expression, wanted) in cases {
        assert_eq!(run(expression), *wanted, "{expression}");
    }
}

#[test]
fn urls_are_read_by_the_rules_of_go() {
    check(&[
        ("url('https://user:pw@example.com:80/p?a=1#f').getScheme()", r#""https""#),
        ("url('HTTPS://example.com:80/').getScheme()", r#""https""#),
        ("url('https://user:pw@example.com:80/').getHost()", r#""example.com:80""#),
        ("url('https://[::1]:80/').getHost()", r#""[::1]:80""#),
        ("url('https://[::1]:80/').getHostname()", r#""::1""#),
        ("url('https://[fe80::1%25eth0]/').getHostname()", r#""fe80::1%eth0""#),
        ("url('https://example.com:80/').getHostname()", r#""example.com""#),
        ("url('https://example.com:80/').getPort()", r#""80""#),
        ("url('https://example.com/').getPort()", r#""""#),
        ("url('/path').getHost()", r#""""#),
        ("url('https://example.com/path with spaces/').getEscapedPath()", r#""/path%20with%20spaces/""#),
        ("url('https://example.com/a%2Fb').getEscapedPath()", r#""/a%2Fb""#),
        ("url('https://example.com/é').getEscapedPath()", r#""/%C3%A9""#),
        ("url('https://example.com').getEscapedPath()", r#""""#),
        ("url('https://a.b/p?k1=a&k2=b&k2=c').getQuery()", r#"{"k1":["a"],"k2":["b","c"]}"#),
        (
            "url('https://a.b/p?key with spaces=value with spaces').getQuery()",
            r#"{"key with spaces":["value with spaces"]}"#,
        ),
        ("url('https://a.b/p?a+b=c%20d&e;f=1&g=%zz').getQuery()", r#"{"a b":["c d"]}"#),
        ("url('https://a.b/p?').getQuery()", "{}"),
        ("url('mailto:a@b').getHost()", r#""""#),
        ("url('https://a.b/c#d').getEscapedPath()", r#""/c""#),
        (
            "url('https://a.b/c') == url('https://a.b/c') && url('https://a.b/c') != url('https://a.b/d')",
            "true",
        ),
        ("isURL('https://a.b') && isURL('/absolute') && isURL('*') && isURL('x:y')", "true"),
        (
            "isURL('relative') || isURL('../p') || isURL('') || isURL('https://a b/') || isURL('https://a:b/')",
            "false",
        ),
        ("isURL('https://a.b:80:80/') || isURL('https://[::1/') || isURL('https://[1.2.3.4]/')", "false"),
        (
            "url('../x')",
            r#"error: URL parse error during conversion from string: parse "../x": invalid URI for request"#,
        ),
        (
            "url(':x')",
            r#"error: URL parse error during conversion from string: parse ":x": missing protocol scheme"#,
        ),
        ("url('')", r#"error: URL parse error during conversion from string: parse "": empty url"#),
        (
            "url('https://a b/')",
            r#"error: URL parse error during conversion from string: parse "https://a b/": invalid character " " in host name"#,
        ),
        (
            "url('https://a:b/')",
            r#"error: URL parse error during conversion from string: parse "https://a:b/": invalid port ":b" after host"#,
        ),
        (
            "url('https://a/%zz')",
            r#"error: URL parse error during conversion from string: parse "https://a/%zz": invalid URL escape "%zz""#,
        ),
        (
            r"url('https://a/\n')",
            r#"error: URL parse error during conversion from string: parse "https://a/\n": net/url: invalid control character in URL"#,
        ),
        (
            "url('https://[x]/')",
            r#"error: URL parse error during conversion from string: parse "https://[x]/": invalid host: ParseAddr("x"): unable to parse IP"#,
        ),
    ]);
}

#[test]
fn addresses_are_read_as_go_reads_them() {
    check(&[
        ("ip('127.0.0.1').family()", "4"),
        ("ip('::1').family()", "6"),
        ("string(ip('2001:DB8:0:0::1'))", r#""2001:db8::1""#),
        ("ip.isCanonical('2001:db8::abcd')", "true"),
        ("ip.isCanonical('2001:DB8::ABCD')", "false"),
        ("isIP('1.2.3.4') && isIP('::') && isIP('1::') && isIP('::1.2.3.4')", "true"),
        ("isIP('01.2.3.4') || isIP('1.2.3') || isIP('fe80::1%eth0') || isIP('::ffff:1.2.3.4')", "false"),
        ("ip('::').isUnspecified() && ip('0.0.0.0').isUnspecified()", "true"),
        ("ip('127.0.0.1').isLoopback() && ip('::1').isLoopback()", "true"),
        ("ip('224.0.0.1').isLinkLocalMulticast() && ip('ff02::1').isLinkLocalMulticast()", "true"),
        ("ip('169.254.1.1').isLinkLocalUnicast() && ip('fe80::1').isLinkLocalUnicast()", "true"),
        ("ip('192.168.0.1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast()", "true"),
        ("ip('224.0.0.1').isGlobalUnicast()", "false"),
        ("ip('10.0.0.1') == ip('10.0.0.1') && ip('::1') == ip('0::1')", "true"),
        ("type(ip('::1')) == net.IP", "true"),
        (
            "ip('192.168.0.1.0')",
            r#"error: IP Address "192.168.0.1.0" parse error during conversion from string: ParseAddr("192.168.0.1.0"): IPv4 address too long"#,
        ),
        (
            "ip('192.168.0')",
            r#"error: IP Address "192.168.0" parse error during conversion from string: ParseAddr("192.168.0"): IPv4 address too short"#,
        ),
        (
            "ip('1.2.3.256')",
            r#"error: IP Address "1.2.3.256" parse error during conversion from string: ParseAddr("1.2.3.256"): IPv4 field has value >255"#,
        ),
        (
            "ip('1.2.3.04')",
            r#"error: IP Address "1.2.3.04" parse error during conversion from string: ParseAddr("1.2.3.04"): IPv4 field has octet with leading zero"#,
        ),
        (
            "ip('1..2.3')",
            r#"error: IP Address "1..2.3" parse error during conversion from string: ParseAddr("1..2.3"): IPv4 field must have at least one digit (at ".2.3")"#,
        ),
        (
            "ip('x')",
            r#"error: IP Address "x" parse error during conversion from string: ParseAddr("x"): unable to parse IP"#,
        ),
        (
            "ip('1:2')",
            r#"error: IP Address "1:2" parse error during conversion from string: ParseAddr("1:2"): address string too short"#,
        ),
        (
            "ip('1::2::3')",
            r#"error: IP Address "1::2::3" parse error during conversion from string: ParseAddr("1::2::3"): multiple :: in address (at ":3")"#,
        ),
        (
            "ip('1:2:3:4:5:6:7:8:9')",
            r#"error: IP Address "1:2:3:4:5:6:7:8:9" parse error during conversion from string: ParseAddr("1:2:3:4:5:6:7:8:9"): trailing garbage after address (at "9")"#,
        ),
        ("ip('fe80::1%en0')", r#"error: IP address "fe80::1%en0" with zone value is not allowed"#),
        ("ip('::ffff:1.2.3.4')", r#"error: IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed"#),
    ]);
}

#[test]
fn networks_are_read_as_go_reads_them() {
    const TWICE: &str = "error: network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix";
    check(&[
        (
            "cidr('192.168.1.5/24').containsIP('192.168.1.9') && cidr('192.168.0.0/24').containsIP(ip('192.168.0.9'))",
            "true",
        ),
        ("cidr('192.168.0.0/24').containsIP('192.168.1.1')", "false"),
        ("cidr('::/0').containsIP('1.2.3.4')", "false"),
        ("cidr('192.168.0.0/24').containsIP('x')", "error: no such overload"),
        ("cidr('192.168.0.0/16').containsCIDR('192.168.1.0/24')", "true"),
        ("cidr('192.168.0.0/24').containsCIDR(cidr('192.168.0.0/16'))", "false"),
        (
            "string(cidr('192.168.1.5/24').ip()) + string(cidr('192.168.1.5/24').masked())",
            r#""192.168.1.5192.168.1.0/24""#,
        ),
        ("cidr('::1/128').prefixLength()", "128"),
        ("cidr('1.2.3.4/0').masked() == cidr('0.0.0.0/0')", "true"),
        (
            "isCIDR('1.2.3.0/24') && !isCIDR('1.2.3.0/33') && !isCIDR('1.2.3.0') && !isCIDR('1.2.3.0/024')",
            "true",
        ),
        ("cidr('1.2.3.0')", &format!("{TWICE}(\"1.2.3.0\"): no '/'")),
        ("cidr('1.2.3.0/x')", &format!("{TWICE}(\"1.2.3.0/x\"): bad bits after slash: \"x\"")),
        ("cidr('1.2.3.0/33')", &format!("{TWICE}(\"1.2.3.0/33\"): prefix length out of range")),
        ("cidr('1.2.3/8')", &format!("{TWICE}(\"1.2.3/8\"): ParseAddr(\"1.2.3\"): IPv4 address too short")),
        (
            "cidr('::ffff:1.2.3.4/100')",
            "error: network address parse error during conversion from string: IPv4-mapped IPv6 address \"::ffff:1.2.3.4/100\" is not allowed",
        ),
    ]);
}

#[test]
fn quantities_are_those_of_the_api() {
    check(&[
        ("quantity('1k') == quantity('1000') && quantity('1Ki') != quantity('1k')", "true"),
        ("isQuantity('20Mi') && !isQuantity('20Mo') && !isQuantity('')", "true"),
        ("quantity('50k').isInteger() && !quantity('0.5').isInteger()", "true"),
        ("quantity('50k').asInteger()", "50000"),
        ("quantity('0.5').asInteger()", "error: cannot convert value to integer"),
        ("quantity('50.5k').asApproximateFloat()", "50500.0"),
        ("sign(quantity('-50k')) + sign(quantity('0')) + sign(quantity('1'))", "0"),
        ("quantity('50k').add(quantity('20k')).compareTo(quantity('70k'))", "0"),
        (
            "quantity('50k').add(20) == quantity('50020') && quantity('50k').sub(20) == quantity('49980')",
            "true",
        ),
        ("quantity('50k').sub(quantity('100k')).compareTo(quantity('0'))", "-1"),
        (
            "quantity('1M').isLessThan(quantity('1Mi')) && quantity('1Mi').isGreaterThan(quantity('1M'))",
            "true",
        ),
        (
            "quantity('x')",
            "error: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
    ]);
}

#[test]
fn versions_are_those_of_upstreams_library() {
    check(&[
        ("semver('1.2.3').major() * 100 + semver('1.2.3').minor() * 10 + semver('1.2.3').patch()", "123"),
        ("semver('1.0.0-alpha.1').isLessThan(semver('1.0.0-alpha.beta'))", "true"),
        (
            "semver('1.0.0-alpha').isLessThan(semver('1.0.0')) && semver('1.0.0-a.2').isLessThan(semver('1.0.0-a.10'))",
            "true",
        ),
        (
            "semver('1.2.3+a') == semver('1.2.3+b') && semver('1.2.3').compareTo(semver('1.2.4')) == -1",
            "true",
        ),
        ("isSemver('1.2.3') && !isSemver('v1.2.3') && !isSemver('1.2') && !isSemver('01.2.3')", "true"),
        ("isSemver('v1', true) && isSemver('v01.01', true) && !isSemver('1.2-x', true)", "true"),
        ("semver('v01.01', true) == semver('1.1.0')", "true"),
        ("semver('')", "error: Version string empty"),
        ("semver('1.2')", "error: No Major.Minor.Patch elements found"),
        ("semver('a.2.3')", r#"error: Invalid character(s) found in major number "a""#),
        ("semver('1.02.3')", r#"error: Minor number must not contain leading zeroes "02""#),
        ("semver('1.2.3-')", "error: Prerelease is empty"),
        ("semver('1.2.3-01')", r#"error: Numeric PreRelease version must not contain leading zeroes "01""#),
        ("semver('1.2.3-a_b')", r#"error: Invalid character(s) found in prerelease "a_b""#),
        ("semver('1.2.3+')", "error: Build meta data is empty"),
        ("semver('1-x', true)", "error: short version cannot contain PreRelease/Build meta data"),
        (
            "semver('99999999999999999999.1.1')",
            r#"error: strconv.ParseUint: parsing "99999999999999999999": value out of range"#,
        ),
    ]);
}

#[test]
fn formats_tell_what_is_wrong() {
    check(&[
        ("format.dns1123Label().validate('a-b').hasValue()", "false"),
        (
            "format.dns1123Label().validate('A').value()[0].startsWith('a lowercase RFC 1123 label must')",
            "true",
        ),
        (
            "format.dns1123Subdomain().validate('a.b-').value()[0].startsWith('a lowercase RFC 1123 subdomain must')",
            "true",
        ),
        ("format.dns1035Label().validate('1a').value()[0].startsWith('a DNS-1035 label must')", "true"),
        (
            "format.dns1123LabelPrefix().validate('a-').hasValue() || format.dns1035LabelPrefix().validate('ab-').hasValue()",
            "false",
        ),
        ("format.dns1123SubdomainPrefix().validate('a.b-').hasValue()", "false"),
        ("format.qualifiedName().validate('a.b/c').hasValue()", "false"),
        (
            "format.qualifiedName().validate('a/b/c').hasValue() && format.labelValue().validate('-').hasValue()",
            "true",
        ),
        ("format.uri().validate('x').value()", r#"["parse \"x\": invalid URI for request"]"#),
        ("format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()", "false"),
        ("format.uuid().validate('x').value()", r#"["does not match the UUID format"]"#),
        ("format.byte().validate('aGVsbG8=').hasValue()", "false"),
        ("format.byte().validate('a').value()", r#"["invalid base64"]"#),
        ("format.date().validate('2021-02-28').hasValue()", "false"),
        ("format.date().validate('2021-02-30').value()", r#"["invalid date"]"#),
        ("format.datetime().validate('2021-01-01T00:00:00Z').hasValue()", "false"),
        ("format.datetime().validate('2021-01-01T24:00:00Z').value()", r#"["invalid datetime"]"#),
        ("format.dns1123Label().validate('a-b') == null", "false"),
        ("null != format.uri().validate('x')", "true"),
        ("format.named('uri') == optional.of(format.uri()) && !format.named('nope').hasValue()", "true"),
    ]);
}

#[test]
fn texts_are_worked_on_as_in_go() {
    check(&[
        ("'tacocat'.charAt(3) + 'tacocat'.charAt(7)", r#""o""#),
        ("'tacocat'.charAt(8)", "error: index out of range: 8"),
        ("'hello mellow'.indexOf('')", "0"),
        ("'hello mellow'.indexOf('ello', 2)", "7"),
        ("'hello'.indexOf('o', 20)", "-1"),
        ("'hello'.indexOf('o', -1)", "error: index out of range: -1"),
        ("'hello mellow'.lastIndexOf('ello')", "7"),
        ("'hello mellow'.lastIndexOf('ello', 6)", "1"),
        ("'hello mellow'.lastIndexOf('')", "12"),
        ("'héé'.lastIndexOf('é', 1)", "1"),
        ("'hello'.lastIndexOf('l', 9)", "-1"),
        ("'hello'.lastIndexOf('l', -1)", "error: index out of range: -1"),
        ("'TacoCÆt'.lowerAscii() + 'tacoCÆtÉé'.upperAscii()", r#""tacocÆtTACOCÆTÉé""#),
        (
            "'hello hello'.replace('he', 'we') + 'hello hello'.replace('he', 'we', 1)",
            r#""wello wellowello hello""#,
        ),
        ("'hello hello'.replace('he', 'we', 0) + 'ab'.replace('', '_')", r#""hello hello_a_b_""#),
        ("'tacocat'.substring(4) + 'tacocat'.substring(0, 4)", r#""cattaco""#),
        ("'tacocat'.substring(8)", "error: index out of range: 8"),
        ("'tacocat'.substring(1, 50)", "error: index out of range: 50"),
        ("'tacocat'.substring(3, 1)", "error: invalid substring range. start: 3, end: 1"),
        (r"' \u0085\u00a0trim\n '.trim()", r#""trim""#),
        ("['x', 'y'].join() + ['x', 'y'].join('-')", r#""xyx-y""#),
        (r#"strings.quote('a"\n\\é')"#, r#""\"a\\\"\\n\\\\é\"""#),
        ("'abc 123'.find('[0-9]+') + 'abc'.find('[0-9]')", r#""123""#),
        ("'123 abc 456'.findAll('[0-9]+')", r#"["123","456"]"#),
        ("'123 abc 456'.findAll('[0-9]+', 1) + 'a1'.findAll('[0-9]', 0)", r#"["123"]"#),
        ("'a'.find('(')", "error: Illegal regex: error parsing regexp: missing closing ): `(`"),
        ("jsonpatch.escapeKey('k8s.io/my~label')", r#""k8s.io~1my~0label""#),
    ]);
}

#[test]
fn texts_are_formatted_as_by_cel_go() {
    const WRONG: &str = "error: error during formatting: ";
    check(&[
        ("'%s %d %% %s'.format(['a', 5, true])", r#""a 5 % true""#),
        (
            "'%s'.format([[dyn('a'), dyn(1), dyn(2.5), dyn([null]), dyn(b'x'), dyn(duration('90s')), dyn(timestamp('2024-01-01T00:00:00Z'))]])",
            r#""[\"a\", 1, 2.500000, [null], b\"x\", duration(\"90s\"), timestamp(\"2024-01-01T00:00:00Z\")]""#,
        ),
        (
            "'%s'.format([{dyn('b'): dyn(1), dyn('a'): dyn('x'), dyn(5): dyn(true)}])",
            r#""{\"a\":\"x\", \"b\":1, 5:true}""#,
        ),
        ("'%s %s %s'.format([1.5, 1e30, type('a')])", r#""1.5 1e+30 string""#),
        ("'%f %.2f %.3f'.format([2.71828, 1234567.891, -0.5])", r#""2.718280 1,234,567.89 -0.500""#),
        ("'%e'.format([1052.032911275])", "\"1.052033\u{202f}\u{d7}\u{202f}10⁰³\""),
        ("'%f %f'.format(['NaN', '-Infinity'])", "\"NaN -\u{221e}\""),
        ("'%b %b %b'.format([5, -5, true])", r#""101 -101 1""#),
        ("'%x %X %x %x'.format([255, 255, 'hello', b'\\xff'])", r#""ff FF 68656c6c6f ff""#),
        ("'%o'.format([11u])", r#""13""#),
        (
            "'%d'.format(['a'])",
            &format!("{WRONG}decimal clause can only be used on integers, was given string"),
        ),
        (
            "'%b'.format(['a'])",
            &format!("{WRONG}only integers and bools can be formatted as binary, was given string"),
        ),
        (
            "'%o'.format(['a'])",
            &format!("{WRONG}octal clause can only be used on integers, was given string"),
        ),
        (
            "'%x'.format([true])",
            &format!(
                "{WRONG}only integers, byte buffers, and strings can be formatted as hex, was given bool"
            ),
        ),
        (
            "'%f'.format([1])",
            &format!("{WRONG}fixed-point clause can only be used on doubles, was given int"),
        ),
        ("'%e'.format([1])", &format!("{WRONG}scientific clause can only be used on doubles, was given int")),
        (
            "'%s'.format([url('https://a.b')])",
            &format!(
                "{WRONG}string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given kubernetes.URL"
            ),
        ),
        ("'%s %s'.format(['a'])", "error: index 1 out of range"),
        (
            "'%j'.format([1])",
            "error: could not parse formatting clause: unrecognized formatting clause \"j\"",
        ),
        (
            "'%.3'.format([1.0])",
            "error: could not parse formatting clause: error while parsing precision: could not find end of precision specifier",
        ),
        ("'%'.format([1])", "error: unexpected end of string"),
    ]);
}

#[test]
fn lists_are_worked_on_as_by_cel_go() {
    check(&[
        ("[dyn(1), 2, 2, 3, 1, dyn(1.0)].distinct()", "[1,2,3]"),
        ("[[1], [2, 3]].flatten()", "[1,2,3]"),
        ("dyn([dyn(1), dyn([dyn(2), dyn([3])])]).flatten(2)", "[1,2,3]"),
        ("dyn([[1]]).flatten(-1)", "error: level must be non-negative"),
        ("[5, 3, 1].reverse()", "[1,3,5]"),
        ("[1, 2, 3, 4].slice(1, 3)", "[2,3]"),
        ("[1, 2].slice(-1, 1)", "error: cannot slice(-1, 1), negative indexes not supported"),
        (
            "[1, 2].slice(2, 1)",
            "error: cannot slice(2, 1), start index must be less than or equal to end index",
        ),
        ("[1, 2].slice(0, 9)", "error: cannot slice(0, 9), list is length 2"),
        ("[3, 1, 2].sort() == [1, 2, 3] && ['b', 'a'].sort() == ['a', 'b'] && [].sort() == []", "true"),
        ("dyn([dyn(1), dyn('a')]).sort()", "error: list elements must have the same type"),
        ("dyn([{}, {}]).sort()", "error: list elements must be comparable"),
        ("lists.range(3)", "[0,1,2]"),
        ("[1, 2, 1].indexOf(1) + [1, 2, 1].lastIndexOf(1) + [1].indexOf(5)", "1"),
        ("[1, 2].first().value() + [1, 2].last().value()", "3"),
        ("dyn([]).min()", "error: min called on empty list"),
        (
            "sets.contains([1, 2, 3], [2]) && sets.equivalent([1, 1], [1]) && !sets.intersects([1], [2])",
            "true",
        ),
    ]);
}
