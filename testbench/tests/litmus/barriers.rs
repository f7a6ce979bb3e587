//! Locks and grid barriers made of atomics and fences, with plain loads of the protected data.

use warpwave_components::preset;

use super::kernel::{finished, scenario};

/// One thread in each of six blocks takes a lock eight times. Under the lock it adds 1 to two words in different lines.
fn lock(take: &str, free: &str) {
    let text = format!(
        ".version 7.8\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 vars) {{\n.reg .pred %p;\n.reg .b32 %t, %n, %a, %b;\n\
         .reg .b64 %x;\nld.param.u64 %x, [vars];\nmov.u32 %n, 8;\nNEXT:\nSPIN:\n{take}\nsetp.ne.u32 %p, %t, 0;\n@%p bra SPIN;\n{}\
         ld.global.u32 %a, [%x+128];\nadd.u32 %a, %a, 1;\nst.global.u32 [%x+128], %a;\n\
         ld.global.u32 %b, [%x+1024];\nadd.u32 %b, %b, 1;\nst.global.u32 [%x+1024], %b;\n{free}\n\
         sub.u32 %n, %n, 1;\nsetp.ne.u32 %p, %n, 0;\n@%p bra NEXT;\nret;\n}}\n",
        if take.contains("acq") { "" } else { "membar.gl;\n" }
    );
    for gpu in preset::names().into_iter() {
        let config = preset::load(gpu, &[]).unwrap_or_else(|error| panic!("{error}")).config;
        let (_, memory) = finished(&scenario(text.clone(), [6, 1], vec![vec![0; 2048]]), config);
        let word = |at: usize| u32::from_le_bytes(memory[0][at..at + 4].try_into().expect("four bytes"));
        assert_eq!([word(0), word(128), word(1024)], [0, 48, 48], "on {gpu}: {take} {free}");
    }
}

#[test]
fn spin_lock_loses_no_addition() {
    lock(
        "atom.global.cas.b32 %t, [%x], 0, 1;",
        "membar.gl;\natom.global.exch.b32 %t, [%x], 0;",
    );
    lock(
        "atom.acquire.gpu.global.cas.b32 %t, [%x], 0, 1;",
        "st.release.gpu.global.u32 [%x], 0;",
    );
    lock(
        "atom.acq_rel.sys.global.exch.b32 %t, [%x], 1;",
        "red.release.sys.global.and.b32 [%x], 0;",
    );
}

/// Blocks of 96 threads pass a barrier of the grid after each step. In a step each thread adds the last value of a thread in the next
/// block. Two arrays take turns, so every line is read again after another block has written it.
fn grid_barrier(arrive: &str, wait: &str, after: &str) {
    const BLOCKS: usize = 4;
    const N: usize = BLOCKS * 96;
    const STEPS: u32 = 4;
    let text = format!(
        ".version 7.8\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 from, .param .u64 to, .param .u64 count) {{\n\
         .reg .pred %p, %q;\n.reg .b32 %i, %j, %t, %n, %a, %b;\n.reg .b64 %f, %g, %c, %x, %y, %z;\n\
         ld.param.u64 %f, [from];\nld.param.u64 %g, [to];\nld.param.u64 %c, [count];\n\
         mov.u32 %i, %tid.x;\nmov.u32 %t, %ctaid.x;\nmad.lo.u32 %i, %t, 96, %i;\nadd.u32 %j, %i, 96;\nrem.u32 %j, %j, {N};\nmov.u32 %n, 0;\n\
         STEP:\nmad.wide.u32 %x, %i, 4, %f;\nmad.wide.u32 %y, %j, 4, %f;\nmad.wide.u32 %z, %i, 4, %g;\n\
         ld.global.u32 %a, [%x];\nld.global.u32 %b, [%y];\nadd.u32 %a, %a, %b;\nst.global.u32 [%z], %a;\nadd.u32 %n, %n, 1;\n\
         bar.sync 0;\nmov.u32 %t, %tid.x;\nsetp.ne.u32 %p, %t, 0;\n@%p bra MET;\n{arrive}\nmul.lo.u32 %b, %n, {BLOCKS};\n\
         WAIT:\n{wait}\nsetp.lt.u32 %q, %t, %b;\n@%q bra WAIT;\n{after}\nMET:\nbar.sync 0;\n\
         mov.u64 %x, %f;\nmov.u64 %f, %g;\nmov.u64 %g, %x;\nsetp.lt.u32 %p, %n, {STEPS};\n@%p bra STEP;\nret;\n}}\n"
    );
    let mut values: Vec<u32> = (0..N as u32).map(|n| n * n % 1009).collect();
    let first: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    for _ in 0..STEPS {
        values = (0..N).map(|n| values[n].wrapping_add(values[(n + 96) % N])).collect();
    }
    let wanted: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    for gpu in preset::names().into_iter() {
        let config = preset::load(gpu, &[]).unwrap_or_else(|error| panic!("{error}")).config;
        let buffers = vec![first.clone(), vec![0; 4 * N], vec![0; 128]];
        let (_, memory) = finished(&scenario(text.clone(), [BLOCKS as u32, 96], buffers), config);
        assert!(memory[0] == wanted, "on {gpu}: {arrive} {wait} {after}");
    }
}

#[test]
fn grid_barrier_makes_stores_of_other_blocks_visible() {
    grid_barrier(
        "membar.gl;\nred.global.add.u32 [%c], 1;",
        "ld.volatile.global.u32 %t, [%c];",
        "membar.gl;",
    );
    grid_barrier(
        "fence.acq_rel.gpu;\natom.relaxed.gpu.global.add.u32 %t, [%c], 1;",
        "ld.relaxed.gpu.global.u32 %t, [%c];",
        "fence.acq_rel.gpu;",
    );
    grid_barrier(
        "red.release.gpu.global.add.u32 [%c], 1;",
        "ld.acquire.gpu.global.u32 %t, [%c];",
        "",
    );
    grid_barrier(
        "atom.acq_rel.gpu.global.add.u32 %t, [%c], 1;",
        "atom.acquire.gpu.global.add.u32 %t, [%c], 0;",
        "",
    );
}
