//! The messages of OTLP traces and logs, as far as the protobuf runtime validates them: which of their
//! fields hold text, which hold messages.

use crate::wire::{Field, Fields, Value};

/// Messages inside each other; the runtime allows a hundred.
pub const MAX_DEPTH: u32 = 64;

/// What a length-delimited field holds.
#[derive(Clone, Copy)]
pub enum Kind {
    /// Bytes, or what no version known here defines.
    Bytes,
    Text,
    Message(&'static Message),
}

/// The length-delimited fields of a message by their number, none of which is higher.
pub struct Message([Kind; 16]);

impl Message {
    const fn new(fields: &[(usize, Kind)]) -> Self {
        let mut kinds = [Kind::Bytes; 16];
        let mut next = 0;
        while next < fields.len() {
            kinds[fields[next].0] = fields[next].1;
            next += 1;
        }
        Self(kinds)
    }

    /// `None` unless the value of a field of this message is valid, to the bottom.
    #[inline]
    pub fn check(&self, field: &Field, depth: u32) -> Option<()> {
        let Value::Bytes(value) = field.value else { return Some(()) };
        match self.0.get(field.number as usize) {
            Some(Kind::Text) => is_text(value).then_some(()),
            Some(Kind::Message(message)) => message.check_all(value, depth.checked_sub(1)?),
            _ => Some(()),
        }
    }

    /// `None` unless `data` is such a message.
    pub fn check_all(&self, data: &[u8], depth: u32) -> Option<()> {
        let mut fields = Fields(data);
        while !fields.is_empty() {
            self.check(&fields.next_field()?, depth)?;
        }
        Some(())
    }
}

/// Whether it is UTF-8; most texts are short and ASCII.
#[inline(always)]
fn is_text(value: &[u8]) -> bool {
    (value.len() < 64 && value.iter().all(u8::is_ascii)) || str::from_utf8(value).is_ok()
}

use Kind::{Message as Of, Text};

static ANY_VALUE: Message = Message::new(&[(1, Text), (5, Of(&ARRAY)), (6, Of(&KEY_VALUES))]);
static ARRAY: Message = Message::new(&[(1, Of(&ANY_VALUE))]);
static KEY_VALUES: Message = Message::new(&[(1, Of(&KEY_VALUE))]);
static KEY_VALUE: Message = Message::new(&[(1, Text), (2, Of(&ANY_VALUE))]);
static ENTITY: Message = Message::new(&[(1, Text), (2, Text), (3, Text), (4, Text)]);
static RESOURCE: Message = Message::new(&[(1, Of(&KEY_VALUE)), (3, Of(&ENTITY))]);
static SCOPE: Message = Message::new(&[(1, Text), (2, Text), (3, Of(&KEY_VALUE))]);
static EVENT: Message = Message::new(&[(2, Text), (3, Of(&KEY_VALUE))]);
static LINK: Message = Message::new(&[(3, Text), (4, Of(&KEY_VALUE))]);
static STATUS: Message = Message::new(&[(2, Text)]);

pub static SPAN: Message = Message::new(&[
    (3, Text),
    (5, Text),
    (9, Of(&KEY_VALUE)),
    (11, Of(&EVENT)),
    (13, Of(&LINK)),
    (15, Of(&STATUS)),
]);
pub static LOG_RECORD: Message =
    Message::new(&[(3, Text), (5, Of(&ANY_VALUE)), (6, Of(&KEY_VALUE)), (12, Text)]);

/// ExportTraceServiceRequest and ExportLogsServiceRequest, without the repeated field that a request
/// consists of; likewise ResourceSpans and ResourceLogs, ScopeSpans and ScopeLogs.
pub static REQUEST: Message = Message::new(&[]);
pub static OF_RESOURCE: Message = Message::new(&[(1, Of(&RESOURCE)), (3, Text)]);
pub static OF_SCOPE: Message = Message::new(&[(1, Of(&SCOPE)), (3, Text)]);
