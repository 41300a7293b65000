//! Protocol buffers as far as etcd's messages need them (`proto3`): a message is a struct, each field says
//! its number, and what is not known is skipped.

use bytes::{Buf, Bytes};

/// How deep messages may be in each other, as protobuf's own readers have it.
const MAX_DEPTH: u32 = 100;

/// Bytes that are no message, in words for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MalformedMessage(pub &'static str);

/// A message.
pub trait ProtoMessage: Default {
    /// Writes all fields that are not as they are by default.
    fn write(&self, out: &mut Vec<u8>);

    /// Takes one field, if it is known.
    ///
    /// # Errors
    /// It is not what it should be.
    fn take(&mut self, number: u32, value: WireValue, depth: u32) -> Result<(), MalformedMessage>;

    /// As bytes.
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    /// Reads all fields.
    ///
    /// # Errors
    /// Bytes that are no such message.
    fn decode(bytes: Bytes) -> Result<Self, MalformedMessage> {
        decode_at(bytes, 0)
    }
}

/// What stands in a field.
#[derive(Debug, Clone)]
pub enum WireValue {
    /// A number or a bool.
    Number(u64),
    /// Bytes, a text or a message.
    Bytes(Bytes),
    /// What no message of etcd has.
    Other,
}

/// What may stand in a field of a message.
pub trait MessageField: Sized {
    /// Writes it, unless it is as it is by default.
    fn write_field(&self, number: u32, out: &mut Vec<u8>);

    /// Takes what is read.
    ///
    /// # Errors
    /// It is not what it should be.
    fn take_field(&mut self, value: WireValue, depth: u32) -> Result<(), MalformedMessage>;
}

fn decode_at<M: ProtoMessage>(mut bytes: Bytes, depth: u32) -> Result<M, MalformedMessage> {
    if depth > MAX_DEPTH {
        return Err(MalformedMessage("messages are nested too deeply"));
    }
    let mut message = M::default();
    while bytes.has_remaining() {
        let tag = varint(&mut bytes)?;
        let number = u32::try_from(tag >> 3).map_err(|_| MalformedMessage("a field has no number"))?;
        if number == 0 {
            return Err(MalformedMessage("illegal tag 0"));
        }
        let value = value(tag & 7, &mut bytes)?;
        message.take(number, value, depth)?;
    }
    Ok(message)
}

fn value(kind: u64, bytes: &mut Bytes) -> Result<WireValue, MalformedMessage> {
    match kind {
        0 => varint(bytes).map(WireValue::Number),
        1 => skip(8, bytes),
        2 => {
            let length = usize::try_from(varint(bytes)?).map_err(|_| MalformedMessage("unexpected EOF"))?;
            if length > bytes.len() {
                return Err(MalformedMessage("unexpected EOF"));
            }
            Ok(WireValue::Bytes(bytes.split_to(length)))
        }
        5 => skip(4, bytes),
        _ => Err(MalformedMessage("illegal wireType")),
    }
}

fn skip(count: usize, bytes: &mut Bytes) -> Result<WireValue, MalformedMessage> {
    if bytes.len() < count {
        return Err(MalformedMessage("unexpected EOF"));
    }
    bytes.advance(count);
    Ok(WireValue::Other)
}

fn varint(bytes: &mut Bytes) -> Result<u64, MalformedMessage> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = bytes.try_get_u8().map_err(|_| MalformedMessage("unexpected EOF"))?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(MalformedMessage("integer overflow"))
}

fn write_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn write_number(number: u32, value: u64, out: &mut Vec<u8>) {
    write_varint(u64::from(number) << 3, out);
    write_varint(value, out);
}

fn write_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    write_varint(u64::from(number) << 3 | 2, out);
    write_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Writes a message behind its length, which is known when it is written.
fn write_message<M: ProtoMessage>(number: u32, message: &M, out: &mut Vec<u8>) {
    write_varint(u64::from(number) << 3 | 2, out);
    let start = out.len();
    message.write(out);
    let mut length = Vec::with_capacity(5);
    write_varint((out.len() - start) as u64, &mut length);
    out.splice(start..start, length);
}

fn number_of(value: WireValue) -> Result<u64, MalformedMessage> {
    match value {
        WireValue::Number(number) => Ok(number),
        _ => Err(MalformedMessage("wrong wireType")),
    }
}

fn bytes_of(value: WireValue) -> Result<Bytes, MalformedMessage> {
    match value {
        WireValue::Bytes(bytes) => Ok(bytes),
        _ => Err(MalformedMessage("wrong wireType")),
    }
}

impl MessageField for i64 {
    fn write_field(&self, number: u32, out: &mut Vec<u8>) {
        if *self != 0 {
            write_number(number, self.cast_unsigned(), out);
        }
    }

    fn take_field(&mut self, value: WireValue, _depth: u32) -> Result<(), MalformedMessage> {
        *self = number_of(value)?.cast_signed();
        Ok(())
    }
}

impl MessageField for u64 {
    fn write_field(&self, number: u32, out: &mut Vec<u8>) {
        if *self != 0 {
            write_number(number, *self, out);
        }
    }

    fn take_field(&mut self, value: WireValue, _depth: u32) -> Result<(), MalformedMessage> {
        *self = number_of(value)?;
        Ok(())
    }
}

impl MessageField for bool {
    fn write_field(&self, number: u32, out: &mut Vec<u8>) {
        if *self {
            write_number(number, 1, out);
        }
    }

    fn take_field(&mut self, value: WireValue, _depth: u32) -> Result<(), MalformedMessage> {
        *self = number_of(value)? != 0;
        Ok(())
    }
}

