//! Families of instructions, each in a small kernel. Plain Rust gives the expected values. The reference without time and the machine
//! must agree with them to the bit.

mod barriers;
mod bytes;
mod groups;
mod images;
mod integers;
mod listed;
mod printing;

mod params;
mod products;
mod quotients;
mod remote;
mod spaces;
mod stack;
mod sums;
mod syncs;
mod tiles;
mod vectors;

mod data;
mod generic;

use warpwave::bench::{Bench, Options};
use warpwave::lockstep;
use warpwave::reference::ReferenceError;
use warpwave::scenario::dtype::Dtype;
use warpwave::scenario::{Arg, Buffer, Expect, Image, Launch, Layout, Scenario};
use warpwave_components::gpu::LaunchError;
use warpwave_components::preset;
use warpwave_components::proto::launch::TrapKind;
use warpwave_isa::exec::texture::Texture;

/// Warp instructions, and cycles, that no kernel here needs.
const LIMIT: u64 = 1_000_000;

/// A kernel with its data.
pub struct Kernel(Scenario, String);

impl Kernel {
    /// The module's only entry, or the one that [`Kernel::entry`] names, with one block of 32 threads.
    pub fn of(ptx: &str) -> Kernel {
        let launch = Launch {
            entry: None,
            grid: [1; 3],
            block: [32, 1, 1],
            dynamic_shared_bytes: 0,
            cluster: None,
            args: Vec::new(),
        };
        Kernel(
            Scenario {
                name: "kernel".to_owned(),
                title: None,
                claim: None,
                ptx_path: "kernel.ptx".to_owned(),
                ptx: ptx.to_owned(),
                gpu: None,
                buffers: Vec::new(),
                globals: Vec::new(),
                launches: vec![launch],
                asserts: Vec::new(),
            },
            String::new(),
        )
    }

    /// It must print this.
    pub fn prints(mut self, text: &str) -> Kernel {
        self.1 = text.to_owned();
        self
    }

    fn launch(&mut self) -> &mut Launch {
        &mut self.0.launches[0]
    }

    /// Names the entry.
    pub fn entry(mut self, name: &str) -> Kernel {
        self.launch().entry = Some(name.to_owned());
        self
    }

    /// Sets the grid to `blocks` blocks of `threads` threads.
    pub fn sizes(mut self, blocks: u32, threads: u32) -> Kernel {
        (self.launch().grid, self.launch().block) = ([blocks, 1, 1], [threads, 1, 1]);
        self
    }

    /// One block of this shape.
    pub fn block(mut self, block: [u32; 3]) -> Kernel {
        self.launch().block = block;
        self
    }

    /// The next argument is a buffer with these words, 4 bytes each.
    pub fn input(self, words: &[u32]) -> Kernel {
        self.buffer(words, None)
    }

    /// The next argument is a buffer of zeros in which these words must be left.
    pub fn output(self, words: &[u32]) -> Kernel {
        self.buffer(&vec![0; words.len()], Some(words))
    }

    /// The next argument is a buffer that begins with words and must be left with others.
    pub fn changed(self, before: &[u32], after: &[u32]) -> Kernel {
        self.buffer(before, Some(after))
    }

    /// The next argument is an image with these texels.
    pub fn image(self, dtype: Dtype, texels: Vec<u8>, texture: Texture) -> Kernel {
        self.add_image(dtype, texels, None, texture)
    }

    /// The next argument is an image that must be left with other texels.
    pub fn image_left_as(self, dtype: Dtype, before: Vec<u8>, after: &[u8], texture: Texture) -> Kernel {
        self.add_image(dtype, before, Some(after.to_vec()), texture)
    }

    fn add_image(mut self, dtype: Dtype, init: Vec<u8>, expect: Option<Vec<u8>>, texture: Texture) -> Kernel {
        let buffer = self.add(dtype, init, expect);
        self.launch().args.push(Arg::Image(Image { buffer, texture }));
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

    /// The next argument is this number.
    pub fn number(mut self, value: u32) -> Kernel {
        let bytes = value.to_le_bytes().to_vec();
        self.launch().args.push(Arg::Scalar(Dtype::U32, bytes));
        self
    }

    /// Runs it without time and on the machine: both must give it up, at a line of the text, for a reason of this kind.
    pub fn traps(self, kind: TrapKind, line: u32) {
        let config = preset::load("tiny", &[])
            .unwrap_or_else(|error| panic!("{error}"))
            .config;
        let mut bench = Bench::new(&self.0, config).unwrap_or_else(|error| panic!("{error}: {error:?}"));
        match lockstep::reference(&bench, LIMIT) {
            Err((0, ReferenceError::Trap(trap))) => assert_eq!((trap.kind, trap.line), (kind, line), "without time"),
            Err((_, error)) => panic!("without time: {error}"),
            Ok(_) => panic!("without time: no trap"),
        }
        let options = Options {
            threads: 1,
            max_cycles: Some(LIMIT),
        };
        match bench.run(options, &mut |_| true).stopped {
            Some((0, LaunchError::Trap(trap))) => assert_eq!((trap.kind, trap.line), (kind, line)),
            other => panic!("{other:?}"),
        }
    }

    /// Runs it without time and on the machine.
    pub fn holds(self) {
        let config = preset::load("tiny", &[])
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

/// As [`one_word_each`], with functions that the body calls.
pub fn with_function(functions: &str, body: &str) -> String {
    one_word_each("sm_80", body).replacen(".visible .entry", &format!("{functions}.visible .entry"), 1)
}
