//! Timelines for Perfetto, in Chrome's JSON trace event format.
//!
//! | event | drawn as |
//! |---|---|
//! | slice | a box on a track. Slices of one track must not overlap |
//! | asynchronous span | a box on a track of its own, so spans may overlap |
//! | flow | an arrow between slices |
//! | counter | a curve |
//!
//! Events may be written in any order. Times are cycles; Perfetto shows a cycle as 1 us. The file is complete after
//! [`PerfettoWriter::finish`].
//!
//! ```
//! use warpwave_hw::time::Cycle;
//! use warpwave_waveforms::perfetto::{PerfettoWriter, Track};
//! let mut writer = PerfettoWriter::new(Vec::new())?;
//! let track = Track { group: 1, track: 2 };
//! writer.name_track(track, "warp \"3\"")?;
//! writer.slice(track, "LD", Cycle(10), 4, &[("pc", 7u64.into())])?;
//! let text = String::from_utf8(writer.finish()?)?;
//! assert!(text.contains(r#"{"ph":"X","pid":1,"tid":2,"ts":10,"dur":4,"name":"LD","args":{"pc":7}}"#));
//! assert!(text.contains(r#"{"name":"warp \"3\""}"#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt::{self, Display};
use std::io::{self, Write};

use warpwave_hw::time::Cycle;

/// A row of the timeline.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Track {
    /// The number of its group. Perfetto calls a group a process.
    pub group: u32,
    /// Its number in the group. Tracks are sorted by number.
    pub track: u32,
}

/// An argument of a slice.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value<'a> {
    /// A number.
    Number(u64),
    /// A text.
    Text(&'a str),
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Value::Number(number)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(text)
    }
}

/// The arguments of a slice, by name. Perfetto shows them when the slice is selected.
pub type Args<'a> = [(&'static str, Value<'a>)];

/// The kind of a point of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowPoint {
    /// The first point.
    Start,
    /// A point between the first and the last.
    Step,
    /// The last point.
    End,
}

/// A trace file or stream.
pub struct PerfettoWriter<W> {
    to: W,
    /// True before the first event.
    is_empty: bool,
}

impl<W: Write> PerfettoWriter<W> {
    /// Begins the file.
    ///
    /// # Errors
    /// If `to` cannot be written, as in all other calls.
    pub fn new(mut to: W) -> io::Result<Self> {
        write!(to, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        Ok(PerfettoWriter { to, is_empty: true })
    }

    /// Names a group of tracks.
    pub fn name_group(&mut self, group: u32, name: &str) -> io::Result<()> {
        self.event(format_args!(
            r#"{{"ph":"M","pid":{group},"name":"process_name","args":{{"name":{}}}}}"#,
            Quoted(name)
        ))?;
        self.event(format_args!(
            r#"{{"ph":"M","pid":{group},"name":"process_sort_index","args":{{"sort_index":{group}}}}}"#
        ))
    }

    /// Names a track.
    pub fn name_track(&mut self, Track { group, track }: Track, name: &str) -> io::Result<()> {
        self.event(format_args!(
            r#"{{"ph":"M","pid":{group},"tid":{track},"name":"thread_name","args":{{"name":{}}}}}"#,
            Quoted(name)
        ))?;
        self.event(format_args!(
            r#"{{"ph":"M","pid":{group},"tid":{track},"name":"thread_sort_index","args":{{"sort_index":{track}}}}}"#
        ))
    }

    /// Writes a slice of `cycles` cycles.
    pub fn slice(&mut self, at: Track, name: &str, from: Cycle, cycles: u64, args: &Args<'_>) -> io::Result<()> {
        let Track { group, track } = at;
        self.event(format_args!(
            r#"{{"ph":"X","pid":{group},"tid":{track},"ts":{from},"dur":{cycles},"name":{},"args":{}}}"#,
            Quoted(name),
            Object(args)
        ))
    }

    /// Begins an asynchronous span. Spans with one `id` nest: the last to begin is the first to end. Spans with different ids may overlap.
    pub fn begin_span(&mut self, group: u32, id: &str, name: &str, at: Cycle, args: &Args<'_>) -> io::Result<()> {
        self.event(format_args!(
            r#"{{"ph":"b","cat":"memory","pid":{group},"id":{},"ts":{at},"name":{},"args":{}}}"#,
            Quoted(id),
            Quoted(name),
            Object(args)
        ))
    }

    /// Ends an asynchronous span.
    pub fn end_span(&mut self, group: u32, id: &str, name: &str, at: Cycle) -> io::Result<()> {
        self.event(format_args!(
            r#"{{"ph":"e","cat":"memory","pid":{group},"id":{},"ts":{at},"name":{}}}"#,
            Quoted(id),
            Quoted(name)
        ))
    }

    /// Adds a point to the flow `id`. The point is on the slice that the track has in this cycle.
    pub fn flow(&mut self, at: Track, id: &str, point: FlowPoint, cycle: Cycle) -> io::Result<()> {
        let Track { group, track } = at;
        let ph = match point {
            FlowPoint::Start => r#""ph":"s""#,
            FlowPoint::Step => r#""ph":"t""#,
            // `bp` binds the arrow's end to the slice that it is in, not to the next one.
            FlowPoint::End => r#""ph":"f","bp":"e""#,
        };
        // Points of one flow have the same category, name and id.
        self.event(format_args!(
            r#"{{{ph},"cat":"memory","pid":{group},"tid":{track},"id":{},"ts":{cycle},"name":"request"}}"#,
            Quoted(id)
        ))
    }

    /// Sets a counter to a value, from a cycle on.
    pub fn counter(&mut self, group: u32, name: &str, from: Cycle, value: f64) -> io::Result<()> {
        self.event(format_args!(
            r#"{{"ph":"C","pid":{group},"ts":{from},"name":{},"args":{{"value":{value}}}}}"#,
            Quoted(name)
        ))
    }

    /// Ends the file and returns it.
    pub fn finish(mut self) -> io::Result<W> {
        self.to.write_all(b"\n]}\n")?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn event(&mut self, event: fmt::Arguments<'_>) -> io::Result<()> {
        // JSON allows no comma after the last event, so each event writes the one before it.
        let separator = if std::mem::take(&mut self.is_empty) {
            "\n"
        } else {
            ",\n"
        };
        write!(self.to, "{separator}{event}")
    }
}

/// A JSON string.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                c if (c as u32) < 0x20 => write!(f, "\\u{:04x}", c as u32)?,
                c => write!(f, "{c}")?,
            }
        }
        f.write_str("\"")
    }
}

/// Arguments as a JSON object.
struct Object<'a>(&'a Args<'a>);

impl Display for Object<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (n, (name, value)) in self.0.iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            write!(f, "{comma}{}:", Quoted(name))?;
            match value {
                Value::Number(number) => write!(f, "{number}")?,
                Value::Text(text) => write!(f, "{}", Quoted(text))?,
            }
        }
        f.write_str("}")
    }
}
