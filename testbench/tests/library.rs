//! The library interface: examples run, errors are typed, events have one order, custom components replace built-in ones.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use warpwave::bench::Bench;
use warpwave::components::gpu::LaunchError;
use warpwave::components::preset;
use warpwave::components::sm::l1::L1;
use warpwave::gpu::{Event, Factory, Gpu, GpuError, Shape};
use warpwave::host::HostError;
use warpwave::scenario::{Launch, Scenario};
use warpwave_hw::link::fault::{Fault, FaultKind};
use warpwave_hw::time::Cycle;

#[path = "../examples/own_prefetcher.rs"]
mod own_prefetcher;
#[path = "../examples/own_replacement_policy.rs"]
mod own_replacement_policy;
#[path = "../examples/own_scheduling_policy.rs"]
mod own_scheduling_policy;
#[path = "../examples/run_a_kernel.rs"]
mod run_a_kernel;

const SAXPY: &str = include_str!("../examples/saxpy.ptx");
const WALK: &str = include_str!("../examples/walk.ptx");

#[test]
fn examples_pass_their_assertions() {
    run_a_kernel::main().unwrap();
    own_scheduling_policy::main().unwrap();
    own_replacement_policy::main().unwrap();
    own_prefetcher::main().unwrap();
}

/// Cycles and events of two launches of `saxpy`.
fn events(threads: usize, quantum: u64) -> (u64, Vec<Event>) {
    let mut gpu = Gpu::preset("tiny").unwrap();
    gpu.set_threads(threads);
    gpu.machine_mut().clock_mut().set_quantum(quantum);
    let events = Rc::new(RefCell::new(Vec::new()));
    let list = Rc::clone(&events);
    gpu.subscribe(move |event| list.borrow_mut().push(*event));
    let module = gpu.load(SAXPY).unwrap();
    let x = gpu.buffer(&[1.0f32; 500]).unwrap();
    let cycles = [0, 1].map(|_| {
        let report = gpu.launch(&module, "saxpy", (4, 128), &[&500u32, &2.0f32, &x, &x]);
        report.unwrap().cycles()
    });
    (cycles.iter().sum(), events.take())
}

#[test]
fn events_are_sorted_and_the_same_for_any_threads_and_quantum() {
    let (cycles, all) = events(1, 8);
    assert!(all.is_sorted_by_key(|event| (event.at(), event.sm())));
    assert!([0, 1].iter().all(|sm| all.iter().any(|event| event.sm() == *sm)));
    assert!(all.iter().any(|event| matches!(event, Event::Request { .. })));
    for (threads, quantum) in [(2, 8), (1, 1), (2, 3)] {
        assert!(
            events(threads, quantum) == (cycles, all.clone()),
            "{threads} threads, quantum {quantum}"
        );
    }
}

#[test]
fn custom_l1_replaces_the_built_in_one() {
    let run = |factory: &Factory| {
        let mut gpu = Gpu::with_factory(preset::load("tiny", &[]).unwrap().config, factory).unwrap();
        let module = gpu.load(WALK).unwrap();
        let data = gpu.buffer(&[1u32; 640]).unwrap();
        let report = gpu.launch(&module, "walk", (1, 32), &[&data, &data, &20u32, &2u32]);
        report.unwrap().cycles()
    };
    // Each of the 20 hits among the 40 loads takes one cycle longer, and the next instructions wait for it.
    let slower = Factory::new().l1(|path, mut config, ports| {
        config.latency += 1;
        L1::new(path, config, ports)
    });
    let same = Factory::new().l1(L1::new);
    let plain = run(&Factory::new());
    assert_eq!(run(&same), plain);
    assert_eq!(run(&slower), plain + 20);
}

