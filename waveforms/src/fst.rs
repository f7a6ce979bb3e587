//! Dumps in FST, GTKWave's compressed binary format.
//!
//! An FST file has the same scopes, signals, times and values as a VCD of the run. It is smaller and opens faster. The same run gives the
//! same bytes. If the run breaks off, the file is complete up to its last block.
//!
//! The file has no tables of state names: GTKWave would ignore the names and colours of its save file for a signal with a table.
//!
//! The crate `wavefst` writes the header. Module `block` writes the changes.

mod block;

use std::io::{self, Cursor, Seek, SeekFrom, Write};

use wavefst::types::FstByteOrder;
use wavefst::{FstWriter, GeomEntry, Header, HierarchyCompression, ScopeType, TimeCompression, VarDir, VarType};

use crate::recorder::Change;
use crate::signal::{Kind, Scope, Signal};
use crate::sink::Sink;
use crate::vcd::TimeAxis;
use block::Block;

/// Least changes per compressed block.
const BLOCK_CHANGES: usize = 250_000;

/// Least changes per compressed block for each bit of all signals. A block begins with a digit for each bit, so blocks of many signals
/// would hold little else.
const BLOCK_CHANGES_PER_BIT: usize = 2;

/// Width of the count of cycles, in bits.
const CYCLE_BITS: u32 = 48;

// Rows of a block.
const CLOCK: u32 = 0;
const CYCLE: u32 = 1;
const FIRST_SIGNAL: u32 = 2;

/// Where the header has the first and the last time.
const HEADER_TIMES: u64 = 9;

/// Where the header has the number of blocks of value changes.
const HEADER_BLOCKS: u64 = 65;

/// An FST file that is being written.
pub struct FstSink<W: Write + Seek> {
    out: W,
    block: Block,
    /// Changes of a full block.
    block_changes: usize,
    axis: TimeAxis,
    /// The first cycle, and the cycle of the last change.
    begin: u64,
    at: u64,
    /// Bytes and blocks of value changes written to `out`.
    bytes: u64,
    blocks: u64,
    finished: bool,
}

impl<W: Write + Seek> FstSink<W> {
    /// Writes the header: scopes and signals. The clock is in the first scope.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn new(mut out: W, axis: TimeAxis, signals: &[Signal]) -> io::Result<Self> {
        let (header, order) = FstHeader::encode(axis, signals).map_err(io::Error::other)?;
        out.write_all(&header)?;
        let bits: usize = signals.iter().map(|signal| signal.kind.width() as usize).sum();
        let kinds = [Kind::Bit, Kind::Vector(CYCLE_BITS)];
        let kinds = kinds.into_iter().chain(signals.iter().map(|signal| signal.kind));
        Ok(FstSink {
            out,
            block: Block::new(kinds, order),
            block_changes: BLOCK_CHANGES.max(bits * BLOCK_CHANGES_PER_BIT),
            axis,
            begin: 0,
            at: 0,
            bytes: header.len() as u64,
            blocks: 0,
            finished: false,
        })
    }

    fn rise(&mut self, cycle: u64) {
        self.block.set_time(self.axis.rise(cycle));
        self.block.push(CLOCK, Some(1));
        self.block.push(CYCLE, Some(cycle));
    }

    fn fall(&mut self, cycle: u64) {
        self.block.set_time(self.axis.fall(cycle));
        self.block.push(CLOCK, Some(0));
    }

    /// Writes the clock edges up to the rising edge of cycle `at`.
    fn advance(&mut self, at: u64) -> io::Result<()> {
        if self.finished {
            return Err(io::Error::other("the dump is finished and takes no more changes"));
        }
        while self.at < at {
            // Between two times: no block shares a time with the next one.
            if self.block.n_changes() >= self.block_changes {
                self.write_block()?;
            }
            self.fall(self.at);
            self.at += 1;
            self.rise(self.at);
        }
        Ok(())
    }

    #[cold]
    fn write_block(&mut self) -> io::Result<()> {
        let block = self.block.take();
        self.out.write_all(block)?;
        self.bytes += block.len() as u64;
        self.blocks += 1;
        Ok(())
    }

    /// Writes the range of times and the number of blocks into the header. Until then it has zeros, and readers take what they find.
    fn complete_header(&mut self, end: u64) -> io::Result<()> {
        self.out.seek(SeekFrom::Start(HEADER_TIMES))?;
        self.out.write_all(&self.axis.rise(self.begin).to_be_bytes())?;
        self.out.write_all(&self.axis.rise(end).to_be_bytes())?;
        self.out.seek(SeekFrom::Start(HEADER_BLOCKS))?;
        self.out.write_all(&self.blocks.to_be_bytes())?;
        self.out.seek(SeekFrom::End(0))?;
        self.out.flush()
    }
}

