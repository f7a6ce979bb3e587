//! The `printf` output of a launch, from the records in the `vprintf` buffer.
//!
//! Output is sorted by block (x is the fastest index), then by thread, then by call. So it does not depend on the order of warps.

use warpwave_components::storage::Storage;
use warpwave_ptx::printf::{Argument, BUFFER_BYTES, FIRST_RECORD, HEADER_BYTES, arguments};

use super::printf::{Value, formatted};

/// Maximum number of bytes of a format or a string argument.
const LONGEST: u64 = 64 << 10;

/// The record of one call.
struct Record {
    block: [u32; 3],
    thread: u32,
    format: u64,
    arguments: Vec<u8>,
}

/// Returns the output in the buffer at address `buffer`, and empties the buffer.
pub fn take(storage: &Storage, buffer: u64) -> String {
    let text = text(&|at, bytes| storage.read(at, bytes), storage, buffer);
    let mut used = [0; 4];
    storage.read(buffer, &mut used);
    // Not without records: a write of the host makes the next launch invalidate the L2.
    if used != [0; 4] {
        clear(storage, buffer);
    }
    text
}

/// Empties the buffer at address `buffer`, also of half-written records.
pub fn clear(storage: &Storage, buffer: u64) {
    // Zeros: the first word restarts the allocation, and a size of 0 ends the list of records.
    storage.write(buffer, &vec![0; BUFFER_BYTES as usize]);
}

/// Returns the output in the buffer at address `buffer`. `read` reads the memory, `storage` knows its allocations.
pub fn text(read: &dyn Fn(u64, &mut [u8]), storage: &Storage, buffer: u64) -> String {
    let memory = Reader { read, storage };
    let asked = memory.word(buffer);
    let mut records = records(&memory, buffer, asked.min(BUFFER_BYTES - FIRST_RECORD));
    records.sort_by_key(|record| {
        let [x, y, z] = record.block;
        // A stable sort keeps the calls of a thread in order.
        // Blocks in launch order, x fastest.
        (z, y, x, record.thread)
    });
    let mut out: String = records.iter().map(|record| memory.printed(record)).collect();
    if asked > BUFFER_BYTES - FIRST_RECORD {
        out += &format!("the printf buffer of {BUFFER_BYTES} bytes is full: later output is lost\n");
    }
    out
}

fn records(memory: &Reader<'_>, buffer: u64, used: u32) -> Vec<Record> {
    let mut found = Vec::new();
    let mut at = buffer + u64::from(FIRST_RECORD);
    let end = at + u64::from(used);
    while at + u64::from(HEADER_BYTES) <= end {
        let size = u64::from(memory.word(at));
        // A call without room in the buffer leaves a gap. Its record and all later ones are lost.
        if size < u64::from(HEADER_BYTES) || at + size > end {
            break;
        }
        // Words of a header: size, thread, format (two words), block in x, y, z.
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

    /// The zero-terminated string at an address, at most to the end of its allocation. `None` for an address that is not allocated.
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
            // The caller stores arguments as C's varargs: 4 or 8 bytes, each aligned to its size.
            at = at.next_multiple_of(bytes);
            let mut value = [0; 8];
            if let Some(found) = record.arguments.get(at..at + bytes) {
                value[..bytes].copy_from_slice(found);
            }
            at += bytes;
            let bits = u64::from_le_bytes(value);
            values.push(Value {
                bits,
                // Only `%s` uses the text. A value that is no allocated address has none.
                text: self.string(bits),
            });
        }
        formatted(&format, &values)
    }
}
