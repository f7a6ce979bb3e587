//! Dumps in FST, GTKWave's compressed binary format.
//!
//! An FST file has the same scopes, signals, times and values as a VCD of the run. It is smaller and opens faster. The same run gives the
//! same bytes. If the run breaks off, the file is complete up to its last block.
//!
//! The file has no tables of state names: GTKWave would ignore the names and colours of its save file for a signal with a table.

use std::borrow::Cow;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use wavefst::{
    ChainCompression, FstWriter, GeomEntry, Header, ScopeType, SignalValue, TimeCompression, VarDir, VarType,
};

use crate::signal::{Kind, Scope, Signal};
use crate::sink::Sink;
use crate::vcd::TimeAxis;

/// Least changes per compressed block.
const BLOCK_CHANGES: usize = 250_000;

/// Least changes per compressed block for each bit of all signals. A block begins with a digit for each bit, so blocks of many signals
/// would hold little else.
const BLOCK_CHANGES_PER_BIT: usize = 2;

/// Width of the count of cycles, in bits.
const CYCLE_BITS: u32 = 48;

/// An FST file that is being written.
pub struct FstSink<W: Write + Seek> {
    /// `None` once the file is finished.
    writer: Option<FstWriter<CountedFile<W>>>,
    bytes: Arc<AtomicU64>,
    /// Handles of the clock and of the count of its cycles.
    clock: u32,
    cycle: u32,
    /// The handle of each signal in the file.
    handles: Vec<u32>,
    kinds: Vec<Kind>,
    axis: TimeAxis,
    /// The cycle of the last change.
    at: u64,
    /// Memory for the digits of a vector.
    digits: String,
}

impl<W: Write + Seek> FstSink<W> {
    /// Writes the header: scopes and signals. The clock is in the first scope.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn new(out: W, axis: TimeAxis, signals: &[Signal]) -> io::Result<Self> {
        let bytes = Arc::new(AtomicU64::new(0));
        let counted = CountedFile {
            out,
            end: bytes.clone(),
            at: 0,
        };
        let bits: usize = signals.iter().map(|signal| signal.kind.width() as usize).sum();
        let writer = FstWriter::builder(counted)
            .chain_compression(ChainCompression::Lz4)
            .time_compression(TimeCompression::Raw)
            .timescale_exponent(match axis {
                // 100 ps and 1 ps, as in a VCD.
                TimeAxis::Cycles => -10,
                TimeAxis::Real { .. } => -12,
            })
            .block_change_limit(BLOCK_CHANGES.max(bits * BLOCK_CHANGES_PER_BIT))
            .build()
            .map_err(io::Error::other)?;
        let mut declaration = FstHeader {
            writer,
            signals,
            handles: vec![0; signals.len()],
            clock: [0; 2],
        };
        declaration.write(axis).map_err(io::Error::other)?;
        let FstHeader {
            writer, handles, clock, ..
        } = declaration;
        Ok(FstSink {
            writer: Some(writer),
            bytes,
            clock: clock[0],
            cycle: clock[1],
            handles,
            kinds: signals.iter().map(|signal| signal.kind).collect(),
            axis,
            at: 0,
            digits: String::with_capacity(64),
        })
    }

    fn emit(&mut self, time: u64, handle: u32, value: SignalValue<'_>) -> io::Result<()> {
        let writer = self.writer.as_mut().ok_or_else(finished)?;
        writer.emit_change(time, handle, value).map_err(io::Error::other)
    }

    /// Writes a value of `width` bits. `Err` holds the digit of a missing value.
    fn vector(&mut self, time: u64, handle: u32, width: u32, value: Result<u64, u8>) -> io::Result<()> {
        let mut digits = std::mem::take(&mut self.digits);
        digits.clear();
        digits.extend((0..width).rev().map(|bit| match value {
            Ok(value) => char::from(b'0' + (value >> bit & 1) as u8),
            Err(digit) => char::from(digit),
        }));
        let result = match width {
            1 => self.emit(time, handle, SignalValue::Bit(digits.chars().next().unwrap_or('x'))),
            _ => self.emit(time, handle, SignalValue::Vector(Cow::Borrowed(&digits))),
        };
        // Given back, so that a vector needs no allocation.
        self.digits = digits;
        result
    }

    fn value(&mut self, time: u64, signal: usize, value: Option<u64>) -> io::Result<()> {
        let (handle, kind) = (self.handles[signal], self.kinds[signal]);
        match (kind, value) {
            (Kind::Real, value) => {
                let value = f64::from_bits(value.unwrap_or_default());
                self.emit(time, handle, SignalValue::Real(value))
            }
            (kind, value) => self.vector(time, handle, kind.width(), value.ok_or(kind.undefined_digit())),
        }
    }

    fn rise(&mut self, cycle: u64) -> io::Result<()> {
        let time = self.axis.rise(cycle);
        self.emit(time, self.clock, SignalValue::Bit('1'))?;
        self.vector(time, self.cycle, CYCLE_BITS, Ok(cycle))
    }

    fn fall(&mut self, cycle: u64) -> io::Result<()> {
        self.emit(self.axis.fall(cycle), self.clock, SignalValue::Bit('0'))
    }

    /// Writes the clock edges up to the rising edge of cycle `at`.
    fn advance(&mut self, at: u64) -> io::Result<()> {
        while self.at < at {
            self.fall(self.at)?;
            self.at += 1;
            self.rise(self.at)?;
        }
        Ok(())
    }
}

