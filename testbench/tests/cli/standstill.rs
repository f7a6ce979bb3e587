//! Launches that can never end although their warps run: the report, and the exit code.

use crate::{Answer, assert_fails, scenario, warpwave};

/// Runs a kernel without a limit of cycles. Its parameter is a buffer of 64 zeros.
fn run(body: &str, shape: [u32; 2], gpu: &str) -> Answer {
    run_with(body, shape, gpu, &["gigathread.standstill_cycles=100000"])
}

/// As [`run`], with these settings of the preset.
fn run_with(body: &str, shape: [u32; 2], gpu: &str, sets: &[&str]) -> Answer {
    let args: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    run_with_args(body, shape, gpu, &args)
}

/// As [`run`], with these arguments of the command.
fn run_with_args(body: &str, [grid, block]: [u32; 2], gpu: &str, args: &[&str]) -> Answer {
    let ptx = format!(
        ".version 7.8\n.target sm_20\n.address_size 64\n.visible .entry k(.param .u64 data) {{\n\
         .reg .pred %p; .reg .b32 %t, %n; .reg .b64 %x;\nld.param.u64 %x, [data];\n{body}\nret;\n}}\n"
    );
    let text = format!(
        "ptx = \"k.ptx\"\n[buffers.data]\ndtype = \"u32\"\nshape = [64]\ninit = \"zeros\"\n\
         [[launch]]\ngrid = {grid}\nblock = {block}\nargs = [\"data\"]\n"
    );
    let (_folder, path) = scenario(&text, &[("k.ptx", ptx.as_bytes())]);
    warpwave(&[&["run", path.to_str().unwrap(), "--gpu", gpu], args].concat())
}

/// Each lane takes a lock, adds 1 to another word and frees the lock.
const LOCK_LANE_BY_LANE: &str = "
SPIN:
atom.global.cas.b32 %t, [%x], 0, 1;
setp.ne.u32 %p, %t, 0;
@%p bra SPIN;
ld.volatile.global.u32 %t, [%x+128];
add.u32 %t, %t, 1;
st.volatile.global.u32 [%x+128], %t;
membar.gl;
atom.global.exch.b32 %t, [%x], 0;";

#[test]
fn lock_taken_lane_by_lane_ends_from_volta_on_and_never_before() {
    for gpu in ["tiny", "v100-sxm2"] {
        let answer = run(LOCK_LANE_BY_LANE, [1, 32], gpu);
        assert_eq!(answer.code, 0, "{gpu}: {}", answer.err);
    }
    for gpu in ["gtx1080ti", "m2070"] {
        // One lane has the lock and waits where the loop ends; the 31 others spin.
        let says = [
            "standstill: the warps run, but nothing has changed since cycle",
            "1 warp polls memory at 0x10000000",
            " in line 9: block (0, 0, 0) warp 0",
            "; lanes that wait to reconverge with these: 1",
        ];
        assert_fails(&run(LOCK_LANE_BY_LANE, [1, 32], gpu), 4, &says);
    }
}

#[test]
fn lock_by_exchange_that_is_never_freed_stands_still() {
    // The first exchange takes the lock. Later ones store the value that is there: no word changes.
    let body = "
SPIN:
atom.global.exch.b32 %t, [%x], 1;
setp.ne.u32 %p, %t, 0;
@%p bra SPIN;";
    let says = [
        "standstill: the warps run, but nothing has changed since cycle",
        "1 warp polls memory at 0x10000000 (value 1) in line 9",
        " wrote it last",
    ];
    assert_fails(&run(body, [2, 1], "tiny"), 4, &says);
}

#[test]
fn poll_with_the_longest_sleeps_stands_still_while_other_blocks_sleep_too() {
    // 64 warps begin one after another, so their sleeps end in different cycles. No sleep changes anything.
    let body = "
AGAIN:
nanosleep.u32 1000000;
ld.volatile.global.u32 %t, [%x];
setp.eq.u32 %p, %t, 0;
@%p bra AGAIN;";
    let says = ["standstill", "64 warps poll memory at 0x10000000 in line 10"];
    assert_fails(&run(body, [8, 256], "tiny"), 4, &says);
}

