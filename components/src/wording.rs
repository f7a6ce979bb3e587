//! Says in the words of a TOML text what a key should be: "a whole number from 0 to 255" instead of `u8`.

/// Names of the reader's types, with words for them.
const WORDS: [(&str, &str); 15] = [
    ("u8", "a whole number from 0 to 255"),
    ("u16", "a whole number from 0 to 65535"),
    ("u32", "a whole number from 0 to 4294967295"),
    ("u64", "a whole number from 0 on"),
    ("usize", "a whole number from 0 on"),
    ("i8", "a whole number from -128 to 127"),
    ("i16", "a whole number from -32768 to 32767"),
    ("i32", "a whole number from -2147483648 to 2147483647"),
    ("i64", "a whole number"),
    ("f32", "a number"),
    ("f64", "a number"),
    ("a boolean", "true or false"),
    ("a sequence", "a list"),
    ("a map", "a table"),
    ("a string", "a text"),
];

/// What the reader says of a text that is nested too deep.
const TOO_DEEP: [&str; 2] = ["cannot recurse further; max recursion depth met", "recursion limit"];

/// Replaces the name of a type behind the word "expected", in an error message of a TOML reader.
///
/// ```
/// use warpwave_components::wording::plain;
/// assert_eq!(
///     plain("invalid type: string \"x\", expected u8"),
///     "invalid type: string \"x\", expected a whole number from 0 to 255"
/// );
/// assert_eq!(plain("expected struct Launch"), "expected a table");
/// assert_eq!(plain("recursion limit"), "nested too deep; use fewer levels");
/// assert_eq!(plain("expected one of `a`, `b`"), "expected one of `a`, `b`");
/// ```
pub fn plain(message: &str) -> String {
    const EXPECTED: &str = "expected ";
    if let Some(before) = TOO_DEEP.iter().find_map(|text| message.strip_suffix(text)) {
        return format!("{before}nested too deep; use fewer levels");
    }
    // The value that the message quotes may hold the same word, so the last one counts.
    let Some(at) = message.rfind(EXPECTED) else {
        return message.to_owned();
    };
    let (before, found) = message.split_at(at + EXPECTED.len());
    let line = found.lines().next().unwrap_or_default();
    let rest = &found[line.len()..];
    let word = WORDS.iter().find(|(name, _)| *name == line).map(|(_, word)| *word);
    let is_table = line.starts_with("struct ") && !line.contains(',');
    let word = word.or(is_table.then_some("a table"));
    format!("{before}{}{rest}", word.unwrap_or(line))
}
