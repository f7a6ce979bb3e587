//! Selects the signals and cycles of a waveform.
//!
//! A pattern consists of names with dots between them. In a name, `*` matches any text. The name `**` matches any number of names.
//! A pattern that matches a scope selects everything in it: `gpu.gpc[0].sm[0]` and `gpu.gpc[0].sm[0].**` are the same, and `*`
//! selects everything.

use std::collections::BTreeSet;
use std::ops::Range;

use warpwave_hw::time::Cycle;

use crate::error::WaveError;
use crate::signal::Signal;
use crate::trigger::Trigger;

/// Patterns of signal paths, a window of cycles, and an optional trigger.
///
/// A signal is selected if any pattern matches it.
///
/// ```
/// use warpwave_waveforms::select::Selection;
/// let selection = Selection::new(&["gpu.*.sm[0].**.pc"], "100..200")?;
/// assert!(selection.selects(["gpu", "gpc[1]", "sm[0]", "warp[7]", "pc"]));
/// assert!(!selection.selects(["gpu", "gpc[1]", "sm[10]", "warp[7]", "pc"]));
/// assert_eq!((selection.window().start.0, selection.window().end.0), (100, 200));
/// # Ok::<(), warpwave_waveforms::error::WaveError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selection {
    patterns: Vec<Pattern>,
    window: Range<Cycle>,
    /// Levels shown below a matched scope. `None` is all.
    depth: Option<usize>,
    trigger: Option<Trigger>,
}

impl Selection {
    /// Selects every signal in every cycle.
    pub fn all() -> Selection {
        Selection {
            patterns: vec![Pattern("**".into())],
            window: Cycle::ZERO..Cycle::NEVER,
            depth: None,
            trigger: None,
        }
    }

    /// Selects the signals that match `patterns` in the cycles of `window`. Without patterns every signal is selected.
    ///
    /// A window is `A..B`, `A..`, `..B` or `..`. Cycle B is not in it.
    ///
    /// # Errors
    /// If a pattern or the window is malformed.
    pub fn new(patterns: &[impl AsRef<str>], window: &str) -> Result<Selection, WaveError> {
        let window = parse_window(window).ok_or_else(|| WaveError::BadWindow { window: window.into() })?;
        let patterns: Vec<Pattern> = patterns
            .iter()
            .map(|p| Pattern::parse(p.as_ref()))
            .collect::<Result<_, _>>()?;
        let all = Selection::all();
        let patterns = if patterns.is_empty() { all.patterns } else { patterns };
        Ok(Selection {
            patterns,
            window,
            ..all
        })
    }

    /// Limits the levels shown below a matched scope: 1 shows the signals directly in it. A `**` at the end of a pattern has no
    /// effect then.
    pub fn with_depth(self, levels: usize) -> Selection {
        Selection {
            depth: Some(levels),
            ..self
        }
    }

    /// Starts the dump with this event.
    pub fn with_trigger(self, trigger: Trigger) -> Selection {
        Selection {
            trigger: Some(trigger),
            ..self
        }
    }

    /// The event that starts the dump.
    pub fn trigger(&self) -> Option<Trigger> {
        self.trigger
    }

    /// The window of cycles.
    pub fn window(&self) -> Range<Cycle> {
        self.window.clone()
    }

    /// True if a signal is selected. `names` is its path, from the outermost scope to the signal.
    pub fn selects<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> bool {
        let names: Vec<&str> = names.into_iter().collect();
        self.patterns.iter().any(|pattern| pattern.matches(&names, self.depth))
    }

