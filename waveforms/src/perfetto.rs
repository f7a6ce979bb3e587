//! Timelines as a Chrome JSON trace, which Perfetto opens: tracks in groups, slices, requests that overlap, arrows, curves.
//!
//! Takes what happened in any order; times are cycles, which viewers show as microseconds. Promises one JSON object of the trace
//! event format, complete once [`Writer::finish`] has been called. Slices of one track must not overlap: what does goes into
//! [`Writer::open`].
//!
//! ```
//! use warpwave_hw::time::Cycle;
//! use warpwave_waveforms::perfetto::{Track, Writer};
//! let mut writer = Writer::new(Vec::new()).unwrap();
//! let track = Track { group: 1, track: 2 };
//! writer.name_track(track, "warp \"3\"").unwrap();
//! writer.slice(track, "LD", Cycle(10), 4, &[("pc", 7u64.into())]).unwrap();
//! let text = String::from_utf8(writer.finish().unwrap()).unwrap();
//! assert!(text.contains(r#"{"ph":"X","pid":1,"tid":2,"ts":10,"dur":4,"name":"LD","args":{"pc":7}}"#));
//! assert!(text.contains(r#"{"name":"warp \"3\""}"#));
//! ```

use std::fmt::{self, Display};
use std::io::{self, Write};

use warpwave_hw::time::Cycle;

/// A row of the picture.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Track {
    /// Number of its group.
    pub group: u32,
    /// Its number in the group, by which rows are sorted.
    pub track: u32,
}

/// A value that is shown with a slice.
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

/// Values that are shown with a slice, by name.
pub type Args<'a> = [(&'static str, Value<'a>)];

/// Where an arrow passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrow {
    /// It begins here.
    Start,
    /// It goes on from here.
    Step,
    /// It ends here.
    End,
}

/// Writes a timeline.
pub struct Writer<W> {
    to: W,
    first: bool,
}

impl<W: Write> Writer<W> {
    /// Begins the file.
    ///
    /// # Errors
    /// What `to` gives, as in every other call.
    pub fn new(mut to: W) -> io::Result<Self> {
        write!(to, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        Ok(Writer { to, first: true })
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

    /// Something that takes its track for so many cycles.
    pub fn slice(&mut self, at: Track, name: &str, from: Cycle, cycles: u64, args: &Args<'_>) -> io::Result<()> {
        let Track { group, track } = at;
        self.event(format_args!(
            r#"{{"ph":"X","pid":{group},"tid":{track},"ts":{from},"dur":{cycles},"name":{},"args":{}}}"#,
            Quoted(name),
            Object(args)
        ))
    }

    /// Something that is known by `id` in its group begins. Of one id, what begins last ends first; different ids may overlap.
    pub fn open(&mut self, group: u32, id: &str, name: &str, at: Cycle, args: &Args<'_>) -> io::Result<()> {
        self.event(format_args!(
            r#"{{"ph":"b","cat":"memory","pid":{group},"id":{},"ts":{at},"name":{},"args":{}}}"#,
            Quoted(id),
            Quoted(name),
            Object(args)
        ))
    }

    /// It ends.
    pub fn close(&mut self, group: u32, id: &str, name: &str, at: Cycle) -> io::Result<()> {
        self.event(format_args!(
            r#"{{"ph":"e","cat":"memory","pid":{group},"id":{},"ts":{at},"name":{}}}"#,
            Quoted(id),
            Quoted(name)
        ))
    }

    /// A point of the arrow `id`, on the slice that its track has in that cycle.
    pub fn arrow(&mut self, at: Track, id: &str, point: Arrow, cycle: Cycle) -> io::Result<()> {
        let Track { group, track } = at;
        let ph = match point {
            Arrow::Start => r#""ph":"s""#,
            Arrow::Step => r#""ph":"t""#,
            Arrow::End => r#""ph":"f","bp":"e""#,
        };
        self.event(format_args!(
            r#"{{{ph},"cat":"memory","pid":{group},"tid":{track},"id":{},"ts":{cycle},"name":"request"}}"#,
            Quoted(id)
        ))
    }

    /// A curve's value from a cycle on.
    pub fn counter(&mut self, group: u32, name: &str, from: Cycle, value: f64) -> io::Result<()> {
        self.event(format_args!(
            r#"{{"ph":"C","pid":{group},"ts":{from},"name":{},"args":{{"value":{value}}}}}"#,
            Quoted(name)
        ))
    }

    /// Ends the file; gives back what it wrote to.
    pub fn finish(mut self) -> io::Result<W> {
        self.to.write_all(b"\n]}\n")?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn event(&mut self, event: fmt::Arguments<'_>) -> io::Result<()> {
        let separator = if std::mem::take(&mut self.first) { "\n" } else { ",\n" };
        write!(self.to, "{separator}{event}")
    }
}

/// Text as JSON writes it.
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
