//! Where resident warps spent their cycles: a bar per state.

use std::fmt::Write;

use super::{Page, section, thousands, words};
use crate::report::stalls;

/// States of which less than this is seen go without their sentence, in per cent.
const WORTH_A_WORD: f64 = 5.0;

pub(super) fn write(out: &mut String, page: &Page<'_>) {
    section(
        out,
        "Where warps spent their cycles",
        "Every resident warp is in one state in every cycle; names are the profiler's. The bars add up to 100 %.",
    );
    let mut table = stalls::table(&page.run.totals);
    table.retain(|stall| stall.warp_cycles > 0);
    table.sort_by_key(|stall| std::cmp::Reverse(stall.warp_cycles));
    let widest = table.first().map_or(1.0, |stall| stall.percent);
    out.push_str("<div class=\"bars\">\n");
    for stall in &table {
        let words = words::of(stall.state);
        let _ = writeln!(
            out,
            "<div class=\"name\">{}</div><div class=\"bar\" title=\"{} warp-cycles: the warp {}\">\
             <i style=\"width:{:.1}%;background:{}\"></i><span>{:.1} %</span></div>",
            stall.state,
            thousands(stall.warp_cycles),
            words.means,
            stall.percent / widest * 78.0,
            words.colour,
            stall.percent
        );
        if stall.percent >= WORTH_A_WORD {
            let _ = writeln!(out, "<div class=\"why\">{}: {}</div>", words.means, words.advice);
        }
    }
    out.push_str("</div>\n");
}