#[test]
fn grid_barrier_of_more_blocks_than_fit_names_the_address_and_the_blocks_that_wait() {
    // Two blocks of 1024 threads fit an SM of `tiny`, so 4 of 6 run, and each waits until 6 have arrived.
    let body = "
mov.u32 %n, %tid.x;
setp.ne.u32 %p, %n, 0;
@%p bra MET;
atom.global.add.u32 %t, [%x], 1;
WAIT:
ld.volatile.global.u32 %t, [%x];
setp.lt.u32 %p, %t, 6;
@%p bra WAIT;
MET:
bar.sync 0;";
    let says = [
        "4 warps poll memory at 0x10000000",
        " in line 13, the first of them block (",
        "kernel k: 4 of 6 blocks sent, 0 ended; the 2 others wait for room",
    ];
    assert_fails(&run(body, [6, 1024], "tiny"), 4, &says);
}

#[test]
fn branch_to_itself_stands_still() {
    let says = [
        "k.ptx:7: this branch to itself has no exit",
        "standstill",
        "block (0, 0, 0) warp 0",
    ];
    assert_fails(&run("L: bra L;", [1, 32], "tiny"), 4, &says);
}

#[test]
fn long_loop_without_stores_ends() {
    // More than twice the cycles of a period, in registers alone.
    let body = "
mov.u32 %n, 30000;
LOOP:
sub.u32 %n, %n, 1;
setp.ne.u32 %p, %n, 0;
@%p bra LOOP;
st.global.u32 [%x], %n;";
    let answer = run(body, [1, 32], "tiny");
    assert_eq!(answer.code, 0, "{}", answer.err);
}

#[test]
fn poll_that_begins_after_a_long_computation_stands_still() {
    // The loop takes several periods of 10,000 cycles in registers alone, so the search rests longer when the poll begins.
    let body = "
mov.u32 %n, 30000;
LOOP:
sub.u32 %n, %n, 1;
setp.ne.u32 %p, %n, 0;
@%p bra LOOP;
WAIT:
ld.volatile.global.u32 %t, [%x];
setp.eq.u32 %p, %t, 0;
@%p bra WAIT;";
    let answer = run_with(body, [1, 32], "tiny", &["gigathread.standstill_cycles=10000"]);
    assert_fails(&answer, 4, &["standstill", "polls memory at 0x10000000"]);
}

#[test]
fn warp_that_waits_long_for_memory_does_not_stand_still() {
    // The load takes three times as long as the search: a period of 10,000 cycles, and 64 samples that are 97 cycles apart.
    let sets = ["gigathread.standstill_cycles=10000", "hbm.access_latency=60000"];
    let answer = run_with(
        "ld.global.u32 %t, [%x];\nst.global.u32 [%x], %t;",
        [1, 32],
        "tiny",
        &sets,
    );
    assert_eq!(answer.code, 0, "{}", answer.err);
}

#[test]
fn warp_that_has_ended_with_a_reduction_in_flight_is_no_poll() {
    // The search begins after 10,000 cycles of the loop. The warp has ended while its reduction is on the way for 60,000 cycles.
    let body = "
mov.u32 %n, 700;
LOOP:
sub.u32 %n, %n, 1;
setp.ne.u32 %p, %n, 0;
@%p bra LOOP;
red.global.add.u32 [%x], %n;";
    let sets = ["gigathread.standstill_cycles=10000", "hbm.access_latency=60000"];
    let answer = run_with(body, [1, 32], "tiny", &sets);
    assert_eq!(answer.code, 0, "{}", answer.err);
}

/// Both warps count rounds with a barrier in each. Warp 0 computes between two barriers, and stores nothing before the end.
const ROUNDS: &str = "
.reg .pred %q; .reg .b32 %r, %w;
mov.u32 %w, %tid.x;
setp.ge.u32 %q, %w, 32;
mov.u32 %r, 60;
ROUND:
mov.u32 %n, 150;
@%q bra MET;
WORK:
sub.u32 %n, %n, 1;
setp.ne.u32 %p, %n, 0;
@%p bra WORK;
MET:
bar.sync 0;
sub.u32 %r, %r, 1;
setp.ne.u32 %p, %r, 0;
@%p bra ROUND;
st.global.u32 [%x], %r;";

