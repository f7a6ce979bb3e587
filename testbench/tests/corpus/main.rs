//! The corpus: PTX texts of real compilers. Every text loads, and its kernels give the right values on the machine and on the reference.
//!
//! Each kernel has one [`case`], in a file of [`cases`] for its topic. The case is applied to every compiler's build of that kernel
//! ([`texts`], [`check`]). The [`table`] in `testbench/corpus/COVERAGE.md` counts the results.
//!
//! `CORPUS=PART` in the environment takes only the kernels with that part in `folder/text/entry`; `CORPUS_GPU=PRESET` runs on another
//! preset than `tiny`. Either way the table is then printed and not compared.

mod case;

mod draw;

mod texts;

mod cases;

mod check;

mod family;

mod table;

mod control;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use case::{Case, Ending};
use table::{Kernel, Loaded, State, Table};
use texts::Text;

#[test]
fn every_kernel_gives_the_results_of_its_source() {
    let only = std::env::var("CORPUS").ok();
    let (cases, texts) = (cases::all(), texts::all());
    let results = each(&texts, |text| load(text, &cases, only.as_deref().unwrap_or_default()));
    let table = Table::of(&results, &cases);
    println!("{table}");
    let faults = table.faults();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    if only.is_none() && std::env::var_os("CORPUS_GPU").is_none() {
        table.compare_or_write(&texts::root().join("COVERAGE.md"));
    }
}

#[test]
fn values_do_not_depend_on_passes_or_registers() {
    let (cases, texts) = (cases::all(), texts::all());
    let (mut runs, mut wrong) = (0, Vec::new());
    // One compiler's builds are enough: they reach every pass.
    for text in texts.iter().filter(|text| text.folder == "nvcc13.5-sm_80") {
        let module = warpwave_ptx::compile(&text.ptx).expect("checked by another test");
        let ends = |case: &&Case| case.ending == Ending::Done;
        for entry in &module.entries {
            for case in cases.iter().filter(ends).filter(|case| text.runs(case, &entry.name)) {
                runs += 1;
                let result = check::without_passes(case, text, &entry.name);
                wrong.extend(
                    result
                        .err()
                        .map(|fault| format!("{}/{}: {fault}", text.path(), entry.name)),
                );
            }
        }
    }
    assert!(runs >= 80, "{runs} runs");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_case_has_a_build() {
    let texts = texts::all();
    let names = |text: &Text| -> Vec<String> {
        let module = warpwave_ptx::parse(&text.ptx).expect("checked by the other test");
        let entries = module.functions.iter().filter(|function| function.is_entry);
        entries.map(|function| function.name.text.to_owned()).collect()
    };
    let entries: Vec<_> = texts.iter().map(|text| (text, names(text))).collect();
    for case in cases::all() {
        let runs = |(text, names): &(&Text, Vec<String>)| names.iter().any(|name| text.runs(&case, name));
        assert!(
            entries.iter().any(runs),
            "{:?} has no entry {}",
            case.source,
            case.entry
        );
    }
}

#[test]
fn every_excluded_build_fails_for_the_stated_reason() {
    let texts = texts::all();
    let mut wrong = Vec::new();
    for case in cases::all().iter().filter(|case| !case.exceptions.is_empty()) {
        for text in &texts {
            let module = warpwave_ptx::compile(&text.ptx).expect("checked by another test");
            let entries = module.entries.iter().filter(|entry| text.leaves_out(case, &entry.name));
            wrong.extend(entries.map(|entry| (text.path(), check::run(case, text, &entry.name))));
        }
    }
    assert!(wrong.len() >= 3, "{wrong:?}");
    for (path, result) in wrong {
        let says = match path.as_str() {
            "clang19-sm_90/tma_bulk" => "out-of-bounds access",
            // The compiler passes values as masks. So the masks name lanes that wait with other masks.
            path if path.ends_with("/redux_sync") => "no warp of the block can continue",
            _ => "not ",
        };
        assert!(
            result.as_ref().is_err_and(|fault| fault.contains(says)),
            "{path}: {result:?}"
        );
    }
}

/// Applies `make` to every text, on all host cores. Returns the results in order.
fn each<'t>(texts: &'t [Text], make: impl Fn(&'t Text) -> Loaded<'t> + Sync) -> Vec<Loaded<'t>> {
    let (next, made) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(text) = texts.get(next.fetch_add(1, Ordering::Relaxed)) {
            let loaded = make(text);
            made.lock()
                .expect("no thread panics while it holds the lock")
                .push(loaded);
        }
    };
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..n_threads).for_each(|_| drop(scope.spawn(work))));
    let mut made = made.into_inner().expect("no thread panics while it holds the lock");
    made.sort_by_key(|loaded| (&loaded.text.folder, &loaded.text.stem));
    made
}

/// Loads a text and runs its cases with names that contain `only`.
fn load<'t>(text: &'t Text, cases: &[Case], only: &str) -> Loaded<'t> {
    let module = match warpwave_ptx::compile(&text.ptx) {
        Ok(module) => module,
        Err(findings) => {
            let findings = findings.iter().map(|finding| finding.render(&text.path(), &text.ptx));
            return Loaded {
                text,
                kernels: Err(findings.collect()),
            };
        }
    };
    let kernel = |entry: &warpwave_ptx::Entry| {
        let is_meant = format!("{}/{}", text.path(), entry.name).contains(only);
        Kernel {
            name: entry.name.clone(),
            state: match entry.program() {
                Err(findings) => State::Unsupported(findings.iter().map(|finding| finding.message.clone()).collect()),
                Ok(_) if !is_meant => State::Untried,
                Ok(_) => tried(text, &entry.name, cases),
            },
        }
    };
    Loaded {
        text,
        kernels: Ok(module.entries.iter().map(kernel).collect()),
    }
}

/// Runs every case of an entry.
fn tried(text: &Text, entry: &str, cases: &[Case]) -> State {
    let mut tried = cases.iter().filter(|case| text.runs(case, entry)).peekable();
    if tried.peek().is_none() {
        return match cases.iter().any(|case| text.leaves_out(case, entry)) {
            true => State::LeftOut,
            false => State::Untried,
        };
    }
    let fault = |case: &Case| Some(format!("{}: {}", case.about, check::run(case, text, entry).err()?));
    State::Tried(tried.filter_map(fault).collect())
}
