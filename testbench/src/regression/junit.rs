//! JUnit XML: the results of a suite in the form that CI servers read.

use maud::{Markup, PreEscaped, html};

/// The result of one scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// The scenario.
    pub name: String,
    /// Cycles of all launches. `None` without a report.
    pub cycles: Option<u64>,
    /// Wall seconds of the run.
    pub seconds: f64,
    /// Why it failed. `None` if it passed.
    pub failed: Option<Failed>,
}

/// Why a scenario failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failed {
    /// The kind in a few words, such as `exit code 1`.
    pub kind: String,
    /// The whole text.
    pub text: String,
}

/// The XML text of a suite.
///
/// ```
/// use warpwave::regression::{Case, Failed, junit};
/// let failed = Failed { kind: "exit code 1".to_owned(), text: "x < y".to_owned() };
/// let case = Case { name: "a.toml".to_owned(), cycles: Some(7), seconds: 0.5, failed: Some(failed) };
/// let xml = junit(&[case], 0.5);
/// assert!(xml.contains(r#"<testcase classname="warpwave" name="a.toml" time="0.500">"#));
/// assert!(xml.contains(r#"<failure message="exit code 1">x &lt; y</failure>"#));
/// ```
pub fn junit(cases: &[Case], seconds: f64) -> String {
    let failures = cases.iter().filter(|case| case.failed.is_some()).count();
    let time = |seconds: f64| format!("{seconds:.3}");
    let suite = html! {
        // `maud` writes HTML, but these elements are the same text in XML.
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        testsuites name="warpwave" tests=(cases.len()) failures=(failures) time=(time(seconds)) {
            testsuite name="scenarios" tests=(cases.len()) failures=(failures) errors="0" time=(time(seconds)) {
                @for case in cases {
                    testcase classname="warpwave" name=(plain(&case.name)) time=(time(case.seconds)) { (contents(case)) }
                }
            }
        }
    };
    suite.into_string() + "\n"
}

fn contents(case: &Case) -> Markup {
    html! {
        @if let Some(cycles) = case.cycles {
            // HTML has no empty element of this name, so it is written as text.
            properties { (PreEscaped(format!("<property name=\"cycles\" value=\"{cycles}\"/>"))) }
        }
        @if let Some(failed) = &case.failed {
            failure message=(plain(&failed.kind)) { (plain(&failed.text)) }
        }
    }
}

/// A text without the control characters that XML forbids.
fn plain(text: &str) -> String {
    text.chars()
        .filter(|&c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suite_counts_its_failures_and_has_no_control_characters() {
        let case = |name: &str, failed: Option<&str>| Case {
            name: name.to_owned(),
            cycles: failed.is_none().then_some(12),
            seconds: 1.0,
            failed: failed.map(|text| Failed {
                kind: "exit code 3".to_owned(),
                text: text.to_owned(),
            }),
        };
        let xml = junit(&[case("a", None), case("b", Some("trap\u{1b}[0m \u{0}"))], 2.0);
        assert!(xml.starts_with("<?xml version=\"1.0\""), "{xml}");
        assert!(
            xml.contains("<testsuite name=\"scenarios\" tests=\"2\" failures=\"1\" errors=\"0\" time=\"2.000\">"),
            "{xml}"
        );
        assert!(xml.contains("<property name=\"cycles\" value=\"12\"/>"), "{xml}");
        assert!(xml.contains(">trap[0m </failure>"), "{xml}");
    }
}
