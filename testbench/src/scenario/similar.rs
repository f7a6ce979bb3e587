//! Finds the known name that is most similar to a misspelt one.

/// Maximum number of bytes of a word that is compared. A longer one resembles no candidate.
const MAX_WORD: usize = 100;

/// The candidate most similar to `word`, if it is close enough for a typing error.
///
/// ```
/// use warpwave::scenario::nearest;
/// assert_eq!(nearest("dytpe", ["dtype", "shape"]), Some("dtype".to_owned()));
/// assert_eq!(nearest("colour", ["dtype", "shape"]), None);
/// assert_eq!(nearest("shape", ["shape"]), None);
/// assert_eq!(nearest(&"x".repeat(101), ["dtype"]), None);
/// ```
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    if word.len() > MAX_WORD {
        return None;
    }
    // One typing error in three characters, and at least one.
    let limit = 1 + word.chars().count() / 3;
    candidates
        .into_iter()
        // The word itself may be a name elsewhere, but not here.
        .filter(|&candidate| candidate != word)
        .map(|candidate| (strsim::osa_distance(word, candidate), candidate))
        .filter(|&(distance, _)| distance <= limit)
        .min()
        .map(|(_, candidate)| candidate.to_owned())
}

/// The text "; did you mean …?". Empty without a candidate.
pub(super) fn hint(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}
