//! Source map: from lines of the PTX text to lines of the compiler's source.
//!
//! Input: the positions in `.file` and `.loc` directives, in text order. Output: for each text line, the last position before it,
//! with the inlined calls around it. A text line before the first position of its function has none.

use std::collections::BTreeMap;
use std::fmt;

/// Position in a source file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SourcePos {
    /// Number of the file in the text.
    pub file: u32,
    /// Line, from 1. Line 0 means that the code below has no source line.
    pub line: u32,
    /// Column as the compiler counts it, mostly from 1.
    pub column: u32,
}

/// Position in a source file, with the name of the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SourceLine<'a> {
    /// File name as the compiler was given it.
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

/// A position, and the call where it was inlined.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Frame {
    pos: SourcePos,
    /// Index into [`SourceMap::frames`].
    caller: Option<u32>,
}

/// Source positions of the text of a module.
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
    /// First text line of each frame, ascending. A frame of `None` marks the start of a function.
    starts: Vec<(u32, Option<u32>)>,
    /// The latest frame of each position in the current function.
    latest: BTreeMap<SourcePos, u32>,
}

impl SourceMap {
    /// Returns a map with these files and no positions.
    pub fn new(files: impl IntoIterator<Item = (u32, String)>) -> Self {
        SourceMap {
            files: files.into_iter().collect(),
            ..SourceMap::default()
        }
    }

    /// Iterates over the file names.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.values().map(String::as_str)
    }

    /// Starts a function at this text line. Positions before it do not apply to later lines.
    pub fn begin_function(&mut self, text_line: u32) {
        self.latest.clear();
        self.starts.push((text_line, None));
    }

    /// Adds a position for the code from this text line on, inlined at `caller`.
    ///
    /// If `caller` was itself added in this function, its own callers follow.
    pub fn add(&mut self, text_line: u32, pos: SourcePos, caller: Option<SourcePos>) {
        let caller = caller.map(|pos| {
            // A call inside an inlined function: its own callers were added with an earlier position.
            let outer = self.latest.get(&pos).and_then(|&at| self.frames[at as usize].caller);
            self.push(pos, outer)
        });
        let frame = self.push(pos, caller);
        self.latest.insert(pos, frame);
        self.starts.push((text_line, Some(frame)));
    }

    fn push(&mut self, pos: SourcePos, caller: Option<u32>) -> u32 {
        self.frames.push(Frame { pos, caller });
        self.frames.len() as u32 - 1
    }

    /// True if the map has no position.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Returns the source position of a text line.
    pub fn at(&self, text_line: u32) -> Option<SourceLine<'_>> {
        self.stack(text_line).next()
    }

    /// Iterates over the source position of a text line and the calls where it was inlined, innermost first.
    pub fn stack(&self, text_line: u32) -> impl Iterator<Item = SourceLine<'_>> {
        // Lines keep the last position before them, up to the next function.
        let behind = self.starts.partition_point(|&(start, _)| start <= text_line);
        let innermost = behind.checked_sub(1).and_then(|at| self.starts[at].1);
        let frame = |at: u32| &self.frames[at as usize];
        std::iter::successors(innermost.map(frame), move |inner| inner.caller.map(frame))
            .filter_map(|frame| self.named(frame.pos))
    }

    fn named(&self, pos: SourcePos) -> Option<SourceLine<'_>> {
        let file = self.files.get(&pos.file)?;
        // Line 0 marks code that the compiler made, without a source line.
        (pos.line > 0).then_some(SourceLine {
            file,
            line: pos.line,
            column: pos.column,
        })
    }
}
