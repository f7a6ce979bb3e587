//! `warpwave check`: its output for the texts of real compilers, and the listing with control words.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{assert_fails, warpwave, warpwave_in};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Every text of the corpus, and the PTX texts of other tests.
fn texts() -> Vec<PathBuf> {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let elsewhere = fs::read_to_string(corpus().join("elsewhere.txt")).unwrap();
    let owned = elsewhere.lines().map(|line| {
        let (_, there) = line.split_once(' ').unwrap();
        corpus().join("../..").join(there)
    });
    let mut texts: Vec<_> = entries(&corpus().join("ptx"))
        .iter()
        .flat_map(|folder| entries(folder))
        .collect();
    texts.extend(owned);
    texts.sort();
    texts
}

/// The kernels of a text, found without the parser: names after `.entry`.
fn kernels(text: &str) -> Vec<&str> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let heads = code.filter_map(|line| line.split_once(".entry ").map(|(_, name)| name));
    heads.map(|name| name.trim().trim_end_matches('(')).collect()
}

#[test]
fn every_text_of_the_corpus_is_listed_by_kernel_with_unsupported_statements() {
    let texts = texts();
    assert_eq!(texts.len(), 233);
    let mut refused = Vec::new();
    for path in &texts {
        let text = fs::read_to_string(path).unwrap();
        let answer = warpwave(&["check", path.to_str().unwrap()]);
        let rows: HashSet<&str> = answer
            .out
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        for kernel in kernels(&text) {
            assert!(
                rows.contains(kernel),
                "{}: no row for {kernel}: {}",
                path.display(),
                answer.out
            );
        }
        assert!(!kernels(&text).is_empty(), "{}", path.display());
        // A compiler writes every register that it reads.
        assert!(!answer.out.contains("writes register"), "{}", answer.out);
        match answer.code {
            0 => assert_eq!(answer.err, "", "{}", path.display()),
            _ => refused.push((path, answer)),
        }
    }
    let [(path, answer)] = &refused[..] else {
        panic!(
            "one text, not {:?}",
            refused.iter().map(|(path, _)| path).collect::<Vec<_>>()
        )
    };
    assert!(path.ends_with("triton3.9.0-sm_100/matmul.ptx"), "{}", path.display());
    assert_fails(answer, 2, &["statements are not supported"]);
    for named in ["alloc", "ld", "st", "mma", "commit", "dealloc", "wait"] {
        let named = format!("unsupported: instruction `tcgen05.{named}");
        assert!(answer.out.contains(&named), "{named}: {}", answer.out);
    }
}

