//! The wire format of protobuf: numbers of fields, and what stands behind them.

use super::Malformed;

/// What stands behind a field's number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wire<'a> {
    /// An integer or a boolean.
    Varint(u64),
    /// A double.
    Fixed64(u64),
    /// A string, bytes, or a message.
    Bytes(&'a [u8]),
    /// Nothing that Kubernetes uses.
    Fixed32,
}

impl<'a> Wire<'a> {
    /// What a string, bytes or a message holds.
    pub fn bytes(self) -> Result<&'a [u8], Malformed> {
        match self {
            Wire::Bytes(bytes) => Ok(bytes),
            _ => Err(wrong_type()),
        }
    }

    /// An integer; negative ones are written as their two's complement.
    pub fn integer(self) -> Result<i64, Malformed> {
        match self {
            Wire::Varint(value) => Ok(value as i64),
            _ => Err(wrong_type()),
        }
    }

    /// A double.
    pub fn double(self) -> Result<f64, Malformed> {
        match self {
            Wire::Fixed64(bits) => Ok(f64::from_bits(bits)),
            _ => Err(wrong_type()),
        }
    }
}

/// Reads the fields of one message.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Over the bytes of a message.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    fn field(&mut self) -> Result<(u32, Wire<'a>), Malformed> {
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| unexpected_end())?;
        let wire = match tag & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => {
                let bytes = self.take(8)?.try_into().expect("eight bytes were taken");
                Wire::Fixed64(u64::from_le_bytes(bytes))
            }
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| unexpected_end())?;
                Wire::Bytes(self.take(length)?)
            }
            5 => {
                self.take(4)?;
                Wire::Fixed32
            }
            other => return Err(Malformed(format!("proto: illegal wireType {other}"))),
        };
        Ok((number, wire))
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed("proto: integer overflow".into()))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or_else(unexpected_end)?;
        self.rest = rest;
        Ok(taken)
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<(u32, Wire<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

fn unexpected_end() -> Malformed {
    Malformed("unexpected EOF".into())
}

fn wrong_type() -> Malformed {
    Malformed("proto: wrong wireType for a field".into())
}