    /// False if no signal in this scope can be selected.
    pub fn may_select<'a>(&self, scope: impl IntoIterator<Item = &'a str>) -> bool {
        let scope: Vec<&str> = scope.into_iter().collect();
        self.patterns.iter().any(|pattern| pattern.may_match_below(&scope))
    }

    /// False if no signal at or below this dotted path can be selected. A quick test: it compares text before the first `*` only.
    pub fn prefix_may_select(&self, path: &str) -> bool {
        let fixed = |pattern: &Pattern| pattern.0.split('*').next().map(str::len).unwrap_or(0);
        let fits = |pattern: &Pattern| {
            // Up to the first `*`, or to the end of the shorter text: the rest may match.
            let common = fixed(pattern).min(path.len());
            pattern.0.as_bytes()[..common] == path.as_bytes()[..common]
        };
        self.patterns.iter().any(fits)
    }

    /// The patterns as written.
    pub fn patterns(&self) -> impl Iterator<Item = &str> {
        self.patterns.iter().map(|pattern| pattern.0.as_str())
    }

    /// The index of the first pattern that matches none of these signals.
    pub fn unmatched_pattern(&self, signals: &[Signal]) -> Option<usize> {
        let matches =
            |pattern: &Pattern, signal: &Signal| pattern.matches(&signal.names().collect::<Vec<_>>(), self.depth);
        let is_unmatched = |pattern: &Pattern| !signals.iter().any(|signal| matches(pattern, signal));
        self.patterns.iter().position(is_unmatched)
    }

    /// The error for a pattern that matches no signal. `signals` are all signals of the machine: the error names the nearest.
    pub fn no_match(&self, pattern: usize, signals: &[Signal]) -> WaveError {
        if signals.is_empty() {
            return WaveError::NoSignals;
        }
        let paths: Vec<Vec<&str>> = signals.iter().map(|signal| signal.names().collect()).collect();
        match self.depth {
            Some(depth) if paths.iter().any(|path| self.patterns[pattern].matches(path, None)) => {
                WaveError::TooShallow {
                    pattern: self.patterns[pattern].0.clone(),
                    depth,
                }
            }
            _ => self.patterns[pattern].no_match(&paths),
        }
    }
}

/// Reads a window such as `100..200`.
fn parse_window(text: &str) -> Option<Range<Cycle>> {
    let (from, to) = text.split_once("..")?;
    let bound = |text: &str, open: Cycle| match text.trim() {
        "" => Some(open),
        text => text.replace('_', "").parse().ok().map(Cycle),
    };
    let window = bound(from, Cycle::ZERO)?..bound(to, Cycle::NEVER)?;
    (window.start < window.end).then_some(window)
}

/// The text of a pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Pattern(String);

impl Pattern {
    fn parse(text: &str) -> Result<Pattern, WaveError> {
        let is_name = |name: &str| !name.is_empty() && name.bytes().all(|c| c.is_ascii_graphic());
        // `advance` has one bit for each name.
        if text.split('.').all(is_name) && text.split('.').count() < 64 {
            Ok(Pattern(text.into()))
        } else {
            Err(WaveError::BadPattern { pattern: text.into() })
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.0.split('.')
    }

    /// True if the pattern matches the signal of this path, or a scope at most `depth` levels above it.
    fn matches(&self, path: &[&str], depth: Option<usize>) -> bool {
        let Some(depth) = depth else {
            return self.names().fold(1, |reached, name| advance(reached, name, path)) != 0;
        };
        let scope = self
            .0
            .strip_suffix("**")
            .map_or(self.0.as_str(), |scope| scope.trim_end_matches('.'));
        let names = scope.split('.').filter(|name| !name.is_empty());
        let reached = names.fold(1, |reached, name| advance(reached, name, path));
        // The pattern matches a scope if it matches the begin of the path. The bits left have at most `depth` names behind them.
        reached >> path.len().saturating_sub(depth) != 0
    }

    /// False if the pattern cannot match a signal below `scope`.
    fn may_match_below(&self, scope: &[&str]) -> bool {
        // From `**` on, any names may follow.
        let fixed = self.names().take_while(|name| *name != "**");
        fixed.zip(scope).all(|(name, other)| glob_matches(name, other))
    }

    /// The error for a pattern without a match: the longest prefix that matches a scope, and the nearest names in that scope.
    fn no_match(&self, paths: &[Vec<&str>]) -> WaveError {
        let names: Vec<&str> = self.names().collect();
        let mut reached = vec![1; paths.len()];
        let mut known = 0;
        loop {
            // One more name of the pattern, in all paths at once. The last name that any path matches ends the prefix.
            let further: Vec<u64> = paths
                .iter()
                .zip(&reached)
                .map(|(path, reached)| advance(*reached, names[known], path))
                .collect();
            if further.iter().all(|reached| *reached == 0) {
                break;
            }
            (reached, known) = (further, known + 1);
        }
        let ends = paths.iter().zip(&reached);
        let candidates: BTreeSet<&str> = ends.flat_map(|(path, reached)| names_at(*reached, path)).collect();
        let mut nearest: Vec<&str> = candidates.into_iter().collect();
        nearest.sort_by_key(|name| strsim::levenshtein(name, names[known]));
        let exists = names[..known].join(".");
        let full_path = |name: &&str| {
            if known == 0 {
                name.to_string()
            } else {
                format!("{exists}.{name}")
            }
        };
        WaveError::NoMatch {
            pattern: self.0.clone(),
            nearest: nearest.iter().take(4).map(full_path).collect(),
            exists,
        }
    }
}

/// Advances a match by one name of the pattern. Bit n of `reached` is set if the pattern so far matches the first n names of
/// the path. The result has the same form.
fn advance(reached: u64, name: &str, path: &[&str]) -> u64 {
    if name == "**" && reached != 0 {
        // From the shortest prefix reached, any number of names may follow, up to the whole path.
        let from = u64::MAX << reached.trailing_zeros();
        return from & (u64::MAX >> (63 - path.len().min(63)));
    }
    let matching = (0..path.len().min(63)).filter(|&n| reached >> n & 1 == 1 && glob_matches(name, path[n]));
    // Name n is the next one after n names, so n + 1 names match.
    matching.fold(0, |mask, n| mask | 2 << n)
}

/// The names of a path that can follow the prefixes in `reached`.
fn names_at<'a>(reached: u64, path: &'a [&str]) -> impl Iterator<Item = &'a str> {
    path.iter()
        .enumerate()
        .filter(move |(n, _)| reached >> n & 1 == 1)
        .map(|(_, name)| *name)
}

