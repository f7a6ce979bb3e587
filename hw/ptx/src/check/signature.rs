//! Signatures: the operands that each PTX instruction takes.
//!
//! A signature has one letter per operand, in order. Operands after `?` are optional.
//!
//! | letter | operand |
//! |---|---|
//! | `d` | result register of the instruction's type |
//! | `a` | source of the instruction's type |
//! | `D`, `A` | as `d` and `a`, twice as wide with `.wide` |
//! | `u` | 32-bit source for any type |
//! | `p` | predicate source; `P` predicate result, or `p\|q` |
//! | `v` | register or vector for a value in memory; its registers may be wider |
//! | `e` | register or vector for a value in memory, of exactly the instruction's type |
//! | `m` | address in brackets |
//! | `l` | label |
//! | `x` | not checked |

/// Returns the signature of an opcode with these qualifiers; `None` for an unknown opcode.
pub(super) fn signature(opcode: &str, has: impl Fn(&str) -> bool) -> Option<&'static str> {
    Some(match opcode {
        "add" | "sub" | "addc" | "subc" | "and" | "or" | "xor" | "rem" | "div" | "mul24" | "copysign" => "daa",
        "min" | "max" => "daa?a",
        "mul" => "Daa",
        "mad" | "madc" => "DaaA",
        "fma" | "mad24" | "sad" => "daaa",
        "neg" | "abs" | "not" | "cnot" | "brev" | "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "lg2" | "ex2" | "tanh" => {
            "da"
        }
        "popc" | "clz" | "bfind" => "ua",
        "shl" | "shr" => "dau",
        "shf" | "prmt" => "daau",
        "bfe" => "dauu",
        "bfi" => "daauu",
        "bmsk" => "duu",
        "testp" => "px",
        "lop3" => "xaaax?x",
        "setp" if has(".f16x2") || has(".bf16x2") => "xaa?p",
        "setp" => "Paa?p",
        "selp" => "daap",
        "slct" | "set" | "szext" | "fns" => "xx?xxx",
        "dp4a" | "dp2a" => "daaa",
        "mov" => "xx",
        "cvt" => "xx?xx",
        "cvta" => "xx",
        "ld" | "ldu" => "vm?x",
        "st" => "mv?x",
        "atom" if has(".L2::cache_hint") => "xmxx?xx",
        "atom" => "eme?ex",
        "red" => "me?x",
        "bra" => "l",
        "brx" => "xx",
        "call" => "x?xxx",
        "ret" | "exit" | "trap" | "brkpt" => "",
        "bar" | "barrier" => "?xxxx",
        "membar" | "fence" => "?xxx",
        "shfl" => "xuuu?u",
        "vote" => "xx?x",
        "match" => "xx?x",
        "redux" => "xx?x",
        "activemask" => "d",
        "elect" => "xx",
        "nanosleep" => "u",
        "ldmatrix" => "xm",
        "stmatrix" => "mx",
        "movmatrix" => "uu",
        "mma" => "xxxx?xxxxx",
        "wmma" => "xx?xxxx",
        "cp" => "?xxxxxxx",
        "prefetch" | "prefetchu" | "discard" | "applypriority" => "m?x",
        "isspacep" => "Px",
        "createpolicy" => "d?xxx",
        "mapa" => "xxu",
        "alloca"
        | "clusterlaunchcontrol"
        | "dp3a"
        | "getctarank"
        | "griddepcontrol"
        | "istypep"
        | "mbarrier"
        | "multimem"
        | "pmevent"
        | "setmaxnreg"
        | "stackrestore"
        | "stacksave"
        | "suld"
        | "sured"
        | "sust"
        | "suq"
        | "tcgen05"
        | "tensormap"
        | "tex"
        | "tld4"
        | "txq"
        | "vabsdiff"
        | "vabsdiff2"
        | "vabsdiff4"
        | "vadd"
        | "vadd2"
        | "vadd4"
        | "vavrg2"
        | "vavrg4"
        | "vmad"
        | "vmax"
        | "vmax2"
        | "vmax4"
        | "vmin"
        | "vmin2"
        | "vmin4"
        | "vset"
        | "vset2"
        | "vset4"
        | "vshl"
        | "vshr"
        | "vsub"
        | "vsub2"
        | "vsub4"
        | "wgmma" => "?xxxxxxxxxxxxxxx",
        _ => return None,
    })
}

/// True if the opcode needs a type. Without one the instruction is malformed.
pub(super) fn needs_type(signature: &str) -> bool {
    signature.contains(['d', 'a', 'v', 'e'])
}

/// Most types that a form of the opcode names. `None` where another check, or the lowering, counts them.
pub(super) fn most_types(opcode: &str, has: impl Fn(&str) -> bool) -> Option<usize> {
    Some(match opcode {
        // Mixed precision: `add.f32.f16`.
        "add" | "sub" | "fma" if has(".f32") && (has(".f16") || has(".bf16")) => 2,
        // `cvt.pack.sat.u8.s32.b32` has the type of its addend too.
        "cvt" if has(".pack") => 3,
        "cvt" | "set" | "slct" | "dp4a" | "dp2a" => 2,
        "abs" | "activemask" | "add" | "addc" | "and" | "bfe" | "bfi" | "bfind" | "bmsk" | "brev" | "clz" | "cnot"
        | "copysign" | "cos" | "cvta" | "div" | "ex2" | "fma" | "fns" | "lg2" | "lop3" | "mad" | "mad24" | "madc"
        | "mapa" | "match" | "max" | "min" | "mov" | "movmatrix" | "mul" | "mul24" | "nanosleep" | "neg" | "not"
        | "or" | "popc" | "prmt" | "rcp" | "redux" | "rem" | "rsqrt" | "sad" | "selp" | "setp" | "shf" | "shfl"
        | "shl" | "shr" | "sin" | "sqrt" | "sub" | "subc" | "szext" | "tanh" | "testp" | "vote" | "xor" => 1,
        _ => return None,
    })
}

/// True for a video instruction. Its operands can select bytes and halves.
pub(super) fn is_video(opcode: &str) -> bool {
    opcode.starts_with('v') && opcode != "vote"
}

/// True for a byte or half selector: `.b0`, `.h1`, `.b3210`, `.h32`.
pub(super) fn is_selector(component: &str) -> bool {
    let digits = component.strip_prefix(".b").or_else(|| component.strip_prefix(".h"));
    digits.is_some_and(|digits| {
        (1..=4).contains(&digits.len()) && digits.bytes().all(|digit| (b'0'..b'8').contains(&digit))
    })
}
