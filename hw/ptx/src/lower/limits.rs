//! Limits from a kernel's directives: block size and number of registers.

use crate::MIN_REGISTER_CAP;
use crate::ast::Function;
use warpwave_isa::reg::Reg;

/// Registers of an SM. GPUs since Maxwell have this number.
const SM_REGISTERS: u64 = 1 << 16;
/// Allocation unit of registers per thread.
const ALLOCATION_UNIT: u64 = 8;

/// Returns the block size of `.maxntid 256, 1, 1` or `.reqntid`. Omitted dimensions are 1.
pub(super) fn block_size(function: &Function<'_>, name: &str) -> Option<[u32; 3]> {
    let (_, numbers) = function.limits.iter().find(|(limit, _)| *limit == name)?;
    let dimension = |n: usize| numbers.get(n).map_or(1, |&size| size as u32);
    Some([dimension(0), dimension(1), dimension(2)])
}

/// True if a directive of the kernel makes its clusters explicit.
pub(super) fn has_cluster(function: &Function<'_>) -> bool {
    const DIRECTIVES: [&str; 3] = [".explicitcluster", ".reqnctapercluster", ".blocksareclusters"];
    function.limits.iter().any(|(limit, _)| DIRECTIVES.contains(limit))
}

/// Returns the maximum registers per thread. `.maxnreg` limits it directly, and so does `option`.
///
/// `.maxntid` or `.reqntid` limit it too: `.minnctapersm` CTAs of that size must fit on an SM.
pub(super) fn max_registers(function: &Function<'_>, option: Option<u8>) -> usize {
    let number = |name: &str| {
        let (_, numbers) = function.limits.iter().find(|(limit, _)| *limit == name)?;
        numbers.first().copied()
    };
    // PTX allows one of the two directives.
    let size = block_size(function, ".reqntid").or_else(|| block_size(function, ".maxntid"));
    let by_occupancy = size.map(|size| {
        let threads: u64 = size.iter().map(|&n| u64::from(n)).product();
        // A warp has registers for 32 threads, even if some do not exist.
        let threads = threads.next_multiple_of(32) * number(".minnctapersm").unwrap_or(1).max(1);
        SM_REGISTERS / threads.max(32) / ALLOCATION_UNIT * ALLOCATION_UNIT
    });
    let direct = number(".maxnreg").into_iter().chain(option.map(u64::from));
    let allowed = by_occupancy.into_iter().chain(direct).min();
    allowed.map_or(Reg::COUNT, |allowed| {
        (allowed.max(MIN_REGISTER_CAP.into()) as usize).min(Reg::COUNT)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the register limit of an entry with these directives.
    fn allowed(directives: &str) -> usize {
        with_option(directives, None)
    }

    fn with_option(directives: &str, option: Option<u8>) -> usize {
        let text = format!(".version 8.0\n.target sm_80\n.entry k() {directives} {{ ret; }}\n");
        max_registers(&crate::parse(&text).unwrap().functions[0], option)
    }

    #[test]
    fn register_limit_follows_directives() {
        assert_eq!(allowed(""), 255);
        assert_eq!(allowed(".maxnreg 40"), 40);
        assert_eq!(allowed(".maxnreg 4"), 16);
        assert_eq!(allowed(".maxntid 1024, 1, 1"), 64);
        // 2 CTAs of 1024 threads: 65536 / 2048.
        assert_eq!(allowed(".maxntid 1024, 1, 1 .minnctapersm 2"), 32);
        // 3 CTAs of 96 threads: 227 registers each, rounded down to the unit of 8.
        assert_eq!(allowed(".reqntid 96 .minnctapersm 3"), 224);
        assert_eq!(allowed(".maxntid 1024 .maxnreg 32"), 32);
        assert_eq!(allowed(".minnctapersm 4"), 255);
    }

    #[test]
    fn option_lowers_the_register_limit_but_does_not_raise_it() {
        assert_eq!(with_option("", Some(32)), 32);
        assert_eq!(with_option("", Some(1)), 16);
        assert_eq!(with_option(".maxnreg 40", Some(64)), 40);
        assert_eq!(with_option(".maxntid 1024", Some(48)), 48);
    }
}
