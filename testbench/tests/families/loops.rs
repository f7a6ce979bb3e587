//! Unrolled loops: each thread runs as many iterations as the text says, on the same values of the counter.

use super::{Kernel, one_word_each};

/// Most iterations of a thread in these tests.
const MOST: u32 = 40;

/// Where a loop tests, and what.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// Before the body: the counter.
    Top,
    /// After the body: the counter with its increment.
    End,
    /// After the body: the counter before its increment.
    EndOld,
}

/// A counted loop that sums 31 times the sum so far and the counter.
#[derive(Clone, Copy, Debug)]
struct Counted {
    ty: &'static str,
    cmp: &'static str,
    step: i64,
    place: Place,
}

impl Counted {
    fn cut(&self, value: i64) -> i64 {
        match self.ty {
            "u32" => i64::from(value as u32),
            "s32" => i64::from(value as i32),
            _ => value,
        }
    }

    fn goes_on(&self, counter: i64, bound: i64) -> bool {
        // Unsigned 64-bit numbers compare as signed ones with the upper bit changed.
        let flip = |value: i64| if self.ty == "u64" { value ^ i64::MIN } else { value };
        let (a, b) = (flip(counter), flip(bound));
        match self.cmp {
            "lt" => a < b,
            "le" => a <= b,
            "gt" => a > b,
            "ge" => a >= b,
            _ => a != b,
        }
    }

    /// Returns the sum; `None` after too many iterations.
    fn sum(&self, start: i64, bound: i64, most: u32) -> Option<u32> {
        let (mut counter, mut sum) = (start, 0_u32);
        for _ in 0..=most {
            if self.place == Place::Top && !self.goes_on(counter, bound) {
                return Some(sum);
            }
            sum = sum.wrapping_mul(31).wrapping_add(counter as u32);
            let old = counter;
            counter = self.cut(counter.wrapping_add(self.step));
            let tested = if self.place == Place::EndOld { old } else { counter };
            if self.place != Place::Top && !self.goes_on(tested, bound) {
                return Some(sum);
            }
        }
        None
    }

    /// Returns the loop over the counter `%i`, up to `bound`.
    fn text(&self, bound: &str) -> String {
        let Counted { ty, cmp, step, place } = self;
        let test = format!("setp.{cmp}.{ty} %p0, %i, {bound};\n");
        let word = if ty.ends_with("64") {
            "cvt.u32.u64 %a2, %i;\n"
        } else {
            "mov.b32 %a2, %i;\n"
        };
        let body = format!("{word}mad.lo.u32 %r, %r, 31, %a2;\n");
        let step = format!("add.{ty} %i, %i, {step};\n");
        match place {
            Place::Top => format!("again:\n{test}@!%p0 bra done;\n{body}{step}bra again;\ndone:\n"),
            Place::End => format!("again:\n{body}{step}{test}@%p0 bra again;\n"),
            Place::EndOld => format!("again:\n{body}{test}{step}@%p0 bra again;\n"),
        }
    }
}

/// Returns all loops with these steps.
fn loops(steps: &'static [i64]) -> impl Iterator<Item = Counted> {
    let places = [Place::Top, Place::End, Place::EndOld];
    let kinds = ["u32", "s32", "u64", "s64"]
        .into_iter()
        .flat_map(|ty| ["lt", "le", "gt", "ge", "ne"].map(|cmp| (ty, cmp)));
    kinds.flat_map(move |(ty, cmp)| {
        let steps = steps.iter();
        steps.flat_map(move |&step| places.map(|place| Counted { ty, cmp, step, place }))
    })
}

/// Returns the least and the greatest number of a type.
fn limits(ty: &str) -> [i64; 2] {
    match ty {
        "u32" => [0, u32::MAX.into()],
        "s32" => [i32::MIN.into(), i32::MAX.into()],
        "u64" => [0, -1],
        _ => [i64::MIN, i64::MAX],
    }
}

