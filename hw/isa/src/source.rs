//! From lines of the program's text to lines of the source that a compiler made it of.
//!
//! Takes: the places that the text names (`.file` and `.loc` in PTX), in text order. Promises: for each line of the text
//! the place named last before it, with the calls that brought it there where the compiler inlined; nothing where the text names none.

use std::collections::BTreeMap;
use std::fmt;

/// A place in a source file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SourcePos {
    /// Number of the file, as the text gives it.
    pub file: u32,
    /// Line, from 1; 0 says that the code below belongs to no line.
    pub line: u32,
    /// Column as the compiler counts it, mostly from 1.
    pub column: u32,
}

/// A place in a source file, with the file's name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SourceLine<'a> {
    /// The file as the compiler was given it.
    pub file: &'a str,
    /// Line, from 1.
    pub line: u32,
    /// Column as the compiler counts it.
    pub column: u32,
}

impl fmt::Display for SourceLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A place, and the call that it was inlined at.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Frame {
    place: SourcePos,
    /// Index into [`SourceMap::frames`].
    caller: Option<u32>,
}

/// The places of a module's text.
///
/// ```
/// use warpwave_isa::source::{SourcePos, SourceMap};
/// let at = |line| SourcePos { file: 1, line, column: 5 };
/// let mut map = SourceMap::new([(1, "sum.cu".to_owned())]);
/// map.begin_function(10);
/// map.add(12, at(30), None);
/// map.add(15, at(7), Some(at(30)));
/// assert_eq!(map.at(14).unwrap().to_string(), "sum.cu:30:5");
/// let stack: Vec<_> = map.stack(15).map(|source| source.line).collect();
/// assert_eq!(stack, [7, 30]);
/// assert_eq!(map.at(11), None);
/// ```
#[derive(Clone, Default, PartialEq, Debug)]
pub struct SourceMap {
    files: BTreeMap<u32, String>,
    frames: Vec<Frame>,
    /// First line of the text for which a frame holds, in ascending order; none where a function begins.
    starts: Vec<(u32, Option<u32>)>,
    /// The frame added last for each place of the function at hand.
    latest: BTreeMap<SourcePos, u32>,
}

impl SourceMap {
    /// A map with these files and no places yet.
    pub fn new(files: impl IntoIterator<Item = (u32, String)>) -> Self {
        SourceMap {
            files: files.into_iter().collect(),
            ..SourceMap::default()
        }
    }

    /// The files, as the compiler names them.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.values().map(String::as_str)
    }

    /// A function begins at this line of the text: places before it say nothing of what follows.
    pub fn begin_function(&mut self, text_line: u32) {
        self.latest.clear();
        self.starts.push((text_line, None));
    }

    /// Code from this line of the text on comes from `place`, inlined at `caller`. A caller that was itself added earlier in
    /// the function brings its own callers along.
    pub fn add(&mut self, text_line: u32, place: SourcePos, caller: Option<SourcePos>) {
        let caller = caller.map(|place| {
            let outer = self.latest.get(&place).and_then(|&at| self.frames[at as usize].caller);
            self.push(place, outer)
        });
        let frame = self.push(place, caller);
        self.latest.insert(place, frame);
        self.starts.push((text_line, Some(frame)));
    }

    fn push(&mut self, place: SourcePos, caller: Option<u32>) -> u32 {
        self.frames.push(Frame { place, caller });
        self.frames.len() as u32 - 1
    }

    /// Whether the text names no place.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The source of a line of the text.
    pub fn at(&self, text_line: u32) -> Option<SourceLine<'_>> {
        self.stack(text_line).next()
    }

    /// The source of a line of the text, then the call that it was inlined at, and so on outward.
    pub fn stack(&self, text_line: u32) -> impl Iterator<Item = SourceLine<'_>> {
        let behind = self.starts.partition_point(|&(start, _)| start <= text_line);
        let innermost = behind.checked_sub(1).and_then(|at| self.starts[at].1);
        let frame = |at: u32| &self.frames[at as usize];
        std::iter::successors(innermost.map(frame), move |inner| inner.caller.map(frame))
            .filter_map(|frame| self.named(frame.place))
    }

    fn named(&self, place: SourcePos) -> Option<SourceLine<'_>> {
        let file = self.files.get(&place.file)?;
        (place.line > 0).then_some(SourceLine {
            file,
            line: place.line,
            column: place.column,
        })
    }
}