impl MessageField for Bytes {
    fn write_field(&self, number: u32, out: &mut Vec<u8>) {
        if !self.is_empty() {
            write_bytes(number, self, out);
        }
    }

    fn take_field(&mut self, value: WireValue, _depth: u32) -> Result<(), MalformedMessage> {
        *self = bytes_of(value)?;
        Ok(())
    }
}

impl MessageField for String {
    fn write_field(&self, number: u32, out: &mut Vec<u8>) {
        if !self.is_empty() {
            write_bytes(number, self.as_bytes(), out);
        }
    }

    fn take_field(&mut self, value: WireValue, _depth: u32) -> Result<(), MalformedMessage> {
        let bytes = bytes_of(value)?.to_vec();
        *self =
            String::from_utf8(bytes).map_err(|_| MalformedMessage("string field contains invalid UTF-8"))?;
        Ok(())
    }
}

/// Enums that may come several times: packed or one by one.
impl MessageField for Vec<i64> {
    fn write_field(&self, number: u32, out: &mut Vec<u8>) {
        let mut packed = Vec::new();
        self.iter().for_each(|value| write_varint(value.cast_unsigned(), &mut packed));
        if !packed.is_empty() {
            write_bytes(number, &packed, out);
        }
    }

    fn take_field(&mut self, value: WireValue, _depth: u32) -> Result<(), MalformedMessage> {
        match value {
            WireValue::Number(number) => self.push(number.cast_signed()),
            other => {
                let mut packed = bytes_of(other)?;
                while packed.has_remaining() {
                    self.push(varint(&mut packed)?.cast_signed());
                }
            }
        }
        Ok(())
    }
}

impl MessageField for Vec<String> {
    fn write_field(&self, number: u32, out: &mut Vec<u8>) {
        self.iter().for_each(|text| write_bytes(number, text.as_bytes(), out));
    }

    fn take_field(&mut self, value: WireValue, depth: u32) -> Result<(), MalformedMessage> {
        let mut text = String::new();
        text.take_field(value, depth)?;
        self.push(text);
        Ok(())
    }
}

impl MessageField for Vec<Bytes> {
    fn write_field(&self, number: u32, out: &mut Vec<u8>) {
        self.iter().for_each(|bytes| write_bytes(number, bytes, out));
    }

    fn take_field(&mut self, value: WireValue, _depth: u32) -> Result<(), MalformedMessage> {
        self.push(bytes_of(value)?);
        Ok(())
    }
}

/// A number that says, by being there, which of several is meant.
impl MessageField for Option<i64> {
    fn write_field(&self, number: u32, out: &mut Vec<u8>) {
        if let Some(value) = self {
            write_number(number, value.cast_unsigned(), out);
        }
    }

    fn take_field(&mut self, value: WireValue, _depth: u32) -> Result<(), MalformedMessage> {
        *self = Some(number_of(value)?.cast_signed());
        Ok(())
    }
}

/// Bytes that say, by being there, which of several is meant.
impl MessageField for Option<Bytes> {
    fn write_field(&self, number: u32, out: &mut Vec<u8>) {
        if let Some(bytes) = self {
            write_bytes(number, bytes, out);
        }
    }

    fn take_field(&mut self, value: WireValue, _depth: u32) -> Result<(), MalformedMessage> {
        *self = Some(bytes_of(value)?);
        Ok(())
    }
}

/// A message in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nested<M>(pub Option<Box<M>>);

impl<M> Nested<M> {
    /// With one in it.
    pub fn some(message: M) -> Nested<M> {
        Nested(Some(Box::new(message)))
    }
}

impl<M> Default for Nested<M> {
    fn default() -> Nested<M> {
        Nested(None)
    }
}

impl<M: ProtoMessage> MessageField for Nested<M> {
    fn write_field(&self, number: u32, out: &mut Vec<u8>) {
        if let Some(message) = &self.0 {
            write_message(number, &**message, out);
        }
    }

    fn take_field(&mut self, value: WireValue, depth: u32) -> Result<(), MalformedMessage> {
        self.0 = Some(Box::new(decode_at(bytes_of(value)?, depth + 1)?));
        Ok(())
    }
}

/// Messages in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeated<M>(pub Vec<M>);

impl<M> Default for Repeated<M> {
    fn default() -> Repeated<M> {
        Repeated(Vec::new())
    }
}

impl<M: ProtoMessage> MessageField for Repeated<M> {
    fn write_field(&self, number: u32, out: &mut Vec<u8>) {
        self.0.iter().for_each(|message| write_message(number, message, out));
    }

    fn take_field(&mut self, value: WireValue, depth: u32) -> Result<(), MalformedMessage> {
        self.0.push(decode_at(bytes_of(value)?, depth + 1)?);
        Ok(())
    }
}

/// Declares messages: fields with their types and numbers.
macro_rules! messages {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($(#[$about:meta])* $field:ident: $kind:ty = $number:literal,)* }
    )*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$about])* #[allow(missing_docs)] pub $field: $kind,)*
        }

        impl $crate::wire::ProtoMessage for $name {
            #[allow(unused_variables)]
            fn write(&self, out: &mut Vec<u8>) {
                $($crate::wire::MessageField::write_field(&self.$field, $number, out);)*
            }

            #[allow(unused_variables)]
            fn take(
                &mut self,
                number: u32,
                value: $crate::wire::WireValue,
                depth: u32,
            ) -> Result<(), $crate::wire::MalformedMessage> {
                match number {
                    $($number => $crate::wire::MessageField::take_field(&mut self.$field, value, depth),)*
                    _ => Ok(()),
                }
            }
        }
    )*};
}

pub(crate) use messages;