#[test]
fn threads_with_unknown_starts_and_bounds_run_their_own_iterations() {
    for counted in loops(&[1, -1, 3, -4]) {
        let ends = limits(counted.ty);
        let places = [ends[0], ends[1], 100, 1_000_000];
        // Starts and bounds near each other, and near the ends of the type. Those of endless loops are left out.
        let pairs = places.into_iter().flat_map(|base| {
            (0..24).flat_map(move |n| {
                (-3..3).map(move |near| (base.wrapping_add(near), base.wrapping_add(near + n * counted.step)))
            })
        });
        let pairs: Vec<(i64, i64)> = pairs
            .map(|(start, bound)| (counted.cut(start), counted.cut(bound)))
            .filter(|&(start, bound)| counted.sum(start, bound, MOST).is_some())
            .collect();
        for pairs in pairs.chunks(pairs.len().div_ceil(4).max(1)) {
            let of = |thread: usize| pairs[thread * 7 % pairs.len()];
            let words = |value: i64| [value as u32, (value >> 32) as u32];
            let input: Vec<u32> = (0..32)
                .flat_map(|t| [words(of(t).0), words(of(t).1)].concat())
                .collect();
            let wanted: Vec<u32> = (0..32).map(|t| counted.sum(of(t).0, of(t).1, MOST).unwrap()).collect();
            let width = &counted.ty[1..];
            let body = format!(
                ".reg .b{width} %i, %n;\nld.param.u64 %d0, [in];\nmad.wide.u32 %d0, %t, 16, %d0;\n\
                 ld.global.b{width} %i, [%d0];\nld.global.b{width} %n, [%d0+8];\nmov.b32 %r, 0;\n{}",
                counted.text("%n")
            );
            let text = one_word_each("sm_80", &body).replace("(.param .u64 out)", "(.param .u64 out, .param .u64 in)");
            println!("{counted:?} of {pairs:?}");
            Kernel::of(&text).output(&wanted).input(&input).holds();
        }
    }
}

#[test]
fn loops_with_known_starts_and_bounds_run_all_iterations() {
    for counted in loops(&[1, -1, 3]) {
        for (n, start) in [(0, 5), (1, 0), (2, 9), (4, 0), (5, -2), (40, 7), (3001, 1)] {
            // One long loop of each kind.
            if n > 40 && counted.step != 1 {
                continue;
            }
            let (start, bound) = (counted.cut(start), counted.cut(start + n * counted.step));
            let Some(sum) = counted.sum(start, bound, 5000) else {
                continue;
            };
            let width = &counted.ty[1..];
            let body = format!(
                ".reg .b{width} %i;\nmov.b{width} %i, {start};\nmov.b32 %r, 0;\n{}add.u32 %r, %r, %t;\n",
                counted.text(&bound.to_string())
            );
            let wanted: Vec<u32> = (0..32).map(|t| sum.wrapping_add(t)).collect();
            println!("{counted:?} from {start} to {bound}");
            Kernel::of(&one_word_each("sm_80", &body)).output(&wanted).holds();
        }
    }
}

#[test]
fn value_of_one_iteration_reaches_the_header_of_the_next() {
    // The header has the test and reads %a2, and the rest of the iteration writes it.
    let body = "mov.b32 %r, 0;\nmov.b32 %a1, 0;\nmov.b32 %a2, 7;\nnext:\nmad.lo.u32 %r, %r, 3, %a2;\nsetp.ge.u32 %p0, %a1, 5;\n\
                @%p0 bra done;\nmad.lo.u32 %a2, %a1, 11, %t;\nadd.u32 %a1, %a1, 1;\nbra next;\ndone:\n";
    let wanted = |thread: u32| {
        let (mut r, mut x) = (0_u32, 7_u32);
        for i in 0..=5 {
            r = r.wrapping_mul(3).wrapping_add(x);
            x = i * 11 + thread;
        }
        r
    };
    let wanted: Vec<u32> = (0..32).map(wanted).collect();
    Kernel::of(&one_word_each("sm_80", body)).output(&wanted).holds();
}

/// The inner loop has a known number of iterations, and the outer one leaves early in some lanes. A guarded value and a short branch are in it.
#[test]
fn nested_loop_with_an_exit_and_a_branch_keeps_its_values() {
    let body = "mov.u32 %r, 1;\nmov.u32 %a1, 0;\nouter:\nmov.u32 %a2, 0;\ninner:\nmad.lo.u32 %r, %r, 5, %a2;\n\
                setp.lt.u32 %p2, %r, %a1;\n@%p2 add.u32 %r, %r, %a1;\nadd.u32 %a2, %a2, 1;\nsetp.lt.u32 %p0, %a2, 6;\n@%p0 bra inner;\n\
                and.b32 %a3, %r, 1;\nsetp.eq.u32 %p3, %a3, 0;\n@%p3 bra even;\nxor.b32 %r, %r, %a1;\neven:\n\
                setp.eq.u32 %p1, %a1, %t;\n@%p1 bra done;\nadd.u32 %a1, %a1, 1;\nsetp.ne.u32 %p0, %a1, 9;\n@%p0 bra outer;\ndone:\n";
    let wanted = |thread: u32| {
        let mut r = 1_u32;
        for i in 0..9 {
            for j in 0..6 {
                r = r.wrapping_mul(5).wrapping_add(j);
                if r < i {
                    r = r.wrapping_add(i);
                }
            }
            if r % 2 == 1 {
                r ^= i;
            }
            if i == thread {
                break;
            }
        }
        r
    };
    let wanted: Vec<u32> = (0..32).map(wanted).collect();
    Kernel::of(&one_word_each("sm_80", body)).output(&wanted).holds();
}

