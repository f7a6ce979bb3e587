//! Device `malloc` and `free`: blocks do not overlap, come back, and run out. Kernels store facts about pointers, never the pointers.

use super::Kernel;
use warpwave_components::proto::launch::TrapKind;

/// A kernel with the declarations of nvcc, and `body` between the registers and the end.
fn text(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_70\n.address_size 64\n\
         .extern .func (.param .b64 func_retval0) malloc (.param .b64 malloc_param_0);\n\
         .extern .func free (.param .b64 free_param_0);\n\
         .entry k(.param .u64 out) {{\n.reg .pred %p<4>;\n.reg .b32 %r<12>;\n.reg .b64 %d<16>;\n\
         mov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmad.lo.u32 %r3, %r1, %r2, %r0;\n\
         ld.param.u64 %d0, [out];\nmul.wide.u32 %d1, %r3, 4;\nadd.u64 %d1, %d0, %d1;\n{body}\nret;\n}}\n"
    )
}

/// Calls `malloc` with a register or number of bytes.
fn malloc(to: &str, bytes: &str) -> String {
    format!(
        "{{\n.param .b64 param0;\nst.param.b64 [param0], {bytes};\n.param .b64 retval0;\n\
         call.uni (retval0), malloc, (param0);\nld.param.b64 {to}, [retval0];\n}}\n"
    )
}

fn free(pointer: &str) -> String {
    format!("{{\n.param .b64 param0;\nst.param.b64 [param0], {pointer};\ncall.uni free, (param0);\n}}\n")
}

/// Every thread fills a block with its number, waits for the others, and adds what it finds there.
#[test]
fn blocks_of_threads_do_not_overlap() {
    let body = format!(
        "and.b32 %r4, %r3, 3;\nadd.u32 %r4, %r4, 1;\nshl.b32 %r5, %r4, 4;\ncvt.u64.u32 %d2, %r5;\n{}\
         mov.u64 %d4, %d3;\nmov.u32 %r6, %r4;\nfill:\nst.v4.u32 [%d4], {{%r3, %r3, %r3, %r3}};\nadd.u64 %d4, %d4, 16;\n\
         sub.u32 %r6, %r6, 1;\nsetp.ne.u32 %p0, %r6, 0;\n@%p0 bra fill;\nbar.sync 0;\n\
         mov.u64 %d4, %d3;\nmov.u32 %r6, %r5;\nmov.u32 %r7, 0;\nadd:\nld.u32 %r8, [%d4];\nadd.u32 %r7, %r7, %r8;\nadd.u64 %d4, %d4, 4;\n\
         sub.u32 %r6, %r6, 4;\nsetp.ne.u32 %p0, %r6, 0;\n@%p0 bra add;\n{}st.global.u32 [%d1], %r7;",
        malloc("%d3", "%d2"),
        free("%d3")
    );
    let sums: Vec<u32> = (0..192).map(|thread| thread * 4 * (thread % 4 + 1)).collect();
    Kernel::of(&text(&body)).sizes(3, 64).output(&sums).holds();
}

/// A thread that frees a block and asks for one of the same size gets the same block.
#[test]
fn freed_block_comes_back_and_0_bytes_give_none() {
    let body = format!(
        "{}{}{}setp.eq.u64 %p0, %d2, %d3;\nselp.u32 %r4, 1, 0, %p0;\n{}{}setp.eq.u64 %p0, %d4, 0;\nselp.u32 %r5, 2, 0, %p0;\n\
         and.b64 %d5, %d3, 15;\ncvt.u32.u64 %r6, %d5;\nadd.u32 %r4, %r4, %r5;\nadd.u32 %r4, %r4, %r6;\nst.global.u32 [%d1], %r4;",
        malloc("%d2", "100"),
        free("%d2"),
        malloc("%d3", "90"),
        malloc("%d4", "0"),
        free("%d4")
    );
    Kernel::of(&text(&body)).sizes(1, 1).output(&[3]).holds();
}

/// The heap has 8 MiB with its head, so seven blocks of 1 MiB fit, and smaller ones in the rest.
#[test]
fn heap_that_is_full_gives_0() {
    let body = format!(
        "mov.u32 %r4, 0;\nmov.u32 %r5, 0;\nask:\n{}setp.ne.u64 %p0, %d3, 0;\n@%p0 add.u32 %r4, %r4, 1;\nadd.u32 %r5, %r5, 1;\n\
         setp.lt.u32 %p0, %r5, 10;\n@%p0 bra ask;\n{}setp.ne.u64 %p0, %d4, 0;\n@%p0 add.u32 %r4, %r4, 16;\nst.global.u32 [%d1], %r4;",
        malloc("%d3", "1048560"),
        malloc("%d4", "1000")
    );
    Kernel::of(&text(&body)).sizes(1, 1).output(&[7 + 16]).holds();
}

/// A heap of 4,096 bytes with a head of 256 has room for three blocks of 1,024 bytes and three of 256. Each has a header of 16.
#[test]
fn heap_has_the_size_of_the_preset() {
    let body = format!(
        "mov.u32 %r4, 0;\nmov.u32 %r5, 0;\nask:\n{}setp.ne.u64 %p0, %d3, 0;\n@%p0 add.u32 %r4, %r4, 1;\n\
         {}setp.ne.u64 %p0, %d4, 0;\n@%p0 add.u32 %r4, %r4, 16;\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p0, %r5, 10;\n@%p0 bra ask;\n\
         st.global.u32 [%d1], %r4;",
        malloc("%d3", "1008"),
        malloc("%d4", "240")
    );
    // Pairs of 1,280 bytes: three take all 3,840.
    Kernel::of(&text(&body))
        .set(&["limits.heap_bytes=4096"])
        .sizes(1, 1)
        .output(&[3 + 3 * 16])
        .holds();
    // 256 bytes less: the third pair has no room for its small block.
    Kernel::of(&text(&body))
        .set(&["limits.heap_bytes=4095"])
        .sizes(1, 1)
        .output(&[3 + 2 * 16])
        .holds();
}

#[test]
fn wrong_free_traps() {
    let twice = [malloc("%d2", "100"), free("%d2"), free("%d2")].concat();
    let inside = [malloc("%d2", "100"), "add.u64 %d2, %d2, 16;\n".to_owned(), free("%d2")].concat();
    for body in [twice, inside, free("%d1"), free("77")] {
        let text = text(&body);
        // The trap has the line of the last call.
        let (before, _) = text.rsplit_once("call.uni free").expect("a call");
        let line = before.matches('\n').count() as u32 + 1;
        Kernel::of(&text)
            .sizes(1, 1)
            .output(&[0])
            .traps(TrapKind::Trapped, line);
    }
}
