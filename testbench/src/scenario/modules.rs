//! The PTX texts of a scenario that names several, linked to one program. Lines and findings lead back to the texts.

use warpwave_ptx::diag::render_all;
use warpwave_ptx::{Diagnostic, LinkFinding, Linked, link};

use super::Scenario;

/// PTX texts with their paths, and the program that they form.
#[derive(Clone, Debug)]
pub struct Modules {
    paths: Vec<String>,
    texts: Vec<String>,
    linked: Linked,
}

impl Modules {
    /// Links texts. There is one path for each text.
    ///
    /// # Errors
    /// All findings and their number, if a text is malformed or two texts clash.
    pub(super) fn link(paths: Vec<String>, texts: Vec<String>) -> Result<Modules, (usize, String)> {
        let parts: Vec<&str> = texts.iter().map(String::as_str).collect();
        match link(&parts) {
            Ok(linked) => Ok(Modules { paths, texts, linked }),
            Err(findings) => Err((findings.len(), render(&paths, &texts, findings))),
        }
    }

    /// The text of the program.
    pub(super) fn text(&self) -> &str {
        &self.linked.text
    }

    /// The path of a text and the line in it, for a line of the program. Both lines are counted from 1.
    ///
    /// # Panics
    /// If `line` is 0.
    pub fn place(&self, line: u32) -> (&str, u32) {
        let (text, line) = self.linked.origin_of_line(line);
        (&self.paths[text], line)
    }

    /// Path and text of each module, in order.
    pub fn parts(&self) -> impl Iterator<Item = (&str, &str)> {
        let paths = self.paths.iter().map(String::as_str);
        paths.zip(self.texts.iter().map(String::as_str))
    }

    /// Findings of the program as text, each with the line of its module.
    pub(super) fn render(&self, findings: &[Diagnostic]) -> String {
        let findings = findings.iter().map(|finding| self.linked.origin(finding)).collect();
        render(&self.paths, &self.texts, findings)
    }
}

impl Scenario {
    /// The PTX file and the line in it, for a line of the program. Lines are counted from 1.
    pub fn ptx_place(&self, line: u32) -> (&str, u32) {
        match &self.modules {
            // Line 0 is an instruction without a line in the text.
            Some(modules) if line > 0 => modules.place(line),
            _ => (&self.ptx_path, line),
        }
    }

    /// Findings of the program as text, each with its file and line.
    pub fn render(&self, findings: &[Diagnostic]) -> String {
        match &self.modules {
            Some(modules) => modules.render(findings),
            None => render_all(findings, &self.ptx_path, &self.ptx),
        }
    }
}

// Equal texts in the same order link to the same program.
impl PartialEq for Modules {
    fn eq(&self, other: &Modules) -> bool {
        (&self.paths, &self.texts) == (&other.paths, &other.texts)
    }
}

/// Findings as text, those of the first module first.
fn render(paths: &[String], texts: &[String], findings: Vec<LinkFinding>) -> String {
    let mut of_text = vec![Vec::new(); texts.len()];
    for LinkFinding { text, finding } in findings {
        of_text[text].push(finding);
    }
    let all = of_text.iter().zip(paths.iter().zip(texts));
    let shown = all.filter(|(findings, _)| !findings.is_empty());
    let shown: Vec<String> = shown
        .map(|(findings, (path, text))| render_all(findings, path, text))
        .collect();
    shown.join("\n")
}