impl<W: Write + Seek + Send> Sink for FstSink<W> {
    fn begin(&mut self, at: u64, values: &[Option<u64>]) -> io::Result<()> {
        (self.begin, self.at) = (at, at);
        self.rise(at);
        for (row, value) in (FIRST_SIGNAL..).zip(values) {
            self.block.push(row, *value);
        }
        Ok(())
    }

    fn change(&mut self, at: u64, signal: u32, value: Option<u64>) -> io::Result<()> {
        self.changes(at, &[(signal, value)])
    }

    fn changes(&mut self, at: u64, changes: &[Change]) -> io::Result<()> {
        self.advance(at)?;
        for &(signal, value) in changes {
            self.block.push(FIRST_SIGNAL + signal, value);
        }
        Ok(())
    }

    fn finish(&mut self, at: u64) -> io::Result<()> {
        // Viewers draw up to the last time. So the dump ends with a time after the last values.
        if self.at < at {
            self.advance(at - 1)?;
            self.fall(at - 1);
            self.block.set_time(self.axis.rise(at));
            self.block.push(CLOCK, Some(0));
            self.at = at;
        }
        // A second call is an error.
        self.advance(at)?;
        self.finished = true;
        self.write_block()?;
        self.complete_header(self.at)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The header that is being written.
struct FstHeader<'a> {
    writer: FstWriter<Cursor<Vec<u8>>>,
    signals: &'a [Signal],
    /// The handle of each signal. 0 until it is declared.
    handles: Vec<u32>,
    /// The row of each handle.
    rows: Vec<u32>,
}

impl FstHeader<'_> {
    /// Returns the bytes of the header, and the row of each handle.
    fn encode(axis: TimeAxis, signals: &[Signal]) -> wavefst::Result<(Vec<u8>, Vec<u32>)> {
        let writer = FstWriter::builder(Cursor::new(Vec::new()))
            .time_compression(TimeCompression::Raw)
            .hierarchy_compression(HierarchyCompression::Lz4)
            .timescale_exponent(match axis {
                // 100 ps and 1 ps, as in a VCD.
                TimeAxis::Cycles => -10,
                TimeAxis::Real { .. } => -12,
            })
            .build()?;
        let mut header = FstHeader {
            writer,
            signals,
            handles: vec![0; signals.len()],
            rows: Vec::new(),
        };
        for (n, scope) in Scope::tree(signals).scopes.iter().enumerate() {
            header.scope(scope, n == 0)?;
        }
        header.write(axis)?;
        Ok((header.writer.finish()?.into_inner(), header.rows))
    }

    fn write(&mut self, axis: TimeAxis) -> wavefst::Result<()> {
        let axis = match axis {
            TimeAxis::Cycles => "10 units per cycle",
            TimeAxis::Real { .. } => "real time",
        };
        // No date: the same run gives the same bytes.
        self.writer.write_header(Header {
            version: format!("warpwave {}, {axis}", env!("CARGO_PKG_VERSION")),
            date: String::new(),
            double_byte_order: FstByteOrder::LittleEndian,
            ..Header::default()
        })
    }

    fn scope(&mut self, scope: &Scope, has_clock: bool) -> wavefst::Result<()> {
        self.writer
            .begin_scope(ScopeType::VcdModule, scope.name.clone(), None)?;
        if has_clock {
            let cycle = format!("cycle [{}:0]", CYCLE_BITS - 1);
            self.variable(CLOCK, "clock".into(), VarType::VcdWire, GeomEntry::Fixed(1))?;
            self.variable(CYCLE, cycle, VarType::VcdWire, GeomEntry::Fixed(CYCLE_BITS))?;
        }
        for &n in &scope.signals {
            self.signal(n)?;
        }
        for inner in &scope.scopes {
            self.scope(inner, false)?;
        }
        self.writer.end_scope()
    }

    /// Declares a variable. Returns its handle.
    fn variable(&mut self, row: u32, name: String, kind: VarType, geometry: GeomEntry) -> wavefst::Result<u32> {
        // Handles count from 1 in the order of the declarations.
        self.rows.push(row);
        self.writer.add_variable(kind, VarDir::Implicit, name, geometry)
    }

    /// Declares a signal. In its second scope it becomes an alias.
    fn signal(&mut self, n: usize) -> wavefst::Result<()> {
        let Signal { name, kind, .. } = &self.signals[n];
        let name = match (*kind, kind.width()) {
            (Kind::Real, _) | (_, 1) => name.clone(),
            (_, width) => format!("{name} [{}:0]", width - 1),
        };
        let (var, geometry) = match kind {
            Kind::Real => (VarType::VcdReal, GeomEntry::Real),
            kind => (VarType::VcdWire, GeomEntry::Fixed(kind.width())),
        };
        // The first scope of the signal has declared it.
        if self.handles[n] != 0 {
            self.writer.add_alias(var, VarDir::Implicit, name, self.handles[n])?;
        } else {
            self.handles[n] = self.variable(FIRST_SIGNAL + n as u32, name, var, geometry)?;
        }
        Ok(())
    }
}
