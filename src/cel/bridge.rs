//! The way to the functions of Kubernetes' libraries, which the crate kube-cel has: our values there, its
//! values back.

use std::sync::{Arc, LazyLock};

use kube_cel::KubeCelExt;
use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr};
use kube_cel::cel::objects::{Key as TheirKey, OptionalValue};
use kube_cel::cel::{Context, ExecutionError, Value as Theirs};

use super::error::EvaluationError;
use super::value::{Key, Map, Value};

/// The functions, without any variables: a constant that is made when it is first needed.
static FUNCTIONS: LazyLock<Context<'static>> = LazyLock::new(|| Context::default().with_all());

/// Calls a function of a library.
///
/// # Errors
/// What the function says; `no such overload` for values it is not made for.
pub(super) fn call(function: &str, target: Option<&Value>, args: &[Value]) -> Result<Value, EvaluationError> {
    let mut scope = FUNCTIONS.new_inner_scope();
    let mut bind = |name: String, value: &Value| {
        let value = to_theirs(value)?;
        scope.add_variable_from_value(name.clone(), value);
        Ok(IdedExpr { id: 0, expr: Expr::Ident(name) })
    };
    let target = target.map(|target| bind("t".into(), target)).transpose()?.map(Box::new);
    let bound = args.iter().enumerate().map(|(at, arg)| bind(format!("a{at}"), arg));
    let args = bound.collect::<Result<Vec<_>, EvaluationError>>()?;
    let call = CallExpr { func_name: function.to_owned(), target, args };
    let expr = IdedExpr { id: 0, expr: Expr::Call(call) };
    from_theirs(scope.resolve(&expr).map_err(translate)?)
}

/// What stands in brackets when a library's value is shown: of a named format its name.
pub(super) fn debug_name(value: &Value) -> Option<String> {
    let shown = format!("{:?}", to_theirs(value).ok()?);
    let (_, name) = shown.rsplit_once('(')?;
    Some(name.trim_end_matches(')').to_owned())
}

fn translate(error: ExecutionError) -> EvaluationError {
    match error {
        ExecutionError::NoSuchKey(key) => EvaluationError::NoSuchKey(key.to_string()),
        ExecutionError::FunctionError { message, .. } => EvaluationError::Function(message),
        ExecutionError::IndexOutOfBounds(Theirs::Int(at)) => EvaluationError::IndexOutOfBounds(at),
        _ => EvaluationError::NoSuchOverload,
    }
}

fn to_theirs(value: &Value) -> Result<Theirs, EvaluationError> {
    Ok(match value {
        Value::Null => Theirs::Null,
        Value::Bool(flag) => Theirs::Bool(*flag),
        Value::Int(number) => Theirs::Int(*number),
        Value::Uint(number) => Theirs::UInt(*number),
        Value::Double(number) => Theirs::Float(*number),
        Value::String(text) | Value::Type(text) => Theirs::String(Arc::new(text.to_string())),
        Value::Bytes(bytes) => Theirs::Bytes(Arc::new(bytes.to_vec())),
        Value::Duration(duration) => Theirs::Duration(*duration),
        Value::Timestamp(time) => Theirs::Timestamp(time.fixed_offset()),
        Value::List(list) => {
            let items = list.items.iter().map(to_theirs).collect::<Result<Vec<_>, _>>()?;
            Theirs::List(Arc::new(items))
        }
        Value::Map(map) => {
            let entry = |(key, value): (&Key, &Value)| Ok((to_their_key(key), to_theirs(value)?));
            let entries = map.entries.iter().map(entry).collect::<Result<_, EvaluationError>>()?;
            Theirs::Map(kube_cel::cel::objects::Map { map: Arc::new(entries) })
        }
        Value::Optional(Some(value)) => Theirs::Opaque(Arc::new(OptionalValue::of(to_theirs(value)?))),
        Value::Optional(None) => Theirs::Opaque(Arc::new(OptionalValue::none())),
        Value::Opaque(opaque) => Theirs::Opaque(opaque.clone()),
        Value::Host(_) | Value::Invalid(_) => return Err(EvaluationError::NoSuchOverload),
    })
}

fn to_their_key(key: &Key) -> TheirKey {
    match key {
        Key::Bool(flag) => TheirKey::Bool(*flag),
        Key::Int(number) => TheirKey::Int(*number),
        Key::Uint(number) => TheirKey::Uint(*number),
        Key::String(text) => TheirKey::String(Arc::new(text.to_string())),
    }
}

fn from_theirs(value: Theirs) -> Result<Value, EvaluationError> {
    Ok(match value {
        Theirs::Null => Value::Null,
        Theirs::Bool(flag) => Value::Bool(flag),
        Theirs::Int(number) => Value::Int(number),
        Theirs::UInt(number) => Value::Uint(number),
        Theirs::Float(number) => Value::Double(number),
        Theirs::String(text) => Value::from(text.as_str()),
        Theirs::Bytes(bytes) => Value::Bytes(bytes.as_slice().into()),
        Theirs::Duration(duration) => Value::Duration(duration),
        Theirs::Timestamp(time) => Value::Timestamp(time.to_utc()),
        Theirs::List(list) => {
            Value::from(list.iter().cloned().map(from_theirs).collect::<Result<Vec<_>, _>>()?)
        }
        Theirs::Map(map) => {
            let entry = |(key, value): (&TheirKey, &Theirs)| {
                let key = match key {
                    TheirKey::Bool(flag) => Key::Bool(*flag),
                    TheirKey::Int(number) => Key::Int(*number),
                    TheirKey::Uint(number) => Key::Uint(*number),
                    TheirKey::String(text) => Key::String(text.as_str().into()),
                };
                Ok((key, from_theirs(value.clone())?))
            };
            let entries = map.map.iter().map(entry).collect::<Result<_, EvaluationError>>()?;
            Value::Map(Arc::new(Map::of(entries)))
        }
        Theirs::Opaque(opaque) => match opaque.downcast_ref::<OptionalValue>() {
            Some(optional) => {
                let inner = optional.value().cloned().map(from_theirs).transpose()?;
                Value::Optional(inner.map(Arc::new))
            }
            None => Value::Opaque(opaque),
        },
        _ => return Err(EvaluationError::NoSuchOverload),
    })
}