/// The way out goes round a block that whole iterations run: a lane that leaves keeps the values of the iteration before.
#[test]
fn way_out_has_the_values_of_the_iteration_before() {
    let around = |inside: &str, side: &str, turns: u32| {
        one_word_each(
            "sm_80",
            &format!(
                "mov.u32 %a0, 0;\nmov.u32 %a1, 100;\nmov.u32 %r, 77;\nsetp.eq.u32 %p2, %a0, 0;\nLOOP:\nsetp.eq.u32 %p0, %a0, %t;\n\
                 @%p0 bra SIDE;\n{inside}\nbra LATCH;\nSIDE:\n{side}\nbra OUT;\nLATCH:\nadd.u32 %a0, %a0, 1;\n\
                 setp.lt.u32 %p1, %a0, {turns};\n@%p1 bra LOOP;\nOUT:\n"
            ),
        )
    };
    let value: Vec<u32> = (0..32)
        .map(|t| match t {
            0 => 100,
            1..4 => 9 + t,
            _ => 77,
        })
        .collect();
    let text = around("add.u32 %a1, %a0, 10;", "mov.u32 %r, %a1;", 4);
    Kernel::of(&text).output(&value).holds();
    // The predicate is true from the start, and from the counters 0 and 1.
    let predicate: Vec<u32> = (0..32)
        .map(|t| match t {
            0..3 => 1,
            3..8 => 2,
            _ => 77,
        })
        .collect();
    let text = around("setp.lt.u32 %p2, %a0, 2;", "selp.u32 %r, 1, 2, %p2;", 8);
    Kernel::of(&text).output(&predicate).holds();
    let counter: Vec<u32> = (0..32).map(|t| if t < 8 { t } else { 77 }).collect();
    let text = around("add.u32 %a0, %a0, 1;", "mov.u32 %r, %a0;", 8);
    let text = text.replace("LATCH:\nadd.u32 %a0, %a0, 1;", "LATCH:");
    Kernel::of(&text).output(&counter).holds();
}

/// A loop of 2^64 iterations, which each lane leaves early.
#[test]
fn loop_of_all_numbers_of_64_bits_runs_until_its_break() {
    let body = "mov.u64 %d0, -1;\nmov.u32 %r, 0;\nLOOP:\nmad.lo.u32 %r, %r, 3, 1;\nsetp.ge.u32 %p0, %r, %t;\n@%p0 bra OUT;\n\
                add.u64 %d0, %d0, 1;\nsetp.lt.u64 %p1, %d0, 0xffffffffffffffff;\n@%p1 bra LOOP;\nOUT:\n";
    // 0 becomes 1, 4, 13 and 40.
    let wanted: Vec<u32> = (0..32)
        .map(|t| [1, 4, 13, 40].into_iter().find(|r| *r >= t).expect("40 is enough"))
        .collect();
    Kernel::of(&one_word_each("sm_80", body)).output(&wanted).holds();
}

/// All lanes run 12 iterations together. The counter of every other lane wraps around in the first one.
#[test]
fn lanes_stay_together_at_a_matrix_instruction_if_counters_wrap_around() {
    let body = "mov.f32 %f1, 0f00000000;\nmov.f32 %f2, %f1;\nmov.f32 %f3, %f1;\nmov.f32 %f4, %f1;\n.reg .b16 %h;\n\
                cvt.rn.f16.u32 %h, %t;\nmov.b32 %a0, {%h, %h};\nand.b32 %a1, %t, 1;\nsetp.eq.u32 %p0, %a1, 1;\n\
                selp.u32 %a1, 0xfffffffc, 100, %p0;\nselp.u32 %a2, 44, 148, %p0;\nLOOP:\n\
                mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%a0, %a0, %a0, %a0}, {%a0, %a0}, \
                {%f1, %f2, %f3, %f4};\nadd.u32 %a1, %a1, 4;\nsetp.ge.u32 %p1, %a1, %a2;\n@%p1 bra OUT;\nbra LOOP;\nOUT:\n\
                cvt.rzi.u32.f32 %r, %f1;\n";
    // The values of a lane are its number. Lane 4g + q has row g of A and column g of B. Its columns of A
    // and rows of B are 2q, 2q + 1, 2q + 8 and 2q + 9. Its first result is in row g and column 2q.
    let product = |row: u32, column: u32| (0..4).map(|q| 4 * (4 * row + q) * (4 * column + q)).sum::<u32>();
    let wanted: Vec<u32> = (0..32).map(|t| 12 * product(t / 4, 2 * (t % 4))).collect();
    Kernel::of(&one_word_each("sm_80", body)).output(&wanted).holds();
}
