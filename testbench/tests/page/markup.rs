//! The markup of the page: balanced, self-contained, and with the right numbers on each line.

use super::{files, page, page_of};
use warpwave_components::gpu::LaunchError;
use warpwave_components::sm::subcore::stall;
use warpwave_hw::error::SimError;
use warpwave_hw::time::Cycle;

/// Tags without an end tag.
const VOID: [&str; 3] = ["meta", "!doctype", "input"];

/// The first tag without a matching end tag.
fn unbalanced(markup: &str) -> Option<String> {
    let mut open = Vec::new();
    for tag in markup.split('<').skip(1) {
        let (tag, _) = tag.split_once('>')?;
        let name = tag.split_whitespace().next()?;
        if let Some(name) = name.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Some(tag.to_owned());
            }
        } else if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
        }
    }
    open.pop().map(str::to_owned)
}

/// The issues of a line on the page.
fn issues(markup: &str, anchor: &str, line: usize) -> Option<u64> {
    let (_, row) = markup.split_once(&format!("<tr id=\"{anchor}-{line}\""))?;
    let (row, _) = row.split_once("</tr>")?;
    let cells: Vec<&str> = row.split("<td").collect();
    let (_, text) = cells.get(2)?.split_once('>')?;
    let digits: String = text.split('<').next()?.chars().filter(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[test]
fn page_is_balanced_and_loads_nothing() {
    let (_, _, text) = page("transpose_tiled");
    assert_eq!(unbalanced(&text), None);
    assert_eq!(unbalanced("<p><b>x</p></b>").as_deref(), Some("/p"));
    let namespace = "http://www.w3.org/2000/svg";
    let outside = text.replace(namespace, "");
    for word in ["http:", "https:", "<script", "<link", "<img", "src=", "@import", "url("] {
        assert!(!outside.contains(word), "the page has `{word}`");
    }
}

#[test]
fn roofline_and_memory_chart_have_the_numbers_of_the_metrics() {
    // A guard leaves 4 lanes on, so the multiply-add counts 8 operations.
    let ptx = ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out) {\n.reg .b32 %r<4>; .reg .b64 %rd<4>; \
               .reg .f32 %f<3>; .reg .pred %p1; .shared .align 4 .b32 sum;\nld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\n\
               mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\nld.global.f32 %f1, [%rd3];\nsetp.lt.u32 %p1, %r1, 4;\n\
               @%p1 fma.rn.f32 %f1, %f1, %f1, %f1;\nred.shared.add.u32 [sum], %r1;\nst.global.f32 [%rd3], %f1;\nret;\n}\n";
    let text = "ptx = \"k.ptx\"\nbuffers.o = { dtype = \"f32\", shape = [32] }\n[[launch]]\ngrid = 1\nblock = 32\nargs = [\"o\"]\n";
    let folder = tempfile::tempdir().unwrap();
    let (run, _, page) = page(&files(folder.path(), &[("k.ptx", ptx), ("s.toml", text)]));
    let bytes = run.totals.sum("channel", "bytes_read").unwrap() + run.totals.sum("channel", "bytes_written").unwrap();
    assert_eq!(bytes, 128);
    // 8 operations on 128 bytes.
    assert!(page.contains("launch 0, k: 0.06 operations a byte"), "{page}");
    // The atomics alone use shared memory.
    assert!(page.contains("<b>Shared memory</b>"));
}

#[test]
fn repeated_run_gives_the_same_page() {
    assert!(page("diverge_nested").2 == page("diverge_nested").2);
}

#[test]
fn costs_of_all_lines_and_of_all_intervals_add_up_to_the_resident_cycles() {
    for name in ["saxpy", "transpose_tiled", "diverge_nested"] {
        let (run, profile, _) = page(name);
        let resident = run.totals.sum("scheduler", "warp_cycles").unwrap();
        assert_eq!(
            profile.costs().map(|(_, cost)| cost.total()).sum::<u64>(),
            resident,
            "{name}"
        );
        assert_eq!(profile.intervals().iter().flatten().sum::<u64>(), resident, "{name}");
        let issues: u64 = profile.costs().map(|(_, cost)| cost.issues()).sum();
        assert_eq!(run.totals.sum("scheduler", "inst_issued"), Some(issues), "{name}");
        let lanes: u64 = profile.costs().map(|(_, cost)| cost.lanes).sum();
        assert_eq!(run.totals.sum("scheduler", "thread_inst"), Some(lanes), "{name}");
        for (state, cycles) in stall::NAMES
            .iter()
            .enumerate()
            .map(|(n, name)| (name, profile.costs().map(|(_, cost)| cost.states[n]).sum::<u64>()))
        {
            let counter = warpwave::report::stalls::STATES
                .iter()
                .find(|(name, _)| name == state)
                .unwrap()
                .1;
            assert_eq!(run.totals.sum("scheduler", counter), Some(cycles), "{name}: {state}");
        }
    }
}

/// The first sentence of the page.
fn verdict(text: &str) -> &str {
    let (_, verdict) = text.split_once("<p class=\"verdict\"><b>").unwrap();
    verdict.split_once("</b>").unwrap().0
}

#[test]
fn first_sentence_is_the_diagnosis() {
    let says = |scenario, words: &str| {
        let text = page(scenario).2;
        assert!(verdict(&text).contains(words), "{scenario}: {}", verdict(&text));
    };
    says("transpose_tiled", "bank conflict at line 121");
    says("transpose_naive", "Uncoalesced store at line 66");
    says("diverge_nested", "Divergence");
    let padded = page("transpose_padded").2;
    assert!(!padded.contains("bank conflict at"), "a padded tile has no conflict");
}

const PTX: &str = "
.version 7.8
.target sm_80
.address_size 64
.visible .entry chain(.param .u64 out) {
    .reg .b32 %r<4>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    .loc 1 2 5
    mov.u32 %r1, %tid.x;
    mul.lo.s32 %r2, %r1, %r1;
    .loc 1 3 5
    xor.b32 %r3, %r2, 5;
    .loc 1 4 5
    st.global.u32 [%rd1], %r3;
    .loc 1 5 1
    ret;
}
.file 1 \"chain.cu\"
";

const CU: &str = "__global__ void chain(unsigned *out) {
    int square = threadIdx.x * threadIdx.x;
    square ^= 5;
    out[0] = square < 0 ? 0 : square;
}
";

