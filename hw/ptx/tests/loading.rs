//! Modules loaded for a launch: kernels are compiled on demand, and once in a process.

use std::fmt::Write;
use std::sync::Arc;
use std::thread;
use warpwave_isa::flow::Reconvergence;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::program::Program;
use warpwave_ptx::{Entry, Module};

const N_KERNELS: usize = 49;

/// Returns a text of 49 kernels that call one function. `test` makes it another text than those of other tests.
fn many_kernels(test: &str) -> String {
    let mut text = format!(
        "// {test}\n.version 8.0\n.target sm_80\n.address_size 64\n\
         .func (.param .b32 out) twice(.param .b32 in)\n{{\n.reg .b32 %r<2>;\nld.param.b32 %r0, [in];\n\
         add.s32 %r1, %r0, %r0;\nst.param.b32 [out], %r1;\nret;\n}}\n"
    );
    for n in 0..N_KERNELS {
        let _ = write!(
            text,
            ".entry k{n}(.param .u64 p)\n{{\n.reg .b32 %r<2>;\n.reg .b64 %p;\nld.param.u64 %p, [p];\n\
             mov.u32 %r0, {n};\n.param .b32 in;\n.param .b32 out;\nst.param.b32 [in], %r0;\n\
             call (out), twice, (in);\nld.param.b32 %r1, [out];\nst.global.u32 [%p], %r1;\nret;\n}}\n"
        );
    }
    text
}

fn load(text: &str, kernels: &[&str]) -> Arc<Module> {
    let loaded = warpwave_ptx::load(text, |name| kernels.contains(&name));
    loaded.unwrap_or_else(|findings| panic!("{}", findings[0].render("text", text)))
}

fn compiled(module: &Module) -> Vec<&str> {
    let entries = module.entries.iter().filter(|entry| entry.is_compiled());
    entries.map(|entry| entry.name.as_str()).collect()
}

fn program(module: &Module, kernel: &str) -> Arc<Program> {
    module.entry(kernel).unwrap().program().clone().unwrap()
}

#[test]
fn kernels_are_compiled_when_first_asked_for() {
    let text = many_kernels("on demand");
    let module = load(&text, &["k7"]);
    assert_eq!(module.entries.len(), N_KERNELS);
    assert_eq!(compiled(&module), ["k7"]);
    program(&module, "k30");
    assert_eq!(compiled(&module), ["k7", "k30"]);
    load(&text, &["k7", "k8", "k9"]);
    assert_eq!(compiled(&module), ["k7", "k8", "k9", "k30"]);
}

#[test]
fn compiled_module_has_all_programs() {
    let module = warpwave_ptx::compile(&many_kernels("all")).unwrap();
    assert_eq!(compiled(&module).len(), N_KERNELS);
    let lazy = load(&many_kernels("findings of all"), &[]);
    assert_eq!(lazy.unsupported().count(), 0);
    assert_eq!(compiled(&lazy).len(), N_KERNELS);
}

#[test]
fn program_does_not_depend_on_when_it_is_compiled() {
    let text = many_kernels("equal");
    let all = warpwave_ptx::compile(&text).unwrap();
    let early = load(&text, &["k0"]);
    for name in ["k0", "k48"] {
        let [expected, found] = [program(&all, name), program(&early, name)];
        assert_eq!(expected.code(), found.code(), "{name}");
        assert_eq!(expected.requirements(), found.requirements(), "{name}");
        let line = |program: &Program| program.code().iter().map(|inst| inst.line).collect::<Vec<_>>();
        assert_eq!(line(&expected), line(&found), "{name}");
    }
}

#[test]
fn equal_texts_share_one_program() {
    let text = many_kernels("shared");
    let first = program(&load(&text, &["k3"]), "k3");
    let copy = text.clone();
    let second = thread::spawn(move || program(&load(&copy, &["k3"]), "k3"))
        .join()
        .unwrap();
    assert!(Arc::ptr_eq(&first, &second));
    let other = program(&load(&many_kernels("not shared"), &["k3"]), "k3");
    assert!(!Arc::ptr_eq(&first, &other));
    let options = warpwave_ptx::Options {
        max_registers: Some(32),
        ..Default::default()
    };
    let with_limit = warpwave_ptx::load_with(&text, options, |_| false).unwrap();
    assert!(!Arc::ptr_eq(&first, &program(&with_limit, "k3")));
}

#[test]
fn malformed_kernel_refuses_the_text_even_if_it_is_not_wanted() {
    let text = many_kernels("malformed").replace("mov.u32 %r0, 48;", "mov.u32 %r9, 48;");
    let findings = warpwave_ptx::load(&text, |name| name == "k0").unwrap_err();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings, warpwave_ptx::compile(&text).unwrap_err());
}

#[test]
fn unsupported_kernel_has_its_findings_when_asked_for() {
    let text = many_kernels("unsupported").replace("mov.u32 %r0, 48;", "tcgen05.wait::st;");
    let module = load(&text, &["k0"]);
    assert!(program(&module, "k0").code().len() > 1);
    let findings = |entry: &Entry| entry.program().clone().unwrap_err();
    let all = warpwave_ptx::compile(&text).unwrap();
    let [expected, found] = [&all, &*module].map(|module| findings(module.entry("k48").unwrap()));
    assert_eq!(expected.len(), 1, "{expected:?}");
    assert_eq!(expected, found);
}

#[test]
fn lanes_that_leave_a_spin_loop_wait_for_the_others_only_on_a_gpu_with_a_stack() {
    let text = "
        .version 7.8
        .target sm_60
        .entry k(.param .u64 lock) {
            .reg .pred %p; .reg .b32 %t; .reg .b64 %x;
            ld.param.u64 %x, [lock];
        SPIN:
            atom.global.cas.b32 %t, [%x], 0, 1;
            setp.ne.u32 %p, %t, 0;
            @%p bra SPIN;
            atom.global.exch.b32 %t, [%x], 0;
            ret;
        }";
    for (reconvergence, waits) in [(Reconvergence::Independent, false), (Reconvergence::Stack, true)] {
        let options = warpwave_ptx::Options {
            reconvergence,
            ..Default::default()
        };
        let module = warpwave_ptx::load_with(text, options, |_| true).unwrap();
        let program = program(&module, "k");
        assert_eq!(program.reconvergence(), reconvergence);
        let has_bsync = program.code().iter().any(|inst| inst.op == Opcode::Bsync);
        assert_eq!(has_bsync, waits, "{reconvergence:?}:\n{program}");
    }
}