/// True if `name` matches `pattern`. A `*` matches any text.
fn glob_matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    let inner = name.strip_prefix(first).and_then(|name| name.strip_suffix(last));
    // The earliest place of each part leaves the most text for the later parts, so no other place has to be tried.
    let after = |name, part| str::split_once(name, part).map(|(_, after)| after);
    inner.is_some_and(|inner| middle.split('*').try_fold(inner, after).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::Kind;

    fn selects(pattern: &str, path: &str) -> bool {
        Selection::new(&[pattern], "..")
            .expect("a pattern")
            .selects(path.split('.'))
    }

    #[test]
    fn patterns_select_signals_and_scopes() {
        let pc = "gpu.gpc[0].sm[1].subcore[2].pc";
        for pattern in [
            "*",
            "**",
            "gpu",
            "gpu.gpc[0].sm[1]",
            "gpu.gpc[0].sm[1].**",
            "gpu.*.*.*.pc",
            "**.pc",
            "**.sm[1].**.pc",
            "gpu.gpc[*].sm[*]",
            "**.**.p*",
            "**.sub*e[2]",
            pc,
        ] {
            assert!(selects(pattern, pc), "{pattern}");
        }
        for pattern in [
            "gpc[0]",
            "gpu.sm[1]",
            "gpu.*.pc",
            "**.p",
            "gpu.gpc[0].sm[11]",
            "gpu.gpc[0].sm[1].subcore[2].pc.more",
            "g",
        ] {
            assert!(!selects(pattern, pc), "{pattern}");
        }
    }

    /// Glob matching by its definition: a `*` takes no character, or one and then any number.
    fn matches_by_definition(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern, name) {
            ([], _) => name.is_empty(),
            ([b'*', rest @ ..], _) => {
                matches_by_definition(rest, name) || !name.is_empty() && matches_by_definition(pattern, &name[1..])
            }
            ([first, rest @ ..], [found, after @ ..]) => first == found && matches_by_definition(rest, after),
            _ => false,
        }
    }

    /// Every text of up to `length` characters of `alphabet`.
    fn texts(alphabet: &str, length: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut begin = 0;
        for _ in 0..length {
            let longer: Vec<String> = all[begin..]
                .iter()
                .flat_map(|text| alphabet.chars().map(move |c| format!("{text}{c}")))
                .collect();
            begin = all.len();
            all.extend(longer);
        }
        all
    }

    #[test]
    fn globs_match_by_their_definition() {
        let names = texts("ab", 5);
        for pattern in texts("ab*", 5) {
            for name in &names {
                let want = matches_by_definition(pattern.as_bytes(), name.as_bytes());
                assert_eq!(glob_matches(&pattern, name), want, "`{pattern}` and `{name}`");
            }
        }
    }

    #[test]
    fn pattern_of_many_stars_is_matched_at_once() {
        // 2^1000 ways to split the name, if each were tried.
        let stars = "*a".repeat(1000);
        let name = "a".repeat(2000);
        assert!(glob_matches(&format!("{stars}*"), &name));
        assert!(!glob_matches(&format!("{stars}*z"), &name));
    }

    fn no_match(pattern: &str) -> String {
        let paths = [
            "gpu.gpc[0].sm[0].pc",
            "gpu.gpc[0].sm[1].pc",
            "gpu.l2.hits",
            "gpu.gpc[1].sm[2].stall",
        ];
        let signals = paths.map(|path| Signal::new(path, Kind::Bit));
        let selection = Selection::new(&["gpu.l2", pattern], "..").expect("a pattern");
        let unmatched = selection.unmatched_pattern(&signals).expect("matches nothing");
        selection.no_match(unmatched, &signals).to_string()
    }

    #[test]
    fn depth_counts_levels_below_the_matched_scope() {
        let pc = ["gpu", "gpc[0]", "sm[1]", "subcore[2]", "pc"];
        for (pattern, deepest_without) in [
            ("gpu.gpc[0].sm[1]", 1),
            ("gpu.gpc[0].sm[1].**", 1),
            ("gpu.gpc[0]", 2),
            ("**", 4),
            ("*.**.sm[*]", 1),
        ] {
            let selection = Selection::new(&[pattern], "..").expect("a pattern");
            assert!(!selection.clone().with_depth(deepest_without).selects(pc), "{pattern}");
            assert!(selection.with_depth(deepest_without + 1).selects(pc), "{pattern}");
        }
        let signal = Selection::new(&["**.pc"], "..").expect("a pattern").with_depth(1);
        assert!(signal.selects(pc));
    }

    #[test]
    fn scope_outside_a_pattern_cannot_be_selected() {
        let selection = Selection::new(&["gpu.gpc[0].sm[1].**.pc"], "..").expect("a pattern");
        assert!(selection.may_select(["gpu", "gpc[0]", "sm[1]", "l1"]));
        assert!(selection.may_select(["gpu", "gpc[0]"]));
        assert!(!selection.may_select(["gpu", "gpc[0]", "sm[10]", "l1"]));
    }

    #[test]
    fn error_of_an_unmatched_pattern_names_the_nearest_scopes() {
        assert_eq!(
            no_match("gpu.gpc[7].sm[0]"),
            "no signal matches `gpu.gpc[7].sm[0]`; `gpu` exists; the nearest: gpu.gpc[0], gpu.gpc[1], gpu.l2"
        );
        assert_eq!(no_match("cpu"), "no signal matches `cpu`; the nearest: gpu");
        assert_eq!(
            no_match("gpu.gpc[*].**.stal"),
            "no signal matches `gpu.gpc[*].**.stal`; `gpu.gpc[*].**` exists; the nearest: gpu.gpc[*].**.stall, gpu.gpc[*].**.pc, \
             gpu.gpc[*].**.sm[0], gpu.gpc[*].**.sm[1]"
        );
    }

    #[test]
    fn windows_are_parsed_and_malformed_ones_refused() {
        let window = |text| Selection::new(&["*"], text).map(|s| (s.window.start.0, s.window.end.0));
        assert_eq!(window("5..9").ok(), Some((5, 9)));
        assert_eq!(window("1_000..").ok(), Some((1000, u64::MAX)));
        assert_eq!(window("..7").ok(), Some((0, 7)));
        assert_eq!(window("..").ok(), Some((0, u64::MAX)));
        for malformed in ["", "5", "9..5", "5..5", "a..b", "5...9", "-1..4"] {
            assert!(window(malformed).is_err(), "{malformed}");
        }
        assert!(Selection::new(&["a..b"], "..").is_err());
    }
}
