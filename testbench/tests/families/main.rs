//! Families of instructions, each in a small kernel. Plain Rust computes the expected values. Reference and machine must match them bit by
//! bit.

mod barriers;
mod bytes;
mod conversions;
mod ended_blocks;
mod grid_barriers;
mod groups;
mod heap;
mod images;
mod integers;
mod listed;
mod loops;
mod lowering;
mod operands;
mod printing;

mod params;
mod products;
mod quotients;
mod references;
mod remote;
mod spaces;
mod sparse;
mod stack;
mod sums;
mod syncs;
mod tensor_maps;
mod tiles;
mod vector_registers;
mod vectors;
mod wide_accesses;
mod wide_atomics;
mod widths;

mod data;
mod generic;

use warpwave::bench::{Bench, Options};
use warpwave::lockstep;
use warpwave::reference::ReferenceError;
use warpwave::report::counts::Counts;
use warpwave::scenario::dtype::Dtype;
use warpwave::scenario::{Arg, Buffer, Expect, Image, Launch, Layout, Scenario};
use warpwave_components::gpu::LaunchError;
use warpwave_components::preset;
use warpwave_components::proto::launch::{Trap, TrapKind};
use warpwave_isa::exec::texture::Texture;
use warpwave_ptx::PassSet;

/// Limit of warp instructions, and of cycles. Every kernel here needs fewer.
const LIMIT: u64 = 1_000_000;

/// The trap that ends a run.
fn trap_of(bench: &mut Bench<'_>, threads: usize) -> Box<Trap> {
    let options = Options {
        threads,
        max_cycles: Some(LIMIT),
    };
    match bench.run(options, &mut |_| true).stopped {
        Some((0, LaunchError::Trap(trap))) => trap,
        other => panic!("{other:?}"),
    }
}

/// A kernel with its data.
pub struct Kernel(Scenario, String, Vec<(String, String)>);

impl Kernel {
    /// The module's only entry, or the one that [`Kernel::entry`] names, with one block of 32 threads.
    pub fn of(ptx: &str) -> Kernel {
        let launch = Launch {
            grid: [1; 3],
            block: [32, 1, 1],
            ..Launch::default()
        };
        Kernel(
            Scenario {
                name: "kernel".to_owned(),
                ptx_path: "kernel.ptx".to_owned(),
                ptx: ptx.to_owned(),
                launches: vec![launch],
                ..Scenario::default()
            },
            String::new(),
            Vec::new(),
        )
    }

    /// Sets numbers of the machine, each as `key=value`.
    pub fn set(mut self, settings: &[&str]) -> Kernel {
        let pair = |setting: &&str| {
            setting
                .split_once('=')
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
        };
        self.2 = settings
            .iter()
            .map(|setting| pair(setting).expect("a key and a value"))
            .collect();
        self
    }

    /// Leaves out a pass of the compiler.
    pub fn without(mut self, pass: &str) -> Kernel {
        self.0.skipped_passes = PassSet::EMPTY.with(pass).expect("an optional pass");
        self
    }

    /// Sets the expected `printf` output.
    pub fn prints(mut self, text: &str) -> Kernel {
        self.1 = text.to_owned();
        self
    }

    fn launch(&mut self) -> &mut Launch {
        &mut self.0.launches[0]
    }

    /// Selects the entry.
    pub fn entry(mut self, name: &str) -> Kernel {
        self.launch().entry = Some(name.to_owned());
        self
    }

    /// Sets the grid to `blocks` blocks of `threads` threads.
    pub fn sizes(mut self, blocks: u32, threads: u32) -> Kernel {
        (self.launch().grid, self.launch().block) = ([blocks, 1, 1], [threads, 1, 1]);
        self
    }

    /// Makes the launch cooperative.
    pub fn cooperative(mut self) -> Kernel {
        self.launch().is_cooperative = true;
        self
    }

    /// Sets the grid to one block of this shape.
    pub fn block(mut self, block: [u32; 3]) -> Kernel {
        self.launch().block = block;
        self
    }

    /// Adds an argument: a buffer of these 4-byte words.
    pub fn input(self, words: &[u32]) -> Kernel {
        self.buffer(words, None)
    }

    /// Adds an argument: a buffer of zeros that must have these words after the launch.
    pub fn output(self, words: &[u32]) -> Kernel {
        self.buffer(&vec![0; words.len()], Some(words))
    }

    /// Adds an argument: a buffer of the words `before` that must have the words `after` at the end.
    pub fn changed(self, before: &[u32], after: &[u32]) -> Kernel {
        self.buffer(before, Some(after))
    }

    /// Adds an argument: an image with these texels.
    pub fn image(self, dtype: Dtype, texels: Vec<u8>, texture: Texture) -> Kernel {
        self.add_image(dtype, texels, None, texture)
    }

    /// Adds an argument: an image with the texels `before` that must have the texels `after` at the end.
    pub fn image_left_as(self, dtype: Dtype, before: Vec<u8>, after: &[u8], texture: Texture) -> Kernel {
        self.add_image(dtype, before, Some(after.to_vec()), texture)
    }

    fn add_image(mut self, dtype: Dtype, init: Vec<u8>, expect: Option<Vec<u8>>, texture: Texture) -> Kernel {
        let buffer = self.add(dtype, init, expect);
        self.launch().args.push(Arg::Image(Image { buffer, texture }));
        self
    }