#[test]
fn barriers_of_a_loop_that_counts_are_no_standstill() {
    let answer = run_with(ROUNDS, [1, 64], "tiny", &["gigathread.standstill_cycles=10000"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
}

#[test]
fn barrier_that_opens_late_is_no_standstill() {
    // Two blocks. Warp 1 of each waits at a barrier while warp 0 computes. The block polls a flag that the other one sets at the end.
    let sets = ["gigathread.standstill_cycles=10000", "sm.barrier.base_latency=30000"];
    let answer = run_with("bar.sync 0;\nst.global.u32 [%x], 1;", [1, 64], "tiny", &sets);
    assert_eq!(answer.code, 0, "{}", answer.err);
}

#[test]
fn poll_of_a_flag_that_is_set_after_many_barriers_ends() {
    // Block 0 polls. Its states repeat. Block 1 sets the flag after 60 rounds with a barrier in each.
    let body = format!(
        ".reg .pred %z; .reg .b32 %c;\nmov.u32 %c, %ctaid.x;\nsetp.ne.u32 %z, %c, 0;\n@%z bra OTHER;\n\
         POLL:\nld.volatile.global.u32 %t, [%x];\nsetp.eq.u32 %z, %t, 0;\n@%z bra POLL;\nret;\n\
         OTHER:\nadd.u64 %x, %x, 0;\n{}",
        ROUNDS.replace("[%x], %r", "[%x], 7")
    );
    let answer = run_with(&body, [2, 64], "tiny", &["gigathread.standstill_cycles=10000"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
}

#[test]
fn barriers_of_a_loop_that_never_ends_stand_still() {
    let body = "
ROUND:
bar.sync 0;
ld.volatile.global.u32 %t, [%x];
bar.sync 1;
setp.eq.u32 %p, %t, 0;
@%p bra ROUND;";
    let answer = run_with(body, [1, 64], "tiny", &["gigathread.standstill_cycles=10000"]);
    assert_fails(
        &answer,
        4,
        &["standstill: the warps run, but nothing has changed since cycle"],
    );
}

#[test]
fn poll_that_counts_its_turns_is_named_at_the_cycle_limit() {
    // Block 1 writes 5, and block 0 waits for 9.
    let body = "
mov.u32 %t, %ctaid.x;
mov.u32 %n, 0;
setp.ne.u32 %p, %t, 0;
@%p bra WRITE;
SPIN:
add.u32 %n, %n, 1;
ld.volatile.global.u32 %t, [%x+4];
setp.ne.u32 %p, %t, 9;
@%p bra SPIN;
st.global.u32 [%x], %n;
ret;
WRITE:
mov.u32 %t, 5;
st.global.u32 [%x+4], %t;";
    let says = [
        "the cycle limit is reached in cycle",
        "2 warps poll memory at 0x10000004 (value 5) in line 14, the first of them block (0, 0, 0) warp 0",
        "the kernel's stores and atomics of global memory are in lines 17 and 21",
        "memory at 0x10000004 (`data` + 4): block (1, 0, 0) warp ",
        " wrote it last, in cycle ",
        " by line 21",
        "raise --max-cycles, or check the kernel for an endless loop",
    ];
    let limit = ["--max-cycles", "20000", "--no-flight"];
    assert_fails(&run_with_args(body, [2, 64], "tiny", &limit), 4, &says);
}

#[test]
fn poll_that_counts_its_turns_stands_still() {
    let body = "
mov.u32 %n, 0;
SPIN:
add.u32 %n, %n, 1;
ld.volatile.global.u32 %t, [%x+4];
setp.eq.u32 %p, %t, 0;
@%p bra SPIN;
st.global.u32 [%x], %n;";
    let says = ["standstill", "4 warps poll memory at 0x10000004 (value 0) in line 11"];
    for gpu in ["tiny", "m2070", "v100-sxm2"] {
        let set = ["gigathread.standstill_cycles=10000"];
        assert_fails(&run_with(body, [2, 64], gpu, &set), 4, &says);
    }
}

/// Loops that count and poll, and end. The first warp sets the flag in three of them.
const POLLS_THAT_END: [&str; 4] = [
    // The flag is set during a turn that has loaded it. The next turn sees the flag, 100,000 cycles later.
    "
mov.u32 %t, %tid.x;
setp.lt.u32 %p, %t, 32;
@%p bra SET;
mov.u32 %n, 0;
SPIN:
ld.volatile.global.u32 %t, [%x];
add.u32 %n, %n, 1;
nanosleep.u32 100000;
setp.eq.u32 %p, %t, 0;
@%p bra SPIN;
st.global.u32 [%x+4], %n;
ret;
SET:
nanosleep.u32 5000;
mov.u32 %t, 1;
st.volatile.global.u32 [%x], %t;",
    // The flag is set after 200,000 cycles without a store.
    "
mov.u32 %t, %tid.x;
mov.u32 %n, 0;
setp.lt.u32 %p, %t, 32;
@%p bra COUNT;
SPIN:
add.u32 %n, %n, 1;
ld.volatile.global.u32 %t, [%x];
setp.eq.u32 %p, %t, 0;
@%p bra SPIN;
st.global.u32 [%x+4], %n;
ret;
COUNT:
nanosleep.u32 1000;
add.u32 %n, %n, 1;
setp.lt.u32 %p, %n, 200;
@%p bra COUNT;
st.volatile.global.u32 [%x], %n;",
    // The loop gives up after 300 turns.
    "
.reg .pred %late;
mov.u32 %n, 0;
SPIN:
ld.volatile.global.u32 %t, [%x];
add.u32 %n, %n, 1;
setp.eq.u32 %p, %t, 0;
setp.lt.and.u32 %p, %n, 300, %p;
@%p bra SPIN;
st.global.u32 [%x+4], %n;",
    // The loop adds up what it polls.
    "
mov.u32 %n, 0;
mov.u32 %t, 1;
st.volatile.global.u32 [%x], %t;
SPIN:
ld.volatile.global.u32 %t, [%x];
add.u32 %n, %n, %t;
setp.lt.u32 %p, %n, 300;
@%p bra SPIN;
st.global.u32 [%x+4], %n;",
];

#[test]
fn polls_that_end_late_do_not_stand_still() {
    for (body, gpu) in POLLS_THAT_END
        .into_iter()
        .flat_map(|body| [(body, "tiny"), (body, "m2070")])
    {
        let answer = run_with(body, [1, 64], gpu, &["gigathread.standstill_cycles=10000"]);
        assert_eq!(answer.code, 0, "{gpu}: {body}\n{}", answer.err);
    }
}

#[test]
fn loop_that_loads_without_a_branch_on_the_value_is_no_poll_at_the_cycle_limit() {
    let body = "
mov.u32 %n, 1000000;
LOOP:
ld.volatile.global.u32 %t, [%x+4];
sub.u32 %n, %n, 1;
setp.ne.u32 %p, %n, 0;
@%p bra LOOP;
st.global.u32 [%x], %t;";
    let answer = run_with_args(body, [1, 64], "tiny", &["--max-cycles", "20000", "--no-flight"]);
    let place = "of 2 warps, 2 were in the loop in lines 10 to 13 in all 16 samples of the last 1552 cycles";
    assert_fails(&answer, 4, &["the cycle limit is reached in cycle", place]);
    assert!(!answer.err.contains("poll"), "{}", answer.err);
}

/// Polls until a word is set or 60,000 cycles have passed. No register holds the time when a turn ends.
const POLL_WITH_A_TIMEOUT: &str = "
.reg .pred %late; .reg .b32 %end;
mov.u32 %end, %clock;
add.u32 %end, %end, 60000;
SPIN:
mov.u32 %t, %clock;
setp.ge.u32 %late, %t, %end;
ld.volatile.global.u32 %t, [%x];
setp.ne.u32 %p, %t, 0;
@%p bra DONE;
nanosleep.u32 200;
@!%late bra SPIN;
DONE:
st.global.u32 [%x+4], 1;";

#[test]
fn poll_with_a_timeout_is_no_standstill() {
    let wide = POLL_WITH_A_TIMEOUT
        .replace(".b32 %end", ".b64 %end, %now")
        .replace("%end, %clock", "%end, %clock64")
        .replace("add.u32 %end", "add.u64 %end")
        .replace("mov.u32 %end", "mov.u64 %end")
        .replace("mov.u32 %t, %clock", "mov.u64 %now, %clock64")
        .replace("ge.u32 %late, %t, %end;", "ge.u64 %late, %now, %end;\nmov.u64 %now, 0;");
    let timer = wide.replace("%clock64", "%globaltimer");
    for body in [POLL_WITH_A_TIMEOUT, &wide, &timer] {
        let answer = run_with(body, [1, 32], "tiny", &["gigathread.standstill_cycles=10000"]);
        assert_eq!(answer.code, 0, "{body}\n{}", answer.err);
    }
}

#[test]
fn loop_that_counts_in_local_memory_is_no_standstill() {
    // Each register is cleared before the turn ends. A turn takes some hundred cycles.
    let body = "
.local .align 4 .b8 counter[4];
.reg .b64 %c;
mov.u64 %c, counter;
mov.u32 %t, 0;
st.local.u32 [%c], %t;
LOOP:
ld.local.u32 %t, [%c];
add.u32 %t, %t, 1;
st.local.u32 [%c], %t;
setp.lt.u32 %p, %t, 200;
mov.u32 %t, 0;
nanosleep.u32 200;
@%p bra LOOP;
st.global.u32 [%x], 1;";
    let answer = run_with(body, [1, 32], "tiny", &["gigathread.standstill_cycles=10000"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
}

#[test]
fn guarded_branch_to_itself_that_no_lane_takes_ends() {
    // No thread has the index 40, so no lane stays.
    let body = "mov.u32 %t, %tid.x;\nsetp.eq.u32 %p, %t, 40;\nL: @%p bra L;\nst.global.u32 [%x], 1;";
    let answer = run(body, [1, 32], "tiny");
    assert_eq!(answer.code, 0, "{}", answer.err);
}

#[test]
fn guarded_branch_to_itself_whose_guard_is_loaded_stands_still() {
    let body = "ld.global.u32 %t, [%x];\nsetp.eq.u32 %p, %t, 0;\nL: @%p bra L;\nst.global.u32 [%x], 1;";
    let says = [
        "does not change its predicate",
        "1 branches to itself for ever in line 9",
    ];
    for gpu in ["tiny", "m2070"] {
        assert_fails(&run(body, [1, 32], gpu), 4, &says);
    }
}

#[test]
fn poll_of_shared_memory_by_a_generic_address_names_it() {
    let body = "
.shared .align 4 .b32 flag;
.reg .b64 %g;
mov.u32 %t, 3;
st.shared.u32 [flag], %t;
mov.u64 %g, flag;
cvta.shared.u64 %g, %g;
POLL:
ld.volatile.u32 %t, [%g];
setp.eq.u32 %p, %t, 3;
@%p bra POLL;";
    let says = [
        "1 warp polls shared memory at 0x0 (value 3) in line 15: block (0, 0, 0) warp 0",
        "the kernel's stores and atomics of shared memory are in line 11",
    ];
    assert_fails(&run(body, [1, 32], "tiny"), 4, &says);
}

#[test]
fn every_warp_of_a_poll_with_a_long_sleep_is_named() {
    // 4 of 6 blocks fit. Each turn sleeps for longer than the samples of the search take.
    let body = "
mov.u32 %n, %tid.x;
setp.ne.u32 %p, %n, 0;
@%p bra MET;
atom.global.add.u32 %t, [%x], 1;
WAIT:
nanosleep.u32 20000;
ld.volatile.global.u32 %t, [%x];
setp.lt.u32 %p, %t, 6;
@%p bra WAIT;
MET:
bar.sync 0;";
    let says = ["4 warps poll memory at 0x10000000 in line 14"];
    assert_fails(&run(body, [6, 1024], "tiny"), 4, &says);
}

#[test]
fn loop_that_stores_is_named_at_the_cycle_limit_with_its_warps() {
    // Each store counts as progress, so the launch does not stand still.
    let body = "
mov.u32 %n, 1;
LOOP:
st.global.u32 [%x], %n;
bra LOOP;";
    let limit = ["--max-cycles", "20000", "--no-flight"];
    let says = [
        "the cycle limit is reached in cycle",
        "of 2 warps, 2 were in the loop in lines 10 to 11 in all 16 samples of the last 1552 cycles",
        "bra LOOP;",
        "raise --max-cycles, or check the kernel for an endless loop",
    ];
    assert_fails(&run_with_args(body, [1, 64], "tiny", &limit), 4, &says);
}

#[test]
fn short_blocks_that_follow_each_other_in_a_slot_are_in_no_loop_at_the_cycle_limit() {
    // Each warp ends after 10 turns, before 16 samples have passed. The next warp in its slot runs the same loop.
    let body = "
mov.u32 %t, %ntid.x;
sub.u32 %n, %t, 22;
LOOP:
mad.lo.u32 %t, %t, %t, %n;
mad.lo.u32 %t, %t, %t, %n;
mad.lo.u32 %t, %t, %t, %n;
mad.lo.u32 %t, %t, %t, %n;
mad.lo.u32 %t, %t, %t, %n;
sub.u32 %n, %n, 1;
setp.ne.u32 %p, %n, 0;
@%p bra LOOP;
st.global.u32 [%x], %t;";
    let answer = run_with_args(body, [2560, 32], "tiny", &["--max-cycles", "20000", "--no-flight"]);
    assert_fails(&answer, 4, &["the cycle limit is reached in cycle"]);
    assert!(!answer.err.contains("in the loop"), "{}", answer.err);
}
