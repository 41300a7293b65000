//! The functions of Kubernetes' libraries (`k8s.io/apiserver/pkg/cel/library`): URLs, quantities, addresses
//! and networks, versions, formats, JSON patches.

use std::cmp::Ordering;
use std::net::IpAddr;
use std::sync::Arc;

use apimachinery::quantity::{Format, Quantity};

use super::error::EvaluationError;
use super::named_format::NamedFormat;
use super::net::{self, Cidr};
use super::opaque::Opaque;
use super::semver::Semver;
use super::strings;
use super::url::{self, Url};
use super::value::{EvaluationResult, Value};

/// A function of no value.
pub(super) fn global(function: &str, args: &[Value]) -> EvaluationResult {
    if let ([], Some(name)) = (args, function.strip_prefix("format.")) {
        let format = NamedFormat::named(name).map(|format| Value::Opaque(Opaque::Format(format)));
        return format.ok_or(EvaluationError::NoSuchOverload);
    }
    match args {
        [Value::String(text)] => of_text(function, text),
        [Value::String(text), Value::Bool(tolerantly)] => of_version_text(function, text, *tolerantly),
        [Value::Opaque(of)] => of_opaque(function, of),
        _ => Err(EvaluationError::NoSuchOverload),
    }
}

fn of_text(function: &str, text: &str) -> EvaluationResult {
    Ok(match function {
        "url" => {
            let url = Url::parse(text);
            let wrong = |error| told(format!("URL parse error during conversion from string: {error}"));
            Value::Opaque(Opaque::Url(Arc::new(url.map_err(wrong)?)))
        }
        "isURL" => url::check(text).is_ok().into(),
        "ip" => Value::Opaque(Opaque::Ip(net::parse_ip(text).map_err(told)?)),
        "isIP" => net::parse_ip(text).is_ok().into(),
        "ip.isCanonical" => (net::parse_ip(text).map_err(told)?.to_string() == text).into(),
        "cidr" => Value::Opaque(Opaque::Cidr(cidr(text)?)),
        "isCIDR" => net::parse_cidr(text).is_ok().into(),
        "quantity" => {
            let quantity = Quantity::parse(text).map_err(|error| told(error.to_string()))?;
            of_quantity(quantity)
        }
        "isQuantity" => Quantity::parse(text).is_ok().into(),
        "semver" | "isSemver" => return of_version_text(function, text, false),
        "format.named" => {
            let format = NamedFormat::named(text).map(|format| Value::Opaque(Opaque::Format(format)));
            Value::Optional(format.map(Arc::new))
        }
        "jsonpatch.escapeKey" => Value::from(text.replace('~', "~0").replace('/', "~1").as_str()),
        "strings.quote" => Value::from(strings::quote(text).as_str()),
        _ => return Err(EvaluationError::NoSuchOverload),
    })
}

fn told(message: impl Into<String>) -> EvaluationError {
    EvaluationError::Function(message.into())
}

fn cidr(text: &str) -> Result<Cidr, EvaluationError> {
    let wrong = |error| told(format!("network address parse error during conversion from string: {error}"));
    net::parse_cidr(text).map_err(wrong)
}

fn of_quantity(quantity: Quantity) -> Value {
    Value::Opaque(Opaque::Quantity(Arc::new(quantity)))
}

fn of_version_text(function: &str, text: &str, tolerantly: bool) -> EvaluationResult {
    let found = if tolerantly { Semver::parse_tolerantly(text) } else { Semver::parse(text) };
    match function {
        "isSemver" => Ok(found.is_ok().into()),
        "semver" => found.map(|version| Value::Opaque(Opaque::Semver(Arc::new(version)))).map_err(told),
        _ => Err(EvaluationError::NoSuchOverload),
    }
}

fn of_opaque(function: &str, of: &Opaque) -> EvaluationResult {
    match (function, of) {
        ("string", Opaque::Ip(address)) => Ok(Value::from(address.to_string().as_str())),
        ("string", Opaque::Cidr(network)) => Ok(Value::from(network.to_string().as_str())),
        ("sign", Opaque::Quantity(quantity)) => Ok(Value::Int(quantity.sign().into())),
        _ => Err(EvaluationError::NoSuchOverload),
    }
}

/// A function of a library's value.
pub(super) fn member(function: &str, of: &Opaque, args: &[Value]) -> EvaluationResult {
    match of {
        Opaque::Url(url) => of_url(function, url, args),
        Opaque::Quantity(quantity) => of_a_quantity(function, quantity, args),
        Opaque::Ip(address) => of_ip(function, *address, args),
        Opaque::Cidr(network) => of_cidr(function, *network, args),
        Opaque::Semver(version) => of_version(function, version, args),
        Opaque::Format(format) => match (function, args) {
            ("validate", [Value::String(text)]) => Ok(validated(format, text)),
            _ => Err(EvaluationError::NoSuchOverload),
        },
    }
}