impl<W: Write + Seek + Send> Sink for FstSink<W> {
    fn begin(&mut self, at: u64, values: &[Option<u64>]) -> io::Result<()> {
        self.at = at;
        self.rise(at)?;
        let time = self.axis.rise(at);
        let mut values = values.iter().enumerate();
        values.try_for_each(|(signal, value)| self.value(time, signal, *value))
    }

    fn change(&mut self, at: u64, signal: u32, value: Option<u64>) -> io::Result<()> {
        self.advance(at)?;
        self.value(self.axis.rise(at), signal as usize, value)
    }

    fn finish(&mut self, at: u64) -> io::Result<()> {
        // Viewers draw up to the last time. So the dump ends with a time after the last values.
        if self.at < at {
            self.advance(at - 1)?;
            self.fall(at - 1)?;
            self.emit(self.axis.rise(at), self.clock, SignalValue::Bit('0'))?;
        }
        // `finish` consumes the writer, so a second call is an error.
        let writer = self.writer.take().ok_or_else(finished)?;
        writer.finish().map_err(io::Error::other)?;
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

fn finished() -> io::Error {
    io::Error::other("the dump is finished and takes no more changes")
}

/// The header that is being written.
struct FstHeader<'a, W: Write + Seek> {
    writer: FstWriter<CountedFile<W>>,
    signals: &'a [Signal],
    handles: Vec<u32>,
    /// Handles of the clock and of the count of its cycles.
    clock: [u32; 2],
}

impl<W: Write + Seek> FstHeader<'_, W> {
    fn write(&mut self, axis: TimeAxis) -> wavefst::Result<()> {
        for (n, scope) in Scope::tree(self.signals).scopes.iter().enumerate() {
            self.scope(scope, n == 0)?;
        }
        let axis = match axis {
            TimeAxis::Cycles => "10 units per cycle",
            TimeAxis::Real { .. } => "real time",
        };
        // No date: the same run gives the same bytes.
        self.writer.write_header(Header {
            version: format!("warpwave {}, {axis}", env!("CARGO_PKG_VERSION")),
            date: String::new(),
            ..Header::default()
        })
    }

    fn scope(&mut self, scope: &Scope, has_clock: bool) -> wavefst::Result<()> {
        self.writer
            .begin_scope(ScopeType::VcdModule, scope.name.clone(), None)?;
        if has_clock {
            self.clock = [
                self.variable("clock".into(), VarType::VcdWire, GeomEntry::Fixed(1))?,
                self.variable(
                    format!("cycle [{}:0]", CYCLE_BITS - 1),
                    VarType::VcdWire,
                    GeomEntry::Fixed(CYCLE_BITS),
                )?,
            ];
        }
        for &n in &scope.signals {
            self.signal(n)?;
        }
        for inner in &scope.scopes {
            self.scope(inner, false)?;
        }
        self.writer.end_scope()
    }

    fn variable(&mut self, name: String, kind: VarType, geometry: GeomEntry) -> wavefst::Result<u32> {
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
        // Handles count from 1. The first scope of the signal has declared it.
        if self.handles[n] != 0 {
            self.writer.add_alias(var, VarDir::Implicit, name, self.handles[n])?;
        } else {
            self.handles[n] = self.variable(name, var, geometry)?;
        }
        Ok(())
    }
}

/// A file that counts its bytes.
struct CountedFile<W> {
    out: W,
    end: Arc<AtomicU64>,
    at: u64,
}

impl<W: Write> Write for CountedFile<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        self.at += n as u64;
        // The writer seeks back to fill in earlier parts: that does not shrink the file.
        self.end.fetch_max(self.at, Ordering::Relaxed);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Seek> Seek for CountedFile<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = self.out.seek(to)?;
        Ok(self.at)
    }
}
