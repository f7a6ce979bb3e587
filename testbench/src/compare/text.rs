//! A comparison as text.

use std::fmt::Write;

use super::Comparison;

/// Rows of metrics, and of lines, in a short text.
const SHORT: usize = 20;

/// Most characters of a line of PTX.
const WIDTH: usize = 60;

impl Comparison {
    /// The comparison as text: names, sentence, metrics, lines. `all` shows every row.
    pub fn text(&self, all: bool) -> String {
        let mut out = format!("A  {}\nB  {}\n\n{}\n", self.a, self.b, self.sentence);
        let most = if all { usize::MAX } else { SHORT };
        if !self.metrics.is_empty() {
            let _ = writeln!(out, "\n{:>16} {:>16} {:>10}  {:<14} metric", "A", "B", "change", "unit");
            for row in self.metrics.iter().take(most) {
                let (a, b) = (row.a.to_string(), row.b.to_string());
                let _ = writeln!(
                    out,
                    "{a:>16} {b:>16} {:>10}  {:<14} {}",
                    row.change(),
                    row.unit,
                    row.name
                );
            }
        }
        // The cut must show, or a missing row would read as equal.
        let left = self.metrics.len().saturating_sub(most);
        let more = if left == 0 {
            String::new()
        } else {
            format!(", {left} more differ (--all shows them)")
        };
        let _ = writeln!(out, "\n{} metrics are equal{more}", self.equal_metrics);
        if !self.lines.is_empty() {
            self.line_table(&mut out, most);
        }
        out
    }

    fn line_table(&self, out: &mut String, most: usize) {
        let head = [
            "line",
            "issues A",
            "B",
            "warp-cycles A",
            "B",
            "change",
            "longest wait A",
            "B",
        ];
        let [line, issues_a, issues_b, cycles_a, cycles_b, change, wait_a, wait_b] = head;
        let _ = writeln!(
            out,
            "\n{line:<10} {issues_a:>10} {issues_b:>10} {cycles_a:>14} {cycles_b:>12} {change:>12}  {wait_a:<18} {wait_b:<18} PTX"
        );
        for row in self.lines.iter().take(most) {
            let ([issues_a, issues_b], [cycles_a, cycles_b], [wait_a, wait_b]) =
                (row.issues, row.warp_cycles, row.stall);
            // Cut by characters: a byte index could split one.
            let text: String = row.text.chars().take(WIDTH).collect();
            let _ = writeln!(
                out,
                "{:<10} {issues_a:>10} {issues_b:>10} {cycles_a:>14} {cycles_b:>12} {:>+12}  {wait_a:<18} {wait_b:<18} {text}",
                row.place(),
                row.gain()
            );
        }
        let left = self.lines.len().saturating_sub(most);
        if left > 0 {
            let _ = writeln!(out, "{left} more lines differ (--all shows them)");
        }
    }
}