    /// Binds an image with these texels to a reference of the module. If given, it must have the texels `after` at the end.
    pub fn reference(mut self, name: &str, texels: Vec<u8>, after: Option<&[u8]>, texture: Texture) -> Kernel {
        let buffer = self.add(Dtype::U32, texels, after.map(<[u8]>::to_vec));
        self.0.references.insert(name.to_owned(), Image { buffer, texture });
        self
    }

    fn buffer(mut self, init: &[u32], expect: Option<&[u32]>) -> Kernel {
        let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let index = self.add(Dtype::U32, bytes(init), expect.map(bytes));
        self.launch().args.push(Arg::Buffer(index));
        self
    }

    fn add(&mut self, dtype: Dtype, init: Vec<u8>, expect: Option<Vec<u8>>) -> usize {
        let index = self.0.buffers.len();
        self.0.buffers.push(Buffer {
            name: format!("b{index}"),
            layout: Layout {
                dtype,
                shape: vec![(init.len() / dtype.bytes()) as u64],
            },
            init,
            expect: expect.map(|bytes| Expect {
                bytes,
                rtol: 0.0,
                atol: 0.0,
            }),
        });
        index
    }

    /// Adds an argument: this number.
    pub fn number(mut self, value: u32) -> Kernel {
        let bytes = value.to_le_bytes().to_vec();
        self.launch().args.push(Arg::Scalar(Dtype::U32, bytes));
        self
    }

    /// Adds this argument.
    pub fn argument(mut self, arg: Arg) -> Kernel {
        self.launch().args.push(arg);
        self
    }

    /// Asserts that the kernel traps on the reference and on the machine, at this line and with this kind.
    pub fn traps(self, kind: TrapKind, line: u32) {
        let config = preset::load("tiny", &self.2)
            .unwrap_or_else(|error| panic!("{error}"))
            .config;
        let mut bench = Bench::new(&self.0, config).unwrap_or_else(|error| panic!("{error}: {error:?}"));
        match lockstep::reference(&bench, LIMIT) {
            Err((0, ReferenceError::Trap(trap))) => assert_eq!((trap.kind, trap.line), (kind, line), "without time"),
            Err((_, error)) => panic!("without time: {error}"),
            Ok(_) => panic!("without time: no trap"),
        }
        let trap = trap_of(&mut bench, 1);
        assert_eq!((trap.kind, trap.line), (kind, line));
    }

    /// Asserts that the kernel traps on the machine, and returns the trap. It is the same with two threads.
    pub fn trap_of_machine(self) -> Box<Trap> {
        let config = preset::load("tiny", &self.2)
            .unwrap_or_else(|error| panic!("{error}"))
            .config;
        let [trap, other] = [1, 2].map(|threads| {
            let bench = Bench::new(&self.0, config.clone());
            trap_of(&mut bench.unwrap_or_else(|error| panic!("{error}: {error:?}")), threads)
        });
        assert_eq!(trap, other);
        trap
    }

    /// Asserts that the kernel gives the expected results on the reference and on the machine.
    pub fn holds(self) {
        self.counted();
    }

    /// Asserts what [`Kernel::holds`] does, and returns the counters of the machine.
    pub fn counted(self) -> Counts {
        let config = preset::load("tiny", &self.2)
            .unwrap_or_else(|error| panic!("{error}"))
            .config;
        let mut bench = Bench::new(&self.0, config).unwrap_or_else(|error| panic!("{error}: {error:?}"));
        let memory = lockstep::reference(&bench, LIMIT).unwrap_or_else(|(_, error)| panic!("{error}"));
        for (buffer, address) in bench.data() {
            let found = memory
                .get(address, buffer.layout.bytes() as usize)
                .expect("buffers are allocated");
            let wanted = buffer.expect.as_ref();
            let difference = wanted.and_then(|want| lockstep::compare(&buffer.name, buffer.layout.dtype, found, want));
            assert!(difference.is_none(), "without time: {}", difference.unwrap());
        }
        assert_eq!(bench.printed_in(&memory), self.1, "without time");
        let options = Options {
            threads: 1,
            max_cycles: Some(LIMIT),
        };
        let run = bench.run(options, &mut |_| true);
        assert!(run.stopped.is_none(), "{:?}", run.stopped);
        assert!(run.differences.is_empty(), "{}", run.differences[0]);
        assert_eq!(run.launches[0].printed, self.1);
        assert_eq!(lockstep::difference(&bench, &memory), None);
        run.totals
    }
}

/// An entry `k` with a pointer `out` as its only parameter. `%t` is the thread, `%o` the address of its word of `out`, and what the
/// body leaves in `%r` goes there.
pub fn one_word_each(target: &str, body: &str) -> String {
    format!(
        ".version 8.6\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
         .reg .pred %p<8>;\n.reg .b32 %t, %r, %a<16>;\n.reg .b64 %o, %d<8>;\n.reg .f32 %f<8>;\n\
         ld.param.u64 %o, [out];\nmov.u32 %t, %tid.x;\nmad.wide.u32 %o, %t, 4, %o;\n{body}\n\
         st.global.u32 [%o], %r;\nret;\n}}\n"
    )
}

/// A kernel as [`one_word_each`] makes it, with functions that the body calls.
pub fn with_function(functions: &str, body: &str) -> String {
    one_word_each("sm_80", body).replacen(".visible .entry", &format!("{functions}.visible .entry"), 1)
}
