//! The table of `docs/malformed.md`: the kinds, the number of cases by exit code, and some of the weaknesses.

use std::collections::BTreeMap;
use std::path::Path;

use crate::case::Table;

/// Weaknesses that the page names for each kind.
const EXAMPLES: usize = 6;

/// The mark before the table.
const MARK: &str = "<!-- table -->\n\n";

/// Compares the table with the page, or writes it there.
pub fn compare(tables: &[Table]) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/malformed.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (head, old) = text.split_once(MARK).expect("the page has a mark before its table");
    let new = table(tables);
    if std::env::var_os("WARPWAVE_WRITE_MALFORMED").is_some() {
        std::fs::write(&page, format!("{head}{MARK}{new}")).unwrap();
    } else {
        assert_eq!(old, new, "write the page with WARPWAVE_WRITE_MALFORMED=1");
    }
}

fn table(tables: &[Table]) -> String {
    let mut out = "| Kind | Cases | Exit codes | Some of the weaknesses |\n|---|---|---|---|\n".to_owned();
    let mut all = BTreeMap::new();
    for table in tables {
        let mut codes: BTreeMap<i32, usize> = BTreeMap::new();
        for case in &table.cases {
            *codes.entry(case.code).or_default() += 1;
            *all.entry(case.code).or_default() += 1;
        }
        let step = table.cases.len().div_ceil(EXAMPLES);
        let names: Vec<&str> = table
            .cases
            .iter()
            .skip(1)
            .step_by(step)
            .map(|case| &case.name[..])
            .collect();
        out += &format!(
            "| {} | {} | {} | {} |\n",
            table.title,
            table.cases.len(),
            counted(&codes),
            names.join("; ")
        );
    }
    let n: usize = all.values().sum();
    out + &format!("| all | {n} | {} | |\n", counted(&all))
}

/// The number of cases of each exit code, such as `2: 40, 0: 1`.
fn counted(codes: &BTreeMap<i32, usize>) -> String {
    let counts: Vec<String> = codes.iter().map(|(code, n)| format!("{code}: {n}")).collect();
    counts.join(", ")
}