#[test]
fn faults_of_a_user_are_errors_and_the_gpu_stays_usable() {
    assert!(matches!(Gpu::preset("h10"), Err(GpuError::Preset(_))));
    let mut gpu = Gpu::preset("tiny").unwrap();
    assert!(matches!(gpu.load("no PTX"), Err(GpuError::Ptx { .. })));
    let module = gpu.load(SAXPY).unwrap();
    let x = gpu.buffer(&[1.0f32; 32]).unwrap();
    let fault = gpu.launch(&module, "saxp", (1, 32), &[]).unwrap_err();
    assert_eq!(fault.to_string(), "the program has no kernel `saxp`; it has saxpy");
    let fault = gpu.launch(&module, "saxpy", (0, 32), &[]).unwrap_err();
    assert!(
        matches!(fault, GpuError::EmptyLaunch { grid: [0, 1, 1], .. }),
        "{fault}"
    );
    let fault = gpu
        .launch(&module, "saxpy", (1, 32), &[&32u64, &2.0f32, &x, &x])
        .unwrap_err();
    assert!(
        fault.to_string().starts_with("argument 0 of kernel `saxpy` is 8 bytes"),
        "{fault}"
    );
    assert_eq!(gpu.write(&x, &[1.0; 3]), Err(GpuError::Length { found: 3, want: 32 }));
    let fault = gpu
        .launch(&module, "saxpy", (2, 32), &[&64u32, &2.0f32, &x, &x])
        .unwrap_err();
    assert!(matches!(fault, GpuError::Launch(LaunchError::Trap(_))), "{fault}");
    gpu.write(&x, &[3.0; 32]).unwrap();
    let report = gpu
        .launch(&module, "saxpy", (1, 32), &[&32u32, &2.0f32, &x, &x])
        .unwrap();
    assert_eq!(gpu.read(&x), [9.0; 32]);
    // One warp executes the 17 instructions up to the store, then EXIT: the counters of the trap are not among them.
    assert!(report.counter("scheduler", "warps") == Some(1), "{report}");
    gpu.limit_cycles(10);
    let fault = gpu
        .launch(&module, "saxpy", (1, 32), &[&32u32, &2.0f32, &x, &x])
        .unwrap_err();
    assert!(matches!(fault, GpuError::Launch(LaunchError::Sim(_))), "{fault}");
}

/// Kernel `stopped` prints, reads `n` words of `data` into the L2, and traps. Kernel `next` prints.
const PRINTS: &str = "
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 one[5] = {111, 110, 101, 10, 0};
.global .align 1 .b8 two[5] = {116, 119, 111, 10, 0};
.entry stopped(.param .u64 data, .param .u32 n)
{
    .reg .b64 %f, %at; .reg .b32 %r, %i, %n, %x; .reg .pred %more;
    mov.u64 %f, one;
    cvta.global.u64 %f, %f;
    { .param .b64 p0; .param .b64 p1; .param .b32 q;
    st.param.b64 [p0], %f; st.param.b64 [p1], 0;
    call.uni (q), vprintf, (p0, p1); ld.param.b32 %r, [q]; }
    ld.param.u64 %at, [data];
    ld.param.u32 %n, [n];
    mov.u32 %i, %tid.x;
    mul.wide.u32 %f, %i, 4;
    add.u64 %at, %at, %f;
loop:
    ld.global.cg.u32 %x, [%at];
    add.u32 %r, %r, %x;
    add.u64 %at, %at, 128;
    add.u32 %i, %i, 32;
    setp.lt.u32 %more, %i, %n;
    @%more bra loop;
    mov.u64 %at, 16;
    st.global.u32 [%at], %r;
    ret;
}
.entry next()
{
    .reg .b64 %f; .reg .b32 %r;
    mov.u64 %f, two;
    cvta.global.u64 %f, %f;
    { .param .b64 p0; .param .b64 p1; .param .b32 q;
    st.param.b64 [p0], %f; st.param.b64 [p1], 0;
    call.uni (q), vprintf, (p0, p1); ld.param.b32 %r, [q]; }
    ret;
}
";

#[test]
fn launch_after_a_stopped_one_prints_its_own_text_alone() {
    let mut gpu = Gpu::preset("tiny").unwrap();
    let module = gpu.load(PRINTS).unwrap();
    // Four times the L2: the records of the stopped launch leave it for device memory.
    let words = gpu.machine_mut().config().l2.size;
    let data = gpu.buffer(&vec![0u32; words as usize]).unwrap();
    let fault = gpu.launch(&module, "stopped", (1, 32), &[&data, &words]);
    let fault = fault.unwrap_err();
    assert!(matches!(fault, GpuError::Launch(LaunchError::Trap(_))), "{fault}");
    let report = gpu.launch(&module, "next", (1, 1), &[]).unwrap();
    assert_eq!(report.printed(), "two\n");
}

const GRID_SYNC: &str = include_str!("../scenarios/grid_sync/grid_sync.ptx");

#[test]
fn cooperative_launch_passes_its_barrier_also_after_one_that_stopped_in_it() {
    let mut gpu = Gpu::preset("tiny").unwrap();
    let module = gpu.load(GRID_SYNC).unwrap();
    let shape = Shape::from((40, 64)).cooperative();
    let [squares, out] = [(); 2].map(|()| gpu.buffer(&[0u32; 40 * 64]).unwrap());
    // Thread i of 2560 reads the square of thread 2559 - i, and adds 3 i.
    let want: Vec<u32> = (0..2560).map(|i| (2559 - i) * (2559 - i) + 3 * i).collect();
    let enough = 100_000;
    for limit in [enough, 300, 600, enough] {
        gpu.write(&out, &[0; 2560]).unwrap();
        gpu.limit_cycles(limit);
        let run = gpu.launch(&module, "grid_split", shape, &[&squares, &out]);
        // The limit stops a launch at its barrier.
        assert_eq!(run.is_ok(), limit == enough, "{limit}: {run:?}");
        assert!(run.is_err() || gpu.read(&out) == want, "{limit}");
    }
    let refused = gpu.launch(
        &module,
        "grid_split",
        Shape::from((65, 64)).cooperative(),
        &[&squares, &out],
    );
    assert!(
        matches!(refused, Err(GpuError::Host(HostError::NotResident { .. }))),
        "{refused:?}"
    );
    let trapped = gpu.launch(&module, "grid_split", (40, 64), &[&squares, &out]);
    assert!(
        matches!(trapped, Err(GpuError::Launch(LaunchError::Trap(_)))),
        "{trapped:?}"
    );
}

