//! Speed of the PTX front end: 4 MB of compiler output, one long block, many loops, and thousands of live values.
//!
//! Each figure is the best of five runs. The columns are `parse`, `compile`, and `load` with the first kernel alone. The last two
//! include `parse`.
//!
//! ```text
//! cargo bench -p warpwave-ptx                 all texts
//! cargo bench -p warpwave-ptx -- corpus       texts with `corpus` in their names
//! ```

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Size of a text in bytes.
const SIZE: usize = 4_000_000;
const RUNS: usize = 5;

/// Function that makes a text.
type Source = fn() -> String;

fn main() {
    // Cargo adds `--bench`.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| name.contains(wanted));
    println!(
        "{:<24} {:>5} {:>22} {:>22} {:>22}",
        "text", "MB", "parse", "compile", "load"
    );
    let texts: [(&str, Source); 6] = [
        ("kernels of the corpus", kernels),
        ("49 kernels", || blocks(49)),
        ("one block", one_block),
        ("many loops", many_loops),
        ("4,000 live values", || live_values(4_000)),
        ("20,000 live values", || live_values(20_000)),
    ];
    for (name, text) in texts.into_iter().filter(|(name, _)| is_wanted(name)) {
        let text = text();
        let read = best(|| assert!(warpwave_ptx::parse(&text).is_ok()));
        let made = best(|| {
            let module =
                warpwave_ptx::compile(&text).unwrap_or_else(|findings| panic!("{}", findings[0].render(name, &text)));
            assert_eq!(module.unsupported().count(), 0);
        });
        let loaded = best(|| load_first(&text));
        println!(
            "{name:<24} {:>5.2} {} {} {}",
            megabytes(&text),
            rate(&text, read),
            rate(&text, made),
            rate(&text, loaded)
        );
    }
}

/// Loads a text with its first kernel alone.
fn load_first(text: &str) {
    // A comment makes another text each time, because the process keeps modules.
    static RUN: AtomicUsize = AtomicUsize::new(0);
    let text = format!("{text}// {}\n", RUN.fetch_add(1, Ordering::Relaxed));
    let first = AtomicBool::new(true);
    let module = warpwave_ptx::load(&text, |_| first.swap(false, Ordering::Relaxed)).expect("the text was compiled");
    assert!(module.entries[0].is_compiled());
}

fn megabytes(text: &str) -> f64 {
    text.len() as f64 / 1e6
}

fn rate(text: &str, time: Duration) -> String {
    format!(
        "{:>7.3} s {:>7.1} MB/s",
        time.as_secs_f64(),
        megabytes(text) / time.as_secs_f64()
    )
}

fn best(mut work: impl FnMut()) -> Duration {
    let time = |_| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..RUNS).map(time).min().unwrap_or_default()
}

/// Repeats the corpus texts of nvcc, with new module-scope names each time.
fn kernels() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testbench/corpus/ptx/nvcc13.5-sm_80");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let texts = paths.iter().map(|path| fs::read_to_string(path).unwrap());
    // Names with an external definition must not change.
    let texts: Vec<String> = texts.filter(|text| !text.contains(".extern")).collect();
    let mut out = String::from(".version 9.0\n.target sm_80\n.address_size 64\n");
    for round in 0.. {
        for text in &texts {
            out += &renamed(text, round);
            if out.len() >= SIZE {
                return out;
            }
        }
    }
    out
}

/// Returns a text without its header directives. Its module-scope names get the suffix `_round`.
fn renamed(text: &str, round: usize) -> String {
    let module = warpwave_ptx::parse(text).expect("the corpus loads");
    let variables = module.variables.iter().map(|variable| variable.name.text);
    let names: HashSet<&str> = variables
        .chain(module.functions.iter().map(|function| function.name.text))
        .collect();
    let is_head = |line: &&str| {
        [".version", ".target", ".address_size"]
            .iter()
            .any(|head| line.starts_with(head))
    };
    let mut out = String::new();
    for line in text.lines().filter(|line| !is_head(line)) {
        for word in line.split_inclusive(|c: char| !c.is_alphanumeric() && !"_$%".contains(c)) {
            let name = word.trim_end_matches(|c: char| !c.is_alphanumeric() && !"_$%".contains(c));
            out += name;
            if names.contains(name) {
                out += &format!("_{round}");
            }
            out += &word[name.len()..];
        }
        out.push('\n');
    }
    out
}

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n) {\n\
                    .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .f32 %f<99>; .reg .pred %p<9>;\n\
                    ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; mov.f32 %f0, 0f00000000; mov.u32 %r2, 0;\n";

/// One long block, as from an unrolled loop: a register for each value.
fn one_block() -> String {
    let mut out = HEAD.replace("%f<99>", "%f<99999>");
    for n in 0.. {
        let (register, offset) = (n + 1, 4 * n);
        out += &format!(
            "ld.global.f32 %f{register}, [%rd1+{offset}];\nfma.rn.f32 %f0, %f{register}, %f{register}, %f0;\n"
        );
        if out.len() >= SIZE {
            break;
        }
    }
    out + "st.global.f32 [%rd1], %f0;\nret;\n}\n"
}

/// `n` kernels, each of one block with 500 loads.
fn blocks(n: usize) -> String {
    let (head, kernel) = HEAD.split_once(".visible").unwrap_or_default();
    let mut out = head.to_owned();
    for number in 0..n {
        out += &format!(".visible{}", kernel.replace(" k(", &format!(" k{number}(")));
        for offset in 0..500 {
            out += &format!(
                "ld.global.f32 %f1, [%rd1+{}];\nfma.rn.f32 %f0, %f1, %f1, %f0;\n",
                4 * offset
            );
        }
        out += "st.global.f32 [%rd1], %f0;\nret;\n}\n";
    }
    out
}

/// Many small loops one after the other. The text has a tenth of the size, because the time grows faster than the block count.
fn many_loops() -> String {
    let mut out = HEAD.to_owned();
    for n in 0.. {
        out += &format!(
            "$L{n}:\nmul.wide.u32 %rd2, %r2, 4;\nadd.s64 %rd3, %rd1, %rd2;\nld.global.f32 %f1, [%rd3];\nfma.rn.f32 %f0, %f1, %f1, %f0;\n\
             add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, %r1;\n@%p1 bra $L{n};\n"
        );
        if out.len() >= SIZE / 10 {
            break;
        }
    }
    out + "st.global.f32 [%rd1], %f0;\nret;\n}\n"
}

/// `n` loads, then `n` products of their results. All loaded values are live at the same time, so most are spilled.
fn live_values(n: usize) -> String {
    let mut out = HEAD.replace("%f<99>", &format!("%f<{}>", n + 1));
    for value in 1..=n {
        out += &format!("ld.global.f32 %f{value}, [%rd1+{}];\n", 4 * value);
    }
    for value in 1..=n {
        out += &format!("fma.rn.f32 %f0, %f{value}, %f{value}, %f0;\n");
    }
    out + "st.global.f32 [%rd1], %f0;\nret;\n}\n"
}
