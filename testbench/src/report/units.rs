//! Numbers with units: bytes and rates with a prefix, so that a reader need not count digits.

/// Prefixes for powers of 1000.
const PREFIXES: [&str; 5] = ["", "k", "M", "G", "T"];

/// A number with a prefixed unit and three digits, such as `1.23 kB`.
///
/// ```
/// use warpwave::report::units::scaled;
/// assert_eq!(scaled(999.0, "B"), "999 B");
/// assert_eq!(scaled(70_208.0, "B"), "70.2 kB");
/// assert_eq!(scaled(3.35e12, "B/s"), "3.35 TB/s");
/// ```
pub fn scaled(number: f64, unit: &str) -> String {
    let mut scaled = number;
    let mut prefixes = PREFIXES.iter();
    let mut prefix = prefixes.next().copied().unwrap_or_default();
    for larger in prefixes {
        // From 999.5 on, three digits would round to 1000.
        if scaled.abs() < 999.5 {
            break;
        }
        scaled /= 1000.0;
        prefix = larger;
    }
    format!("{} {prefix}{unit}", digits(scaled))
}

/// A count with its noun: `1 block`, but `40 blocks`.
///
/// ```
/// use warpwave::report::units::count;
/// assert_eq!([0, 1, 2].map(|n| count(n, "SM")), ["0 SMs", "1 SM", "2 SMs"]);
/// assert_eq!(count(2, "launch"), "2 launches");
/// ```
pub fn count(n: u64, noun: &str) -> String {
    let plural = if noun.ends_with("ch") { "es" } else { "s" };
    format!("{n} {noun}{}", if n == 1 { "" } else { plural })
}

/// A number with three digits. A whole number below 1000 has no fraction.
///
/// ```
/// use warpwave::report::units::digits;
/// assert_eq!([4.0, 4.494, 12.34, 0.038, 0.0019, 4096.0].map(digits), ["4", "4.49", "12.3", "0.04", "0.0019", "4096"]);
/// ```
pub fn digits(number: f64) -> String {
    match number.abs() {
        n if n == n.round() || n >= 99.95 => format!("{number:.0}"),
        n if n >= 9.995 => format!("{number:.1}"),
        n if n < 0.01 => format!("{number:.4}"),
        _ => format!("{number:.2}"),
    }
}

/// True if numbers of this unit need a prefix.
pub fn is_scaled(unit: &str) -> bool {
    matches!(unit, "B" | "B/s")
}
