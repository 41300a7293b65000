//! Protobuf's wire format: numbered values, one after the other (gogo's `Unmarshal` and `skip`).

use super::error::ProtobufError;

/// One value as it lies in a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RawField<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
    Group,
}

/// Reads the values of one message.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    /// The Go name of the message, for errors.
    message: &'a str,
}

impl<'a> RawField<'a> {
    /// The varint of a field of that name.
    pub(super) fn varint(self, field: &str) -> Result<u64, ProtobufError> {
        match self {
            RawField::Varint(value) => Ok(value),
            other => Err(other.wrong(field)),
        }
    }

    /// The eight bytes of a field of that name.
    pub(super) fn fixed64(self, field: &str) -> Result<u64, ProtobufError> {
        match self {
            RawField::Fixed64(value) => Ok(value),
            other => Err(other.wrong(field)),
        }
    }

    /// The text, bytes or message of a field of that name.
    pub(super) fn bytes(self, field: &str) -> Result<&'a [u8], ProtobufError> {
        match self {
            RawField::Bytes(bytes) => Ok(bytes),
            other => Err(other.wrong(field)),
        }
    }

    /// Go reads strings as they come; JSON has no other than UTF-8.
    pub(super) fn text(self, field: &str) -> Result<String, ProtobufError> {
        Ok(String::from_utf8_lossy(self.bytes(field)?).into_owned())
    }

    fn wrong(self, field: &str) -> ProtobufError {
        let wire_type = match self {
            RawField::Varint(_) => 0,
            RawField::Fixed64(_) => 1,
            RawField::Bytes(_) => 2,
            RawField::Group => 3,
            RawField::Fixed32 => 5,
        };
        ProtobufError::WrongWireType { wire_type, field: go_field(field) }
    }
}

/// The Go name of a field: its JSON name, exported.
fn go_field(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], message: &'a str) -> Reader<'a> {
        Reader { rest: bytes, message }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next value and its number; None at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u32, RawField<'a>)>, ProtobufError> {
        if self.is_at_end() {
            return Ok(None);
        }
        let (number, wire_type) = self.tag()?;
        if wire_type == 4 {
            return Err(ProtobufError::EndGroup(self.message.to_owned()));
        }
        let Ok(positive @ 1..) = u32::try_from(number) else {
            return Err(ProtobufError::IllegalTag { message: self.message.to_owned(), number, wire_type });
        };
        Ok(Some((positive, self.value(wire_type)?)))
    }

    /// A number as it stands, in a packed list.
    pub(super) fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ProtobufError::IntegerOverflow)
    }

    /// Eight bytes as they stand, in a packed list.
    pub(super) fn fixed64(&mut self) -> Result<u64, ProtobufError> {
        let bytes = self.take(8)?.try_into().expect("eight were taken");
        Ok(u64::from_le_bytes(bytes))
    }

    /// The field number is an `int32` in gogo's decoders, whatever does not fit is cut off.
    fn tag(&mut self) -> Result<(i32, u8), ProtobufError> {
        let tag = self.varint()?;
        Ok(((tag >> 3) as i32, (tag & 7) as u8))
    }

    fn value(&mut self, wire_type: u8) -> Result<RawField<'a>, ProtobufError> {
        Ok(match wire_type {
            0 => RawField::Varint(self.varint()?),
            1 => RawField::Fixed64(self.fixed64()?),
            2 => {
                let length = i64::try_from(self.varint()?).map_err(|_| ProtobufError::NegativeLength)?;
                RawField::Bytes(
                    self.take(usize::try_from(length).map_err(|_| ProtobufError::UnexpectedEnd)?)?,
                )
            }
            3 => {
                self.skip_group()?;
                RawField::Group
            }
            4 => return Err(ProtobufError::UnexpectedEndGroup),
            5 => {
                self.take(4)?;
                RawField::Fixed32
            }
            other => return Err(ProtobufError::IllegalWireType(other)),
        })
    }

    /// To the end of a group that has begun, groups in it included; without recursion, so any depth will do.
    fn skip_group(&mut self) -> Result<(), ProtobufError> {
        let mut open = 1_usize;
        while open > 0 {
            match self.tag()?.1 {
                3 => open += 1,
                4 => open -= 1,
                wire_type => {
                    self.value(wire_type)?;
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtobufError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(ProtobufError::UnexpectedEnd)?;
        self.rest = rest;
        Ok(taken)
    }
}

/// The texts, bytes and messages of a message with their numbers, of one that has no schema here.
///
/// # Errors
/// gogo's.
pub fn pieces(message: &[u8]) -> Result<Vec<(u32, &[u8])>, ProtobufError> {
    let (mut reader, mut pieces) = (Reader::new(message, "message"), Vec::new());
    while let Some((number, raw)) = reader.next()? {
        if let RawField::Bytes(bytes) = raw {
            pieces.push((number, bytes));
        }
    }
    Ok(pieces)
}

/// Appends a text, bytes, or a message that is there already.
pub fn write_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    write_tag(out, number, 2);
    write_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a message that `write` writes in place. What it writes is moved when its length takes more than
/// the one byte that is kept for it.
pub fn write_nested(out: &mut Vec<u8>, number: u32, write: impl FnOnce(&mut Vec<u8>)) {
    write_tag(out, number, 2);
    let start = out.len();
    out.push(0);
    write(out);
    let length = out.len() - start - 1;
    match u8::try_from(length) {
        Ok(short @ ..0x80) => out[start] = short,
        _ => {
            let mut varint = Vec::with_capacity(10);
            write_varint(&mut varint, length as u64);
            out.splice(start..=start, varint);
        }
    }
}

/// Appends a number; negative ones take ten bytes, as everywhere.
pub fn write_int(out: &mut Vec<u8>, number: u32, value: i64) {
    write_tag(out, number, 0);
    write_varint(out, value as u64);
}

/// Appends a floating point number.
pub fn write_double(out: &mut Vec<u8>, number: u32, value: f64) {
    write_tag(out, number, 1);
    out.extend_from_slice(&value.to_le_bytes());
}

fn write_tag(out: &mut Vec<u8>, number: u32, wire_type: u8) {
    write_varint(out, u64::from(number) << 3 | u64::from(wire_type));
}

fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
