//! Target: the FST writer, read back by the crate `wellen`.
//!
//! Oracle: every signal has the changes that were written, in the same cycles, under its name and under its alias. Times never go back, and
//! the last time is the end of the last cycle.

use std::io::Cursor;

use warpwave_waveforms::fst::FstSink;
use warpwave_waveforms::sink::Sink;
use wellen::{SignalValueRef, simple};

use crate::waves::{Dump, Waves, number};

/// Reads the changes of all signals but the clock.
fn read(file: Vec<u8>) -> Waves {
    let mut waveform = simple::read_from_reader(Cursor::new(file)).expect("the writer writes a file");
    let hierarchy = waveform.hierarchy();
    let vars = hierarchy.all_vars().map(|var| &hierarchy[var]);
    let names: Vec<_> = vars.map(|var| (var.full_name(hierarchy), var.signal_ref())).collect();
    let times = waveform.time_table().to_vec();
    assert!(times.is_sorted_by(|a, b| a < b), "the times do not rise: {times:?}");
    let mut waves = Waves::new();
    for (name, signal) in names {
        waveform.load_signals(&[signal]);
        let signal = waveform.get_signal(signal).expect("the file has the signal");
        let value = |value: SignalValueRef<'_>| match value {
            SignalValueRef::Real(value) => Some(value.to_bits()),
            digits => number(&digits.to_string()),
        };
        let changes = signal.iter_changes();
        let mut wave: Vec<_> = changes.map(|(at, found)| (times[at as usize], value(found))).collect();
        // A block of an FST file begins with the values of all signals.
        wave.dedup_by_key(|(_, value)| *value);
        waves.insert(name, wave);
    }
    // The writer adds these two signals. The dump does not know them.
    waves.remove("gpu.clock");
    waves.remove("gpu.cycle");
    waves
}

/// Writes and reads the dump.
///
/// # Panics
/// If the reader refuses the dump, or finds other changes. If the count of bytes is wrong.
pub fn check(dump: Dump) {
    let signals = dump.signals();
    let mut file = Cursor::new(Vec::new());
    let mut writer = FstSink::new(&mut file, dump.axis, &signals).expect("memory has room");
    let expected = dump.write(&signals, &mut writer);
    let bytes = writer.bytes();
    drop(writer);
    assert_eq!(bytes, file.get_ref().len() as u64, "bytes of the file");
    assert_eq!(read(file.into_inner()), expected, "changes by signal");
}
