//! Runs a kernel `k(in, out)` that reads pairs of 64-bit numbers and writes one number for each.

use std::sync::Arc;

use warpwave::reference::{self, Memory};
use warpwave_components::proto::launch::Grid;
use warpwave_components::storage::Storage;
use warpwave_isa::space::bank0;

/// Threads of a block. Surplus threads of the last block read zeros.
pub const BLOCK: usize = 256;

/// The results of the kernel in `text` for each pair. `what` is its name in errors.
pub fn results(what: &str, text: &str, pairs: &[[u64; 2]]) -> Vec<u64> {
    let shown = |findings: &[warpwave_ptx::Diagnostic]| findings[0].render(what, text);
    let module = warpwave_ptx::compile(text).unwrap_or_else(|findings| panic!("{}", shown(&findings)));
    let program = module.entries[0].program().clone();
    let program = program.unwrap_or_else(|findings| panic!("{}", shown(&findings)));
    let blocks = pairs.len().div_ceil(BLOCK);
    let storage = Storage::new(1 << 28);
    let [input, output] = [16, 8].map(|bytes| storage.allocate((blocks * BLOCK * bytes) as u64).unwrap());
    let bytes: Vec<u8> = pairs.iter().flatten().flat_map(|number| number.to_le_bytes()).collect();
    storage.write(input, &bytes);
    let mut memory = Memory::of(&storage);
    let mut bank = vec![0; usize::from(bank0::PARAMS) / 4];
    bank[usize::from(bank0::BLOCK_SIZE) / 4] = BLOCK as u32;
    bank[usize::from(bank0::GRID_SIZE) / 4] = blocks as u32;
    bank.extend([input, output].iter().flat_map(|&at| [at as u32, (at >> 32) as u32]));
    let grid = Grid {
        id: 0,
        grid: [blocks as u32, 1, 1],
        block: [BLOCK as u32, 1, 1],
        cluster: [1; 3],
        shared_bytes: 0,
        dynamic_shared_bytes: 0,
        registers: program.requirements().registers,
        allocations: storage.allocations(),
        textures: Vec::new(),
        local_base: 0,
        l1_bytes: 0,
        constants: vec![bank],
        ctas_per_sm: 1,
        timing: Vec::new(),
        predecoded: Arc::default(),
        program,
    };
    reference::run(&grid, &mut memory, u64::MAX).unwrap();
    let bytes = memory.get(output, 8 * pairs.len()).unwrap();
    let words = bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
    words.collect()
}