/// A text of the kernels `a`, `b` and `c`, of 1, 2 and 3 instructions.
fn three_kernels(test: &str) -> String {
    let sync = "bar.sync 0;";
    format!(
        "// {test}\n.version 8.0\n.target sm_80\n.entry a() {{ ret; }}\n.entry b() {{ {sync} ret; }}\n\
         .entry c() {{ {sync} {sync} ret; }}\n"
    )
}

/// The kernels of a text that this process has compiled.
fn compiled(text: &str) -> Vec<String> {
    let module = warpwave_ptx::load(text, |_| false).unwrap();
    let entries = module.entries.iter().filter(|entry| entry.is_compiled());
    entries.map(|entry| entry.name.clone()).collect()
}

#[test]
fn launch_compiles_its_kernel_alone() {
    let text = three_kernels("a GPU");
    let mut gpu = Gpu::preset("tiny").unwrap();
    let module = gpu.load(&text).unwrap();
    assert_eq!(compiled(&text), [""; 0]);
    gpu.launch(&module, "b", (1, 32), &[]).unwrap();
    assert_eq!(compiled(&text), ["b"]);
    let mut other = Gpu::preset("tiny").unwrap();
    let module = other.load(&text).unwrap();
    other.launch(&module, "b", (1, 32), &[]).unwrap();
    other.launch(&module, "c", (1, 32), &[]).unwrap();
    assert_eq!(compiled(&text), ["b", "c"]);
}

#[test]
fn launches_of_one_kernel_share_its_program() {
    let launch = |kernel: &str| Launch {
        entry: Some(kernel.to_owned()),
        grid: [1; 3],
        block: [32, 1, 1],
        dynamic_shared_bytes: 0,
        cluster: None,
        args: Vec::new(),
        ..Launch::default()
    };
    let scenario = Scenario {
        name: "kernels".to_owned(),
        ptx_path: "kernels.ptx".to_owned(),
        ptx: three_kernels("a bench"),
        buffers: Vec::new(),
        globals: Vec::new(),
        launches: ["c", "b", "c"].map(launch).into(),
        ..Scenario::default()
    };
    let config = preset::load("tiny", &[]).unwrap().config;
    let [first, second] = [(); 2].map(|()| Bench::new(&scenario, config.clone()).unwrap());
    assert_eq!(compiled(&scenario.ptx), ["b", "c"]);
    let [c, b, again] = first.programs() else {
        panic!("three launches")
    };
    assert!(Arc::ptr_eq(c, again) && !Arc::ptr_eq(c, b));
    assert!(Arc::ptr_eq(c, &second.programs()[0]));
    // The three instructions of `c` come first: it is launched first.
    assert_eq!((c.base_index(), b.base_index()), (0, 3));
    let exits: Vec<_> = first.instructions().iter().map(|text| text == "EXIT").collect();
    assert_eq!(exits, [false, false, true, false, true]);
}

#[test]
fn launch_after_a_stopped_one_passes_the_check_of_a_link() {
    // Each run stops at another cycle, with other messages in flight on the link. A delay is no violation.
    let mut n_stopped = 0;
    for limit in (100..2000).step_by(50) {
        let mut gpu = Gpu::preset("tiny").unwrap();
        let delay = Fault {
            kind: FaultKind::Delay,
            from: Cycle(0),
            cycles: 5,
            seed: 0,
        };
        let machine = gpu.machine_mut();
        machine.inject("gpu.gpc[0].sm[0].lsu.response", delay).unwrap();
        let module = gpu.load(SAXPY).unwrap();
        let x = gpu.buffer(&[1.0f32; 500]).unwrap();
        let mut launch = |limit| {
            gpu.limit_cycles(limit);
            gpu.launch(&module, "saxpy", (4, 128), &[&500u32, &2.0f32, &x, &x])
        };
        // From some limit on, the first launch ends by itself.
        if launch(limit).is_ok() {
            break;
        }
        n_stopped += 1;
        launch(1_000_000).unwrap_or_else(|error| panic!("stopped in cycle {limit}: {error}"));
    }
    assert!(n_stopped > 5, "{n_stopped} runs stopped");
}
