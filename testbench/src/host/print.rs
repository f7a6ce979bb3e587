//! What a launch has printed: the records that `vprintf` left in its buffer, as text.
//!
//! The order is by block (x first, then y, then z), then by thread, then by call. It depends on the launch alone, not on the order of
//! warps.

use warpwave_components::storage::Storage;
use warpwave_ptx::printf::{Argument, BUFFER_BYTES, FIRST_RECORD, HEADER_BYTES, arguments};

use super::printf::{Value, formatted};

/// Most bytes of a format or of a string that is printed.
const LONGEST: u64 = 64 << 10;

/// One call.
struct Record {
    block: [u32; 3],
    thread: u32,
    format: u64,
    arguments: Vec<u8>,
}

/// What lies in the buffer at this address, and an empty buffer for the next launch.
pub fn take(storage: &Storage, buffer: u64) -> String {
    let text = text(&|at, bytes| storage.read(at, bytes), storage, buffer);
    if !text.is_empty() {
        let mut used = [0; 4];
        storage.read(buffer, &mut used);
        let end = u32::from_le_bytes(used).min(BUFFER_BYTES - FIRST_RECORD) + FIRST_RECORD;
        storage.write(buffer, &vec![0; end as usize]);
    }
    text
}

/// What lies in the buffer at this address of the memory that `read` reads; `storage` says which addresses are allocated.
pub fn text(read: &dyn Fn(u64, &mut [u8]), storage: &Storage, buffer: u64) -> String {
    let memory = Reader { read, storage };
    let asked = memory.word(buffer);
    let mut records = records(&memory, buffer, asked.min(BUFFER_BYTES - FIRST_RECORD));
    records.sort_by_key(|record| {
        let [x, y, z] = record.block;
        (z, y, x, record.thread)
    });
    let mut out: String = records.iter().map(|record| memory.printed(record)).collect();
    if asked > BUFFER_BYTES - FIRST_RECORD {
        out += &format!("the printf buffer of {BUFFER_BYTES} bytes is full: what came later is lost\n");
    }
    out
}

fn records(memory: &Reader<'_>, buffer: u64, used: u32) -> Vec<Record> {
    let mut found = Vec::new();
    let mut at = buffer + u64::from(FIRST_RECORD);
    let end = at + u64::from(used);
    while at + u64::from(HEADER_BYTES) <= end {
        let size = u64::from(memory.word(at));
        // A call that found no room has left a gap: it and what follows are lost.
        if size < u64::from(HEADER_BYTES) || at + size > end {
            break;
        }
        let word = |n: u64| memory.word(at + 4 * n);
        let mut arguments = vec![0; (size - u64::from(HEADER_BYTES)) as usize];
        (memory.read)(at + u64::from(HEADER_BYTES), &mut arguments);
        found.push(Record {
            block: [word(4), word(5), word(6)],
            thread: word(1),
            format: u64::from(word(3)) << 32 | u64::from(word(2)),
            arguments,
        });
        at += size;
    }
    found
}

/// Device memory as the host sees it.
struct Reader<'a> {
    read: &'a dyn Fn(u64, &mut [u8]),
    storage: &'a Storage,
}

impl Reader<'_> {
    fn word(&self, at: u64) -> u32 {
        let mut bytes = [0; 4];
        (self.read)(at, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    /// The bytes at an address up to a zero, as far as they are allocated; nothing for an address that is not.
    fn string(&self, at: u64) -> Option<Vec<u8>> {
        let (first, bytes) = self.storage.allocation_of(at, 1)?;
        let mut found = vec![0; (first + bytes - at).min(LONGEST) as usize];
        (self.read)(at, &mut found);
        let end = found.iter().position(|&byte| byte == 0).unwrap_or(found.len());
        found.truncate(end);
        Some(found)
    }

    fn printed(&self, record: &Record) -> String {
        let format = self.string(record.format).unwrap_or_default();
        let mut at: usize = 0;
        let mut values = Vec::new();
        for argument in arguments(&format) {
            let bytes: usize = if argument == Argument::Wide { 8 } else { 4 };
            at = at.next_multiple_of(bytes);
            let mut value = [0; 8];
            if let Some(found) = record.arguments.get(at..at + bytes) {
                value[..bytes].copy_from_slice(found);
            }
            at += bytes;
            let bits = u64::from_le_bytes(value);
            values.push(Value {
                bits,
                text: self.string(bits),
            });
        }
        formatted(&format, &values)
    }
}