fn validated(format: &NamedFormat, text: &str) -> Value {
    let errors = format.validate(text);
    let list = || Value::from(errors.iter().map(|error| Value::from(error.as_str())).collect::<Vec<_>>());
    Value::Optional((!errors.is_empty()).then(|| Arc::new(list())))
}

fn of_url(function: &str, url: &Url, args: &[Value]) -> EvaluationResult {
    let text = match (function, args) {
        ("getScheme", []) => url.scheme(),
        ("getHost", []) => url.host(),
        ("getHostname", []) => url.hostname(),
        ("getPort", []) => url.port(),
        ("getEscapedPath", []) => url.escaped_path(),
        ("getQuery", []) => {
            let texts = |values: Vec<String>| {
                Value::from(values.iter().map(|value| Value::from(value.as_str())).collect::<Vec<_>>())
            };
            return Ok(Value::map(url.query().into_iter().map(|(key, values)| (key.into(), texts(values)))));
        }
        _ => return Err(EvaluationError::NoSuchOverload),
    };
    Ok(Value::from(text))
}

fn of_a_quantity(function: &str, of: &Quantity, args: &[Value]) -> EvaluationResult {
    let other = match args {
        [] => return alone(function, of),
        [Value::Opaque(Opaque::Quantity(other))] => Quantity::clone(other),
        [Value::Int(number)] if matches!(function, "add" | "sub") => {
            Quantity::new(*number, Format::DecimalExponent)
        }
        _ => return Err(EvaluationError::NoSuchOverload),
    };
    let mut result = of.clone();
    match function {
        "add" => result.add(&other),
        "sub" => result.sub(&other),
        _ => return compared(function, of.cmp(&other)),
    }
    Ok(of_quantity(result))
}

fn alone(function: &str, of: &Quantity) -> EvaluationResult {
    match function {
        "isInteger" => Ok(of.as_i64().is_some().into()),
        "asInteger" => {
            let wrong = || told("cannot convert value to integer".to_owned());
            of.as_i64().map(Value::Int).ok_or_else(wrong)
        }
        "asApproximateFloat" => Ok(Value::Double(of.as_approximate_f64())),
        "sign" => Ok(Value::Int(of.sign().into())),
        _ => Err(EvaluationError::NoSuchOverload),
    }
}

fn compared(function: &str, found: Ordering) -> EvaluationResult {
    match function {
        "isLessThan" => Ok(found.is_lt().into()),
        "isGreaterThan" => Ok(found.is_gt().into()),
        "compareTo" => Ok(Value::Int(found as i64)),
        _ => Err(EvaluationError::NoSuchOverload),
    }
}

fn of_ip(function: &str, address: IpAddr, args: &[Value]) -> EvaluationResult {
    Ok(match (function, args) {
        ("family", []) => Value::Int(if address.is_ipv4() { 4 } else { 6 }),
        ("isUnspecified", []) => address.is_unspecified().into(),
        ("isLoopback", []) => address.is_loopback().into(),
        ("isLinkLocalMulticast", []) => net::is_link_local_multicast(address).into(),
        ("isLinkLocalUnicast", []) => net::is_link_local_unicast(address).into(),
        ("isGlobalUnicast", []) => net::is_global_unicast(address).into(),
        _ => return Err(EvaluationError::NoSuchOverload),
    })
}

fn of_cidr(function: &str, network: Cidr, args: &[Value]) -> EvaluationResult {
    Ok(match (function, args) {
        ("containsIP", [Value::Opaque(Opaque::Ip(address))]) => network.contains(*address).into(),
        ("containsIP", [Value::String(text)]) => {
            // Upstream does not tell what is wrong with the text.
            let address = net::parse_ip(text).map_err(|_| EvaluationError::NoSuchOverload)?;
            network.contains(address).into()
        }
        ("containsCIDR", [Value::Opaque(Opaque::Cidr(other))]) => network.covers(*other).into(),
        ("containsCIDR", [Value::String(text)]) => network.covers(cidr(text)?).into(),
        ("ip", []) => Value::Opaque(Opaque::Ip(network.address)),
        ("masked", []) => Value::Opaque(Opaque::Cidr(network.masked())),
        ("prefixLength", []) => Value::Int(network.bits.into()),
        _ => return Err(EvaluationError::NoSuchOverload),
    })
}

fn of_version(function: &str, version: &Semver, args: &[Value]) -> EvaluationResult {
    let [major, minor, patch] = version.numbers.map(|number| Ok(Value::Int(number as i64)));
    match (function, args) {
        ("major", []) => major,
        ("minor", []) => minor,
        ("patch", []) => patch,
        (_, [Value::Opaque(Opaque::Semver(other))]) => compared(function, version.compare(other)),
        _ => Err(EvaluationError::NoSuchOverload),
    }
}