const TOML: &str = "
title = \"Squares & <others>\"
ptx = \"kernel.ptx\"
[buffers.out]
dtype = \"u32\"
shape = [1]
init = { fill = 0 }
[[launch]]
grid = 3
block = 64
args = [\"out\"]
";

#[test]
fn lines_of_ptx_and_of_the_source_have_the_issues_of_their_instructions() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = files(
        folder.path(),
        &[("kernel.ptx", PTX), ("chain.cu", CU), ("kernel.toml", TOML)],
    );
    let (_, _, text) = page(&scenario);
    assert_eq!(unbalanced(&text), None);
    // Six warps. S2R and IMAD are of line 2; the two moves of the address belong to the store.
    let issued = [(2, 2 * 6), (3, 6), (4, 3 * 6), (5, 6)];
    for (line, issued) in issued {
        assert_eq!(issues(&text, "source-1", line), Some(issued), "chain.cu:{line}");
    }
    for (line, issued) in [(9, 6), (10, 6), (12, 6), (14, 3 * 6), (16, 6)] {
        assert_eq!(issues(&text, "ptx", line), Some(issued), "kernel.ptx:{line}");
    }
    assert_eq!(issues(&text, "ptx", 7), None);
    assert!(text.contains("Source: chain.cu") && text.contains("out[0] = square &lt; 0 ? 0 : square;"));
    assert!(text.contains("<h1>Squares &amp; &lt;others&gt;</h1>"));
}

/// All values of the attribute `id`.
fn ids(markup: &str) -> Vec<&str> {
    let values = markup.split(" id=\"").skip(1);
    values.filter_map(|rest| Some(rest.split_once('"')?.0)).collect()
}

#[test]
fn lines_of_two_source_files_have_ids_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let ptx = PTX.replace(".loc 1 3 5", ".loc 2 3 5") + ".file 2 \"inlined.cu\"\n";
    let scenario = files(
        folder.path(),
        &[
            ("kernel.ptx", &ptx),
            ("chain.cu", CU),
            ("inlined.cu", CU),
            ("kernel.toml", TOML),
        ],
    );
    let (_, _, text) = page(&scenario);
    assert_eq!(issues(&text, "source-1", 4), Some(3 * 6), "chain.cu");
    assert_eq!(issues(&text, "source-2", 3), Some(6), "inlined.cu");
    let mut all = ids(&text);
    let n = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), n, "an id occurs twice");
}

/// A name that would end its element and run a script.
const HOSTILE: &str = "</td></title><script>alert(\"x\")</script>&";

#[test]
fn hostile_names_of_kernel_scenario_gpu_files_and_buffers_are_escaped() {
    let folder = tempfile::tempdir().unwrap();
    let ptx = PTX.replace("chain.cu", "<script>.cu");
    let source = CU.replace("square ^= 5", HOSTILE);
    let scenario = files(
        folder.path(),
        &[("kernel.ptx", &ptx), ("<script>.cu", &source), ("kernel.toml", TOML)],
    );
    let (_, _, text) = page_of(&scenario, |scenario, run| {
        scenario.name = HOSTILE.to_owned();
        scenario.title = Some(HOSTILE.to_owned());
        scenario.claim = Some(HOSTILE.to_owned());
        scenario.ptx_path = HOSTILE.to_owned();
        scenario.buffers[0].name = HOSTILE.to_owned();
        scenario.ptx = scenario.ptx.replace("%r2, 5;", HOSTILE);
        run.config.name = HOSTILE.to_owned();
        run.launches[0].entry = HOSTILE.to_owned();
        let error = LaunchError::Sim(SimError::Deadlock {
            at: Cycle(1),
            waits: vec![HOSTILE.to_owned()],
        });
        run.stopped = Some((0, error));
    });
    assert_eq!(unbalanced(&text), None);
    assert!(!text.contains("<script"));
    let escaped = "&lt;/td&gt;&lt;/title&gt;&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&amp;";
    // Scenario and GPU twice each: 4. Title, claim, PTX file and error: 4. The kernel in the table, its tab and its tab's title: 3.
    // A line of PTX and a line of the source: 2.
    assert_eq!(text.matches(escaped).count(), 13);
    assert!(text.contains("<h2>Source: &lt;script&gt;.cu</h2>"));
}

#[test]
fn missing_source_is_listed_by_line_number() {
    let folder = tempfile::tempdir().unwrap();
    let (_, _, text) = page(&files(folder.path(), &[("kernel.ptx", PTX), ("kernel.toml", TOML)]));
    assert!(text.contains("The file was not found"));
    assert_eq!(issues(&text, "source-1", 3), Some(6));
}