#[test]
fn listing_has_the_control_words_of_the_named_gpu() {
    let text = ".version 7.8\n.target sm_80\n.entry k(.param .u64 p)\n{\n.reg .b64 %rd<2>;\n.reg .f64 %d<4>;\nld.param.u64 %rd1, [p];\n\
                ld.global.f64 %d1, [%rd1];\nadd.f64 %d2, %d1, %d1;\nadd.f64 %d3, %d2, %d1;\nst.global.f64 [%rd1], %d3;\nret;\n}\n";
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("k.ptx"), text).unwrap();
    let answer = warpwave_in(folder.path(), &["check", "k.ptx", "--code", "--gpu", "tiny"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    // On `tiny` a double takes 8 cycles and a move 4. The counter of a load is 2 or higher. It is seen two cycles later.
    let expected = "
k on tiny
B: counters it waits for. R, W: counters for its reads and its result. Y: yield. S: cycles to the next. Then reused operands
   0: [B------:R-:W-:-:S01:---] MOV R0, c[0][0x160]
   1: [B------:R-:W-:-:S04:---] MOV R1, c[0][0x164]
   2: [B------:R-:W2:-:S02:---] LD.B64 R2, [R0]
   3: [B--2---:R-:W-:-:S08:---] DADD.F64 R4, R2, R2
   4: [B------:R-:W-:-:S08:---] DADD.F64 R2, R4, R2
   5: [B------:R-:W-:-:S01:---] ST.B64 [R0], R2
   6: [B------:R-:W-:-:S01:---] EXIT
";
    assert!(answer.out.ends_with(expected), "{}", answer.out);
    assert_fails(&warpwave(&["check", "k.ptx", "--gpu", "tiny"]), 2, &["--code"]);
    let unknown = warpwave_in(folder.path(), &["check", "k.ptx", "--code", "--gpu", "tini"]);
    assert_fails(&unknown, 2, &["`tini`", "`tiny`"]);
}

#[test]
fn register_that_nothing_writes_has_a_warning_and_no_failure() {
    let text = ".version 7.8\n.target sm_80\n.entry k(.param .u64 p)\n{\n.reg .b64 %rd<2>;\n.reg .b32 %r<3>;\n\
                ld.param.u64 %rd1, [p];\nmov.u32 %r1, 7;\nst.global.u32 [%rd1], %r2;\nret;\n}\n";
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("k.ptx"), text).unwrap();
    let answer = warpwave_in(folder.path(), &["check", "k.ptx"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    let says = "warning: nothing in the kernel writes register `%r2`\n  --> k.ptx:9:23\n";
    assert!(answer.out.starts_with(says), "{}", answer.out);
    assert!(
        answer.out.contains("its value is undefined: write it before this line"),
        "{}",
        answer.out
    );
}

/// The start of `cooperative_groups::this_grid().sync()`, as nvcc writes it.
const GRID_BARRIER: &str = ".version 8.0\n.target sm_80\n.entry k()\n{\n.reg .b32 %r<5>;\n.reg .b64 %rd<6>;\n.reg .pred %p<2>;\n\
    mov.u32 %r3, %envreg2;\ncvt.u64.u32 %rd4, %r3;\nmov.u32 %r4, %envreg1;\ncvt.u64.u32 %rd5, %r4;\nbfi.b64 %rd1, %rd5, %rd4, 32, 32;\n\
    setp.ne.s64 %p1, %rd1, 0;\n@%p1 bra ON;\ntrap;\nON:\nret;\n}\n";

#[test]
fn branch_to_itself_has_a_warning_at_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\nA:\n\tbra B;\nB:\n\tbra A;\n}\n";
    fs::write(folder.path().join("k.ptx"), text).unwrap();
    let answer = warpwave_in(folder.path(), &["check", "k.ptx"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    let says = "warning: this branch to itself has no exit: a warp that gets there never ends\n  --> k.ptx:";
    assert!(answer.out.starts_with(says), "{}", answer.out);
}

#[test]
fn grid_barrier_of_cooperative_groups_has_a_warning_and_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("k.ptx"), GRID_BARRIER).unwrap();
    let answer = warpwave_in(folder.path(), &["check", "k.ptx"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    let says = "warning: this register is 0 unless the launch is cooperative\n  --> k.ptx:8:14\n";
    assert!(answer.out.starts_with(says), "{}", answer.out);
    assert!(
        answer.out.contains("set `cooperative = true` in the launch"),
        "{}",
        answer.out
    );
    assert_eq!(answer.out.matches("warning: ").count(), 1, "{}", answer.out);
    let run = |cooperative: bool| {
        let launch = format!("[[launch]]\ngrid = 1\nblock = 1\ncooperative = {cooperative}\n");
        fs::write(folder.path().join("s.toml"), format!("ptx = \"k.ptx\"\n{launch}")).unwrap();
        warpwave_in(folder.path(), &["run", "s.toml", "--gpu", "tiny", "--no-flight"])
    };
    let says = ["grid barrier of cooperative groups", "has `cooperative = true`"];
    assert_fails(&run(false), 3, &says);
    let cooperative = run(true);
    assert_eq!((cooperative.code, cooperative.err.as_str()), (0, ""));
}

/// A module with unsupported data. The kernel `near` uses the table, `far` does not.
const UNSUPPORTED_DATA: &str = ".version 8.0\n.target sm_80\n.global .u32 words[4];\n.global .u32 table[2] = {words, 7};\n\
    .entry near()\n{\n.reg .b32 %r;\nld.global.u32 %r, [table];\nst.global.u32 [words], %r;\nret;\n}\n.entry far()\n{\nret;\n}\n";

#[test]
fn unsupported_data_fails_the_check_and_the_run_of_a_kernel_that_uses_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("k.ptx"), UNSUPPORTED_DATA).unwrap();
    let finding = "unsupported: an address of 64 bits in a variable of `.u32`\n  --> k.ptx:4:26\n";
    let check = warpwave_in(folder.path(), &["check", "k.ptx"]);
    assert_fails(&check, 2, &["k.ptx: 1 statement is not supported"]);
    assert_eq!(check.out.matches(finding).count(), 1, "{}", check.out);
    assert!(check.out.contains("cannot run: 1 statement is"), "{}", check.out);
    let run = |entry: &str| {
        let scenario = format!("ptx = \"k.ptx\"\n[[launch]]\nentry = \"{entry}\"\ngrid = 1\nblock = 1\nargs = []\n");
        fs::write(folder.path().join("s.toml"), scenario).unwrap();
        warpwave_in(folder.path(), &["run", "s.toml", "--gpu", "tiny"])
    };
    assert_fails(&run("near"), 2, &["an address of 64 bits in a variable of `.u32`"]);
    let far = run("far");
    assert_eq!(far.code, 0, "{}", far.err);
}

#[test]
fn unsupported_data_without_a_user_fails_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let unused = UNSUPPORTED_DATA.replace("[table]", "[words]");
    fs::write(folder.path().join("k.ptx"), unused).unwrap();
    let check = warpwave_in(folder.path(), &["check", "k.ptx"]);
    assert_fails(&check, 2, &["k.ptx: 1 statement is not supported"]);
    assert_eq!(check.out.matches("unsupported: ").count(), 1, "{}", check.out);
    assert!(!check.out.contains("cannot run"), "{}", check.out);
}

#[test]
fn listing_for_an_older_gpu_names_the_newer_statements() {
    let folder = tempfile::tempdir().unwrap();
    let text = ".version 8.0\n.target sm_80\n.entry k()\n{\nret;\n}\n";
    fs::write(folder.path().join("k.ptx"), text).unwrap();
    let listing = |gpu: &str| warpwave_in(folder.path(), &["check", "k.ptx", "--code", "--gpu", gpu]);
    let older = listing("v100-sxm2");
    assert_fails(&older, 2, &["k.ptx is too new for v100-sxm2"]);
    let finding = "`.target sm_80` needs compute capability 8.0, the GPU has 7.0\n  --> k.ptx:2:1\n";
    assert!(
        older.out.contains(finding) && older.out.contains("EXIT"),
        "{}",
        older.out
    );
    assert_eq!(listing("a100-sxm4-80").code, 0);
}
