#!/usr/bin/env python3
"""Writes the vector files of this folder: what PTX instructions must give, worked out as the PTX ISA defines them, in plain Python.

Nothing here knows the Rust code. Run it in this folder; the result is always the same. A group is a line `= PTX`, then a line for each
case: source words -> result words, in hexadecimal, low word first.
"""

import random
import sys
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[4] / "hw/isa/tests/vectors"))
from generate import decode, encode, f_add, f_cmp, f_minmax, f_mul  # noqa: E402

rng = random.Random(5)
WORDS = [0, 1, 2, 0x1F, 0x20, 0x21, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x800000, 0xFFFFFF, 0x7FFFFFFF,
         0x80000000, 0x80000001, 0xDEADBEEF, 0xFFFF8000, 0xFFFFFFFE, 0xFFFFFFFF]
SINGLES = [0, 0x80000000, 1, 0x80000001, 0x7FFFFF, 0x807FFFFF, 0x800000, 0x80800000, 0x3F800000, 0xBF800000, 0x3F801000, 0x3F803000,
           0x40490FDB, 0xC0490FDB, 0x477FE000, 0x477FF000, 0x47800000, 0xC7FFFFFF, 0x33000000, 0x33800000, 0x7F7FFFFF, 0xFF7FFFFF,
           0x7F7FEFFF, 0x7F7FF000, 0x7F800000, 0xFF800000, 0x7F800001, 0x7FC12345, 0xFFFFFFFF]
HALVES = [0, 0x8000, 1, 0x8001, 0x3FF, 0x83FF, 0x400, 0x3C00, 0xBC00, 0x3C01, 0x4248, 0xC248, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7C01, 0x7E00,
          0xFFFF]
BRAINS = [0, 0x8000, 1, 0x8001, 0x7F, 0x80, 0x3F80, 0xBF80, 0x4049, 0xC049, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7F81, 0x7FC0, 0xFFFF]
LONGS = [a << 32 | b for a in (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF) for b in (0, 1, 0x80000000, 0xFFFFFFFF)]
DOUBLES = [0, 1 << 63, 1, (1 << 63) + 1, 0xFFFFFFFFFFFFF, 1 << 52, 0x3FF0000000000000, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000,
           0xFFF0000000000000, 0x7FF0000000000001, 0xFFF8000000000000]
MASK = 0xFFFFFFFF


class File:
    def __init__(self, name, origin):
        self.out = open(Path(__file__).parent / f"{name}.txt", "w")
        self.out.write(f"# {origin}\n# Written by generate.py.\n")

    def group(self, template, kinds, cases, rule):
        """`template` has operands {0}, {1}...: results first. Kinds: w word, d 64 bits, h 16 bits, p predicate; results in capitals."""
        before, after, names, next_in, next_out = [], [], [], 0, 0
        for n, kind in enumerate(kinds):
            name = {"w": f"%r{n}", "d": f"%x{n}", "h": f"%h{n}", "p": f"%p{n}"}[kind.lower()]
            names.append(name)
            size = 2 if kind.lower() == "d" else 1
            if kind.islower():
                a = f"%a{next_in}"
                before.append({"w": f"mov.b32 {name}, {a};", "d": f"mov.b64 {name}, {{{a}, %a{next_in + 1}}};",
                               "h": f"cvt.u16.u32 {name}, {a};", "p": f"setp.ne.u32 {name}, {a}, 0;"}[kind])
                next_in += size
            else:
                z = f"%z{next_out}"
                after.append({"W": f"mov.b32 {z}, {name};", "D": f"mov.b64 {{{z}, %z{next_out + 1}}}, {name};",
                              "H": f"cvt.u32.u16 {z}, {name};", "P": f"selp.b32 {z}, 1, 0, {name};"}[kind])
                next_out += size
        self.out.write("\n= " + " ".join([*before, template.format(*names), *after]) + "\n")
        sources, results = [k for k in kinds if k.islower()], [k for k in kinds if k.isupper()]
        words = lambda kinds, values: " ".join(
            f"{v & MASK:08x} {v >> 32 & MASK:08x}" if k.lower() == "d" else f"{v & (0xFFFF if k.lower() == 'h' else MASK):08x}"
            for k, v in zip(kinds, values))
        for case in cases:
            result = rule(*case)
            result = result if isinstance(result, tuple) else (result,)
            self.out.write(f"{words(sources, case)} -> {words(results, result)}\n")


def pick(count, *pools):
    """Every number of a pool at least once in its place, with random company, a third of it anywhere."""
    anywhere = {id(WORDS): 32, id(LONGS): 64, id(HALVES): 16, id(BRAINS): 16, id(SINGLES): 32, id(DOUBLES): 64}
    def draw(pool):
        return rng.getrandbits(anywhere[id(pool)]) if id(pool) in anywhere and rng.random() < 0.3 else rng.choice(pool)
    cases = [tuple(draw(pool) for pool in pools) for _ in range(count)]
    for place, pool in enumerate(pools):
        for n in range(min(len(pool), count)):
            case = list(cases[(n * 7 + place * 3) % count])
            case[place] = pool[n]
            cases.append(tuple(case))
    return cases


def few(count, *pools):
    return [tuple(rng.choice(pool) for pool in pools) for _ in range(count)]


def sx(value, bits):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


def zx(value, bits):
    return value & (1 << bits) - 1


def ext(value, ty):
    return (sx if ty[0] == "s" else zx)(value, int(ty[1:]))


def clamp(value, ty):
    bits = int(ty[1:])
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if ty[0] == "s" else (0, (1 << bits) - 1)
    return max(least, min(most, value))


COMPARE = {"eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
           "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b}
JOIN = {"and": lambda p, q: p and q, "or": lambda p, q: p or q, "xor": lambda p, q: p != q}


def integers():
    out = File("integer", "PTX ISA, integer arithmetic and bit fields")
    for ty in ("u32", "s32"):
        v = lambda x, ty=ty: ext(x, ty)
        m24 = lambda x, ty=ty: ext(x, ty[0] + "24")
        for half, shift in (("lo", 0), ("hi", 16)):
            out.group(f"mul24.{half}.{ty} {{0}}, {{1}}, {{2}};", "Www", pick(16, WORDS, WORDS), lambda a, b, s=shift: m24(a) * m24(b) >> s)
            out.group(f"mad24.{half}.{ty} {{0}}, {{1}}, {{2}}, {{3}};", "Wwww", pick(16, WORDS, WORDS, WORDS),
                      lambda a, b, c, s=shift: (m24(a) * m24(b) >> s) + c)
        out.group(f"sad.{ty} {{0}}, {{1}}, {{2}}, {{3}};", "Wwww", pick(16, WORDS, WORDS, WORDS), lambda a, b, c: c + abs(v(a) - v(b)))
        for mode in ("clamp", "wrap"):
            def szext(a, b, mode=mode, ty=ty):
                if mode == "wrap":
                    b &= 31
                elif b >= 32:
                    return a
                return 0 if b == 0 else ext(a, ty[0] + str(b))
            out.group(f"szext.{mode}.{ty} {{0}}, {{1}}, {{2}};", "Www", pick(24, WORDS, WORDS), szext)
    for op, rule in (("add", lambda a, b: a + b), ("sub", lambda a, b: a - b)):
        out.group(f"{op}.sat.s32 {{0}}, {{1}}, {{2}};", "Www", pick(32, WORDS, WORDS), lambda a, b: clamp(rule(sx(a, 32), sx(b, 32)), "s32"))
    out.group("mad.hi.sat.s32 {0}, {1}, {2}, {3};", "Wwww", pick(24, WORDS, WORDS, WORDS),
              lambda a, b, c: clamp((sx(a, 32) * sx(b, 32) >> 32) + sx(c, 32), "s32"))
    out.group("mad24.hi.sat.s32 {0}, {1}, {2}, {3};", "Wwww", pick(24, WORDS, WORDS, WORDS),
              lambda a, b, c: clamp(sx(sx(a, 24) * sx(b, 24) >> 16, 32) + sx(c, 32), "s32"))
    for ty in ("u64", "s64"):
        out.group(f"sad.{ty} {{0}}, {{1}}, {{2}}, {{3}};", "Dddd", pick(16, LONGS, LONGS, LONGS), lambda a, b, c, ty=ty: c + abs(ext(a, ty) - ext(b, ty)))

        def shiftamt(a, ty=ty):
            a = ext(a, ty)
            return 64 - (~a if a < 0 else a).bit_length() if a not in (0, -1) else -1
        out.group(f"bfind.shiftamt.{ty} {{0}}, {{1}};", "Wd", pick(24, LONGS), shiftamt)
    for op, rule in (("add", lambda a, b: a + b), ("min", min), ("max", max)):
        for ty in ("u16", "s16"):
            two = lambda a, b, ty=ty: rule(ext(a, ty), ext(b, ty)) & 0xFFFF | (rule(ext(a >> 16, ty), ext(b >> 16, ty)) & 0xFFFF) << 16
            out.group(f"{op}.{ty}x2 {{0}}, {{1}}, {{2}};", "Www", pick(16, WORDS, WORDS), two)
        if op == "add":
            continue
        out.group(f"{op}.relu.s32 {{0}}, {{1}}, {{2}};", "Www", pick(16, WORDS, WORDS), lambda a, b: max(rule(sx(a, 32), sx(b, 32)), 0))
        two = lambda a, b: max(rule(sx(a, 16), sx(b, 16)), 0) | max(rule(sx(a >> 16, 16), sx(b >> 16, 16)), 0) << 16
        out.group(f"{op}.relu.s16x2 {{0}}, {{1}}, {{2}};", "Www", pick(16, WORDS, WORDS), two)

    def fns(mask, base, offset):
        offset = sx(offset, 32)
        bit = lambda at: 0 <= at < 32 and mask >> at & 1
        if offset == 0:
            return base if bit(base) else -1
        at, count = base, abs(offset) - 1
        while 0 <= at < 32:
            if bit(at):
                if count == 0:
                    return at
                count -= 1
            at += 1 if offset > 0 else -1
        return -1
    offsets = [0, 1, 2, 5, 31, 32, 33, MASK, MASK - 1, MASK - 4, 0x80000000, 0x7FFFFFFF]
    out.group("fns.b32 {0}, {1}, {2}, {3};", "Wwww", pick(48, WORDS, [*range(33), 0xFFFFFFFF], offsets), fns)
    for mode in ("clamp", "wrap"):
        def bmsk(a, b, mode=mode):
            if mode == "wrap":
                a, b = a & 31, b & 31
            return ((1 << min(b, 32)) - 1) << min(a, 32)
        out.group(f"bmsk.{mode}.b32 {{0}}, {{1}}, {{2}};", "Www", pick(24, WORDS, WORDS), bmsk)
        for side in ("l", "r"):
            def shf(a, b, c, mode=mode, side=side):
                n = c & 31 if mode == "wrap" else min(c, 32)
                return (b << 32 | a) << n >> 32 if side == "l" else (b << 32 | a) >> n
            out.group(f"shf.{side}.{mode}.b32 {{0}}, {{1}}, {{2}}, {{3}};", "Wwww", pick(24, WORDS, WORDS, WORDS), shf)

    def field(a, at, length, ty):
        bits = int(ty[1:])
        at, length = at & 255, length & 255
        top = min(at + length - 1, bits - 1)
        sign = 0 if ty[0] == "u" or length == 0 else a >> top & 1
        return sum(((a >> at + n & 1) if n < length and at + n < bits else sign) << n for n in range(bits))
    for ty, kinds, pool in (("u32", "Wwww", WORDS), ("s32", "Wwww", WORDS), ("u64", "Ddww", LONGS), ("s64", "Ddww", LONGS)):
        out.group(f"bfe.{ty} {{0}}, {{1}}, {{2}}, {{3}};", kinds, pick(32, pool, WORDS, WORDS), lambda a, b, c, ty=ty: field(a, b, c, ty))

    def insert(a, b, at, length, bits):
        at, length = at & 255, length & 255
        for n in range(min(length, bits - at if at < bits else 0)):
            b = b & ~(1 << at + n) | (a >> n & 1) << at + n
        return b
    out.group("bfi.b32 {0}, {1}, {2}, {3}, {4};", "Wwwww", pick(32, WORDS, WORDS, WORDS, WORDS), lambda a, b, c, d: insert(a, b, c, d, 32))
    out.group("bfi.b64 {0}, {1}, {2}, {3}, {4};", "Dddww", pick(32, LONGS, LONGS, WORDS, WORDS), lambda a, b, c, d: insert(a, b, c, d, 64))
    for a_type in ("u", "s"):
        for b_type in ("u", "s"):
            byte = lambda word, n, ty: ext(word >> 8 * n, ty + "8")
            out.group(f"dp4a.{a_type}32.{b_type}32 {{0}}, {{1}}, {{2}}, {{3}};", "Wwww", pick(12, WORDS, WORDS, WORDS),
                      lambda a, b, c, s=a_type, t=b_type: c + sum(byte(a, n, s) * byte(b, n, t) for n in range(4)))
            for first, half in ((0, "lo"), (2, "hi")):
                out.group(f"dp2a.{half}.{a_type}32.{b_type}32 {{0}}, {{1}}, {{2}}, {{3}};", "Wwww", pick(12, WORDS, WORDS, WORDS),
                          lambda a, b, c, s=a_type, t=b_type, f=first: c + sum(ext(a >> 16 * n, s + "16") * byte(b, f + n, t) for n in range(2)))
    for ty in ("u64", "s64"):
        def chain(a, b, c, d, ty=ty):
            product = ext(a, ty) * ext(b, ty)
            total = (product & (1 << 128) - 1) + (d << 64 | c)
            return total, total >> 64
        out.group(f"mad.lo.cc.{ty} {{0}}, {{2}}, {{3}}, {{4}}; madc.hi.{ty} {{1}}, {{2}}, {{3}}, {{5}};", "DDdddd",
                  pick(24, LONGS, LONGS, LONGS, LONGS), chain)


def words():
    out = File("word", "PTX ISA: integers of every width, permutations, conversions between integers and to and from floats")
    widths = {"16": ("h", HALVES), "32": ("w", WORDS), "64": ("d", LONGS)}
    for bits, (kind, pool) in widths.items():
        for sign in "us":
            ty = sign + bits
            v = lambda x: ext(x, ty)
            three = kind.upper() + kind * 2
            cases = pick(12, pool, pool)
            out.group(f"mul.lo.{ty} {{0}}, {{1}}, {{2}};", three, cases, lambda a, b: v(a) * v(b))
            out.group(f"mul.hi.{ty} {{0}}, {{1}}, {{2}};", three, cases, lambda a, b: v(a) * v(b) >> int(bits))
            out.group(f"mad.hi.{ty} {{0}}, {{1}}, {{2}}, {{3}};", three + kind, pick(12, pool, pool, pool), lambda a, b, c: (v(a) * v(b) >> int(bits)) + c)
            for op, rule in (("min", min), ("max", max)):
                out.group(f"{op}.{ty} {{0}}, {{1}}, {{2}};", three, cases, lambda a, b: rule(v(a), v(b)))
            quotient = lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            divided = [(a, b) for a, b in cases if ext(b, ty) and not (sign == "s" and ext(b, ty) == -1)]
            out.group(f"div.{ty} {{0}}, {{1}}, {{2}};", three, divided, lambda a, b: quotient(v(a), v(b)))
            out.group(f"rem.{ty} {{0}}, {{1}}, {{2}};", three, divided, lambda a, b: v(a) - v(b) * quotient(v(a), v(b)))
            counts = [(a, n) for a, n in pick(12, pool, WORDS)]
            out.group(f"shr.{ty} {{0}}, {{1}}, {{2}};", kind.upper() + kind + "w", counts, lambda a, n: v(a) >> min(n, int(bits)))
            if bits != "64":
                wider = {"16": "W", "32": "D"}[bits]
                out.group(f"mul.wide.{ty} {{0}}, {{1}}, {{2}};", wider + kind * 2, cases, lambda a, b: v(a) * v(b))
                out.group(f"mad.wide.{ty} {{0}}, {{1}}, {{2}}, {{3}};", wider + kind * 2 + wider.lower(),
                          pick(12, pool, pool, {"16": WORDS, "32": LONGS}[bits]), lambda a, b, c: v(a) * v(b) + c)
            if bits != "16":
                leading = lambda a: (~v(a) if v(a) < 0 else v(a)).bit_length() - 1
                out.group(f"bfind.{ty} {{0}}, {{1}};", "W" + kind, pick(12, pool), leading)
        out.group(f"shl.b{bits} {{0}}, {{1}}, {{2}};", kind.upper() + kind + "w", pick(12, pool, WORDS), lambda a, n: a << n if n < int(bits) else 0)
        for op, rule in (("abs", abs), ("neg", lambda a: -a)):
            out.group(f"{op}.s{bits} {{0}}, {{1}};", kind.upper() + kind, pick(8, pool), lambda a: rule(sx(a, int(bits))))
        out.group(f"cnot.b{bits} {{0}}, {{1}};", kind.upper() + kind, pick(8, pool), lambda a: int(a == 0))
        out.group(f"not.b{bits} {{0}}, {{1}};", kind.upper() + kind, pick(8, pool), lambda a: ~a)

    def permute(a, b, selectors):
        whole = b << 32 | a
        byte = lambda s: (0xFF if whole >> 8 * (s & 7) + 7 & 1 else 0) if s & 8 else whole >> 8 * (s & 7) & 0xFF
        return sum(byte(s) << 8 * n for n, s in enumerate(selectors))
    out.group("prmt.b32 {0}, {1}, {2}, {3};", "Wwww", pick(16, WORDS, WORDS, WORDS), lambda a, b, c: permute(a, b, [c >> 4 * n & 15 for n in range(4)]))
    modes = {"f4e": lambda n: [n, n + 1, n + 2, n + 3], "b4e": lambda n: [n, n - 1 & 7, n - 2 & 7, n - 3 & 7], "rc8": lambda n: [n] * 4,
             "ecl": lambda n: [max(n, k) for k in range(4)], "ecr": lambda n: [min(n, k) for k in range(4)],
             "rc16": lambda n: [n % 2 * 2, n % 2 * 2 + 1] * 2}
    for mode, rule in modes.items():
        out.group(f"prmt.b32.{mode} {{0}}, {{1}}, {{2}}, {{3}};", "Wwww", pick(12, WORDS, WORDS, WORDS), lambda a, b, c: permute(a, b, rule(c & 3)))
    integers_of = {"8": ("w", WORDS), **widths}
    for from_bits, (kind, pool) in integers_of.items():
        for from_sign in "us":
            source = from_sign + from_bits
            for to_bits in integers_of:
                for to_sign in "us":
                    to = to_sign + to_bits
                    result = {"8": "W", "16": "H", "32": "W", "64": "D"}[to_bits]
                    out.group(f"cvt.{to}.{source} {{0}}, {{1}};", result + kind, pick(4, pool), lambda a: ext(ext(a, source), to))
                    out.group(f"cvt.sat.{to}.{source} {{0}}, {{1}};", result + kind, pick(4, pool), lambda a: clamp(ext(a, source), to))
            for fmt, kind_to in (("f16", "H"), ("bf16", "H"), ("f32", "W"), ("f64", "D")):
                for mode in ("rn", "rz", "rm", "rp"):
                    value = lambda a: ("num", int(ext(a, source) < 0), Fraction(abs(ext(a, source))))
                    out.group(f"cvt.{mode}.{fmt}.{source} {{0}}, {{1}};", kind_to + kind, pick(2, pool), lambda a: encode(fmt.upper(), value(a), mode.upper()))
    for fmt, kind, pool in (("f16", "h", HALVES), ("bf16", "h", BRAINS), ("f32", "w", SINGLES), ("f64", "d", DOUBLES)):
        for to in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"):
            for mode in ("rni", "rzi", "rmi", "rpi"):
                def whole(a):
                    value = decode(fmt.upper(), a)
                    if value[0] == "nan":
                        return ext(1 << int(to[1:]) - 1, to) if fmt == "f64" or to[1:] == "64" else 0
                    if value[0] == "inf":
                        return clamp((-1 if value[1] else 1) << 100, to)
                    number = -value[2] if value[1] else value[2]
                    rounded = {"rni": round(number), "rzi": int(number), "rmi": number.__floor__(), "rpi": number.__ceil__()}[mode]
                    return clamp(rounded, to)
                out.group(f"cvt.{mode}.{to}.{fmt} {{0}}, {{1}};", {"8": "W", "16": "H", "32": "W", "64": "D"}[to[1:]] + kind, pick(2, pool), whole)
        for to_fmt, kind_to in (("f16", "H"), ("bf16", "H"), ("f32", "W"), ("f64", "D")):
            if to_fmt == fmt:
                continue
            exact = to_fmt == "f64" or to_fmt == "f32" and fmt in ("f16", "bf16")
            for mode in ("",) if exact else ("rn", "rz", "rm", "rp") if "bf16" not in (fmt, to_fmt) or fmt == "f64" else ("rn",):
                out.group(f"cvt{'.' + mode if mode else ''}.{to_fmt}.{fmt} {{0}}, {{1}};", kind_to + kind, pick(4, pool),
                          lambda a: a << 16 if (fmt, to_fmt) == ("bf16", "f32") else encode(to_fmt.upper(), decode(fmt.upper(), a), (mode or "rn").upper()))
    singles = [(a,) for a in SINGLES if a & 0x7FFFFFFF <= 0x7F800000]
    zero = lambda a: a & 0x80000000 if not a & 0x7F800000 else a
    out.group("abs.ftz.f32 {0}, {1};", "Ww", singles, lambda a: zero(a) & 0x7FFFFFFF)
    out.group("neg.ftz.f32 {0}, {1};", "Ww", singles, lambda a: zero(a) ^ 0x80000000)


def choices():
    out = File("choice", "PTX ISA, comparison and selection, logic with predicates")
    for join, join_rule in JOIN.items():
        for cmp in ("lt", "eq"):
            for ty in ("s32", "u32"):
                def setp(a, b, c, ty=ty, cmp=cmp):
                    holds = COMPARE[cmp](ext(a, ty), ext(b, ty))
                    return int(join_rule(holds, bool(c))), int(join_rule(not holds, bool(c)))
                out.group(f"setp.{cmp}.{join}.{ty} {{0}}|{{1}}, {{2}}, {{3}}, {{4}};", "PPwwp", pick(12, WORDS, WORDS, [0, 1]), setp)
        out.group(f"set.gt.{join}.u32.s32 {{0}}, {{1}}, {{2}}, !{{3}};", "Wwwp", pick(12, WORDS, WORDS, [0, 1]),
                  lambda a, b, c: -int(join_rule(sx(a, 32) > sx(b, 32), not c)))
    for table in (0x1A, 0x80, 0x01, 0xFE):
        for join in ("and", "or", "xor"):
            def lop3(a, b, c, q, table=table, join=join):
                word = sum((table >> (4 * (a >> n & 1) + 2 * (b >> n & 1) + (c >> n & 1)) & 1) << n for n in range(32))
                return word, int(JOIN[join](word != 0, bool(q)))
            out.group(f"lop3.{join}.b32 {{0}}|{{1}}, {{2}}, {{3}}, {{4}}, {table}, {{5}};", "WPwwwp", pick(8, WORDS, WORDS, WORDS, [0, 1]), lop3)
    for cmp, rule in COMPARE.items():
        for to, true in (("u32", MASK), ("s32", MASK), ("f32", 0x3F800000)):
            out.group(f"set.{cmp}.{to}.s32 {{0}}, {{1}}, {{2}};", "Www", pick(6, WORDS, WORDS), lambda a, b: true * rule(sx(a, 32), sx(b, 32)))
        out.group(f"set.{cmp}.u32.u64 {{0}}, {{1}}, {{2}};", "Wdd", pick(6, LONGS, LONGS), lambda a, b: MASK * rule(a, b))
        out.group(f"set.{cmp}.f32.s16 {{0}}, {{1}}, {{2}};", "Whh", pick(6, HALVES, HALVES), lambda a, b: 0x3F800000 * rule(sx(a, 16), sx(b, 16)))
    for name, (orders, unordered) in {"eq": ((0,), 0), "ne": ((-1, 1), 0), "lt": ((-1,), 0), "ge": ((0, 1), 0), "equ": ((0,), 1), "neu": ((-1, 1), 1),
                                      "ltu": ((-1,), 1), "leu": ((-1, 0), 1), "gtu": ((1,), 1), "geu": ((0, 1), 1), "num": ((-1, 0, 1), 0),
                                      "nan": ((), 1)}.items():
        def holds(fmt, a, b, orders=orders, unordered=unordered):
            order = f_cmp(decode(fmt, a), decode(fmt, b))
            return bool(unordered) if order is None else order in orders
        out.group(f"set.{name}.u32.f32 {{0}}, {{1}}, {{2}};", "Www", pick(16, SINGLES, SINGLES), lambda a, b: MASK * holds("F32", a, b))
        out.group(f"set.{name}.f32.f64 {{0}}, {{1}}, {{2}};", "Wdd", pick(10, DOUBLES, DOUBLES), lambda a, b: 0x3F800000 * holds("F64", a, b))
        for fmt, pool, one in (("f16", HALVES, 0x3C00), ("bf16", BRAINS, 0x3F80)):
            one_half = lambda a, b, fmt=fmt: holds(fmt.upper(), a & 0xFFFF, b & 0xFFFF)
            out.group(f"set.{name}.{fmt}.{fmt} {{0}}, {{1}}, {{2}};", "Hhh", pick(10, pool, pool), lambda a, b: one * one_half(a, b))
            out.group(f"set.{name}.u32.{fmt} {{0}}, {{1}}, {{2}};", "Whh", pick(6, pool, pool), lambda a, b: MASK * one_half(a, b))
            out.group(f"set.{name}.u16.{fmt} {{0}}, {{1}}, {{2}};", "Hhh", pick(6, pool, pool), lambda a, b: 0xFFFF * one_half(a, b))
            pairs = [(a << 16 | c, b << 16 | d) for a, b, c, d in pick(12, pool, pool, pool, pool)]
            both = lambda a, b: one_half(a, b) | one_half(a >> 16, b >> 16) << 16
            out.group(f"set.{name}.{fmt}x2.{fmt}x2 {{0}}, {{1}}, {{2}};", "Www", pairs, lambda a, b: one * both(a, b))
            out.group(f"set.{name}.u32.{fmt}x2 {{0}}, {{1}}, {{2}};", "Www", pairs, lambda a, b: 0xFFFF * both(a, b))
    out.group("set.lt.ftz.u32.f32 {0}, {1}, {2};", "Www", [(1, 2), (0x80000001, 0), (1, 0x800000), (0x80800000, 0x807FFFFF)],
              lambda a, b: MASK * ((a, b) in ((1, 0x800000), (0x80800000, 0x807FFFFF))))
    for kinds, ty, pool in (("Hhhw", "u16", HALVES), ("Wwww", "f32", WORDS), ("Dddw", "s64", LONGS)):
        out.group(f"slct.{ty}.s32 {{0}}, {{1}}, {{2}}, {{3}};", kinds, pick(10, pool, pool, WORDS), lambda a, b, c: a if sx(c, 32) >= 0 else b)
        for ftz in ("", ".ftz"):
            def slct(a, b, c, ftz=ftz):
                if ftz and not c & 0x7F800000:
                    c = 0
                order = f_cmp(decode("F32", c), decode("F32", 0))
                return a if order is not None and order >= 0 else b
            out.group(f"slct{ftz}.{ty}.f32 {{0}}, {{1}}, {{2}}, {{3}};", kinds, pick(10, pool, pool, SINGLES), slct)


def video():
    out = File("video", "PTX ISA, scalar and SIMD video instructions")
    selectors = {"": (0, 32), "b0": (0, 8), "b1": (8, 8), "b2": (16, 8), "b3": (24, 8), "h0": (0, 16), "h1": (16, 16)}
    dot = lambda sel: "." + sel if sel else ""

    def part(word, sel, ty):
        at, bits = selectors[sel]
        return ext(word >> at, ty[0] + str(bits))

    def secondary(second, value, c, dtype):
        c = ext(c, dtype)
        return {"add": value + c, "min": min(value, c), "max": max(value, c)}[second]

    def merge(sel, value, c):
        at, bits = selectors[sel]
        return c & ~(((1 << bits) - 1) << at) | (value & (1 << bits) - 1) << at
    operations = {"vadd": lambda a, b: a + b, "vsub": lambda a, b: a - b, "vabsdiff": lambda a, b: abs(a - b), "vmin": min, "vmax": max}
    shifts = {"vshl": lambda a, b: a << b, "vshr": lambda a, b: a >> b}

    def scalar(name, rule, types, mode=""):
        dtype, a_type, b_type = types
        for sat in ("", ".sat"):
            sel_a, sel_b, sel_d = (rng.choice(list(selectors)) for _ in range(3))
            def value(a, b, sel_d="", sat=sat):
                t = rule(part(a, sel_a, a_type), part(b, sel_b, b_type))
                return clamp(t, dtype[0] + str(selectors[sel_d][1])) if sat else t
            mnemonic = f"{name}.{dtype}.{a_type}.{b_type}{sat}{mode}"
            pool = [*WORDS, 3, 7, 15, 30] if mode else WORDS
            out.group(f"{mnemonic} {{0}}, {{1}}{dot(sel_a)}, {{2}}{dot(sel_b)};", "Www", few(10, WORDS, pool), value)
            second = rng.choice(["add", "min", "max"])
            if sat or second == "add" or not mode:
                out.group(f"{mnemonic}.{second} {{0}}, {{1}}{dot(sel_a)}, {{2}}{dot(sel_b)}, {{3}};", "Wwww", few(10, WORDS, pool, WORDS),
                          lambda a, b, c: secondary(second, value(a, b), c, dtype))
            if sel_d:
                out.group(f"{mnemonic} {{0}}.{sel_d}, {{1}}{dot(sel_a)}, {{2}}{dot(sel_b)}, {{3}};", "Wwww", few(10, WORDS, pool, WORDS),
                          lambda a, b, c: merge(sel_d, value(a, b, sel_d), c))
    for types in [(d + "32", a + "32", b + "32") for d in "us" for a in "us" for b in "us"]:
        for name, rule in operations.items():
            scalar(name, rule, types)
        if types[2] == "u32":
            for name, rule in shifts.items():
                scalar(name, lambda a, b: rule(a, min(b, 32)), types, ".clamp")
                scalar(name, lambda a, b: rule(a, b & 31), types, ".wrap")
    for a_type in ("u32", "s32"):
        for b_type in ("u32", "s32"):
            for cmp, rule in COMPARE.items():
                sel_a, sel_b = rng.choice(list(selectors)), rng.choice(list(selectors))
                out.group(f"vset.{a_type}.{b_type}.{cmp} {{0}}, {{1}}{dot(sel_a)}, {{2}}{dot(sel_b)};", "Www", few(8, WORDS, WORDS),
                          lambda a, b: int(rule(part(a, sel_a, a_type), part(b, sel_b, b_type))))
            out.group(f"vset.{a_type}.{b_type}.lt.add {{0}}, {{1}}, {{2}}.h1, {{3}};", "Wwww", few(8, WORDS, WORDS, WORDS),
                      lambda a, b, c: c + int(ext(a, a_type) < part(b, "h1", b_type)))
            out.group(f"vset.{a_type}.{b_type}.ge {{0}}.b2, {{1}}, {{2}}, {{3}};", "Wwww", few(8, WORDS, WORDS, WORDS),
                      lambda a, b, c: merge("b2", int(ext(a, a_type) >= ext(b, b_type)), c))
            for minus in ("", "a", "b", "c", "po"):
                for sat in ("", ".sat"):
                    scale = rng.choice(["", ".shr7", ".shr15"])
                    sel_a, sel_b = (rng.choice(["", "", "h0", "b3"]) for _ in range(2))
                    def vmad(a, b, c):
                        signed = "s" in a_type + b_type or minus in ("a", "b", "c")
                        product = part(a, sel_a, a_type) * part(b, sel_b, b_type)
                        if minus in ("a", "b"):
                            product = -product
                        if minus == "c":
                            c = ~c & MASK
                        c = ext(c, "s32" if signed else "u32") + (minus in ("c", "po"))
                        t = product + c >> {"": 0, ".shr7": 7, ".shr15": 15}[scale]
                        return clamp(t, "s32" if signed else "u32") if sat else t
                    sign = lambda letter: "-" if minus == letter else ""
                    po = ".po" if minus == "po" else ""
                    out.group(f"vmad.s32.{a_type}.{b_type}{po}{sat}{scale} {{0}}, {sign('a')}{{1}}{dot(sel_a)}, {sign('b')}{{2}}{dot(sel_b)}, {sign('c')}{{3}};",
                              "Wwww", few(16, WORDS, WORDS, WORDS), vmad)
    operations["vavrg"] = lambda a, b: a + b + (a + b >= 0) >> 1
    for count, letter in ((2, "h"), (4, "b")):
        bits = 32 // count
        lane = lambda word, n, ty: ext(word >> n * bits, ty[0] + str(bits))
        bytes_of = [0, 0x7F80FF01, 0x80007FFF, 0xDEADBEEF, MASK, 0x01020304, 0x80808080, 0x7F7F7F7F, 0x8001FFFE]

        def simd(rule, types, sat, mask, sel_a, sel_b, add):
            def run(a, b, c):
                both = b << 32 | a
                d = c
                for n in range(count):
                    if n not in mask:
                        continue
                    t = rule(lane(both, sel_a[n], types[1]), lane(both, sel_b[n], types[2]))
                    t = clamp(t, types[0][0] + str(bits)) if sat else t
                    if add:
                        d += t
                    else:
                        d = d & ~(((1 << bits) - 1) << n * bits) | (t & (1 << bits) - 1) << n * bits
                return d
            return run
        spell = lambda numbers: "." + letter + "".join(str(n) for n in reversed(numbers))
        plain = list(range(count)), list(range(count, 2 * count))
        every = [(d + "32", a + "32", b + "32") for d in "us" for a in "us" for b in "us"]
        for name, rule in operations.items():
            for types in rng.sample(every, 3):
                for sat, add in ((0, 0), (1, 0), (0, 1)):
                    end = ".sat" if sat else ".add" if add else ""
                    mnemonic = f"{name}{count}.{'.'.join(types)}{end}"
                    out.group(f"{mnemonic} {{0}}, {{1}}, {{2}}, {{3}};", "Wwww", few(8, bytes_of, bytes_of, bytes_of),
                              simd(rule, types, sat, range(count), *plain, add))
                    mask = sorted(rng.sample(range(count), rng.randint(1, count)))
                    sel_a, sel_b = ([rng.randrange(2 * count) for _ in range(count)] for _ in range(2))
                    out.group(f"{mnemonic} {{0}}{spell(mask)}, {{1}}{spell(sel_a)}, {{2}}{spell(sel_b)}, {{3}};", "Wwww",
                              few(8, bytes_of, bytes_of, bytes_of), simd(rule, types, sat, mask, sel_a, sel_b, add))
        for cmp, compare in COMPARE.items():
            for a_type in ("u32", "s32"):
                b_type = rng.choice(["u32", "s32"])
                rule = lambda a, b: int(compare(a, b))
                for add in (0, 1):
                    out.group(f"vset{count}.{a_type}.{b_type}.{cmp}{'.add' if add else ''} {{0}}, {{1}}, {{2}}, {{3}};", "Wwww",
                              few(8, bytes_of, bytes_of, bytes_of), simd(rule, ("u32", a_type, b_type), 0, range(count), *plain, add))


def floats():
    out = File("float", "IEEE 754 and the PTX ISA: tests, least and greatest with signs, clamped sums, conversions")
    single, double = (8, 23), (11, 52)
    for ty, (exponent, fraction), kinds, pool in (("f32", single, "Pw", SINGLES), ("f64", double, "Pd", DOUBLES)):
        def facts(a):
            e, f = a >> fraction & (1 << exponent) - 1, a & (1 << fraction) - 1
            top = (1 << exponent) - 1
            return {"finite": e < top, "infinite": e == top and not f, "number": e < top or not f, "notanumber": e == top and f,
                    "normal": 0 < e < top or e == f == 0, "subnormal": e == 0 and f}
        for name in facts(0):
            out.group(f"testp.{name}.{ty} {{0}}, {{1}};", kinds, pick(8, pool), lambda a: int(bool(facts(a)[name])))
    out.group("mov.b32 {0}, {1}; min.xorsign.abs.f32 {0}, {1}, {2};", "Www", [(0x3F800000, 0x7FC00000), (0x7FC00000, 0x7F800001), (0xC0000000, 0x3F800000)],
              lambda a, b: {0x3F800000: 0x3F800000, 0x7FC00000: 0x7FFFFFFF}.get(a, 0xBF800000))
    formats = {"f16": (HALVES, 16), "bf16": (BRAINS, 16), "f32": (SINGLES, 32)}

    def extreme(fmt, a, b, least, nan, signs, ftz=False):
        bits = formats[fmt][1]
        top = 1 << bits - 1
        exponent = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000}[fmt]
        if ftz:
            a, b = (x & top if not x & exponent else x for x in (a, b))
        x, y = (decode(fmt.upper(), v & top - 1 if signs else v) for v in (a, b))
        if "nan" in (x[0], y[0]) and (nan or x[0] == y[0]):
            return encode(fmt.upper(), ("nan",))
        return encode(fmt.upper(), f_minmax(x, y, least)) | ((a ^ b) & top if signs else 0)
    for name in ("min", "max"):
        for nan in ("", ".NaN"):
            for signs in ("", ".xorsign.abs"):
                for fmt, (pool, bits) in formats.items():
                    kinds = "Www" if bits == 32 else "Hhh"
                    rule = lambda a, b, fmt=fmt: extreme(fmt, a, b, name == "min", nan, signs)
                    out.group(f"{name}{nan}{signs}.{fmt} {{0}}, {{1}}, {{2}};", kinds, pick(16, pool, pool), rule)
                    if bits == 16:
                        pairs = [(a << 16 | c, b << 16 | d) for a, b, c, d in pick(12, pool, pool, pool, pool)]
                        out.group(f"{name}{nan}{signs}.{fmt}x2 {{0}}, {{1}}, {{2}};", "Www", pairs,
                                  lambda a, b: rule(a >> 16, b >> 16) << 16 | rule(a & 0xFFFF, b & 0xFFFF))
                out.group(f"{name}.ftz{nan}{signs}.f32 {{0}}, {{1}}, {{2}};", "Www", pick(16, SINGLES, SINGLES),
                          lambda a, b: extreme("f32", a, b, name == "min", nan, signs, True))
    for fmt in ("f16", "bf16"):
        pool = formats[fmt][0]
        def fma(a, b, c, relu):
            a, b, c = (decode(fmt.upper(), v & 0xFFFF) for v in (a, b, c))
            word = encode(fmt.upper(), f_add(f_mul(a, b), c))
            is_nan = word & 0x7FFF > {"f16": 0x7C00, "bf16": 0x7F80}[fmt]
            return 0 if relu and word & 0x8000 and not is_nan else word
        for relu in ("", ".relu"):
            out.group(f"fma.rn{relu}.{fmt} {{0}}, {{1}}, {{2}}, {{3}};", "Hhhh", pick(20, pool, pool, pool), lambda a, b, c: fma(a, b, c, relu))
            pairs = [tuple(x << 16 | y for x, y in zip(case[:3], case[3:])) for case in pick(12, *[pool] * 6)]
            out.group(f"fma.rn{relu}.{fmt}x2 {{0}}, {{1}}, {{2}}, {{3}};", "Wwww", pairs,
                      lambda a, b, c: fma(a >> 16, b >> 16, c >> 16, relu) << 16 | fma(a, b, c, relu))
    conversions(out)


def conversions(out):
    def tf32(a, mode, relu, finite):
        if a & 0x7F800000 == 0x7F800000 and a & 0x7FFFFF:
            return 0x7FFFFFFF
        sign, magnitude = a & 0x80000000, a & 0x7FFFFFFF
        whole, rest = magnitude >> 13, magnitude & 0x1FFF
        up = {"rna": rest >= 0x1000, "rn": rest > 0x1000 or rest == 0x1000 and whole & 1, "rz": False}[mode]
        word = whole + up << 13
        if finite and word == 0x7F800000:
            word = 0x7F7FE000
        return 0 if relu and sign else sign | word
    for mode in ("rna", "rn", "rz"):
        for finite in ("", ".satfinite"):
            for relu in ("", ".relu"):
                out.group(f"cvt.{mode}{finite}{relu}.tf32.f32 {{0}}, {{1}};", "Ww", pick(12, SINGLES), lambda a: tf32(a, mode, relu, finite))

    def half(a, fmt, mode, relu, finite):
        value = decode("F32", a)
        word = encode(fmt.upper(), value, mode.upper())
        most = {"f16": 0x7BFF, "bf16": 0x7F7F}[fmt]
        if value[0] == "nan":
            return word
        if finite and word & 0x7FFF > most:
            word = word & 0x8000 | most
        return 0 if relu and word & 0x8000 else word
    for fmt in ("f16", "bf16"):
        for mode in ("rn", "rz"):
            for finite in ("", ".satfinite"):
                for relu in ("", ".relu"):
                    out.group(f"cvt.{mode}{relu}{finite}.{fmt}.f32 {{0}}, {{1}};", "Hw", pick(12, SINGLES), lambda a: half(a, fmt, mode, relu, finite))
                    out.group(f"cvt.{mode}{relu}{finite}.{fmt}x2.f32 {{0}}, {{1}}, {{2}};", "Www", pick(12, SINGLES, SINGLES),
                              lambda a, b: half(a, fmt, mode, relu, finite) << 16 | half(b, fmt, mode, relu, finite))

    def tiny(fmt, byte):
        """An eight-bit float as a Fraction with its sign, or nan or inf."""
        fraction = {"e4m3": 3, "e5m2": 2}[fmt]
        bias = {"e4m3": 7, "e5m2": 15}[fmt]
        sign, e, f = byte >> 7, byte >> fraction & (1 << 7 - fraction) - 1, byte & (1 << fraction) - 1
        if fmt == "e4m3" and byte & 0x7F == 0x7F or fmt == "e5m2" and byte & 0x7F > 0x7C:
            return ("nan",)
        if fmt == "e5m2" and byte & 0x7F == 0x7C:
            return ("inf", sign)
        return ("num", sign, (f + (1 << fraction if e else 0)) * Fraction(2) ** (max(e, 1) - bias - fraction))

    def to_tiny(fmt, value):
        if value[0] == "nan":
            return 0x7F
        most = {"e4m3": 0x7E, "e5m2": 0x7B}[fmt]
        if value[0] == "inf":
            return value[1] << 7 | most
        distance = lambda byte: (abs(tiny(fmt, byte)[2] - value[2]), byte & 1)
        return value[1] << 7 | min(range(most + 1), key=distance)
    relued = lambda value, relu: ("num", 0, 0) if relu and value[0] != "nan" and value[1] else value
    for fmt in ("e4m3", "e5m2"):
        for relu in ("", ".relu"):
            out.group(f"cvt.rn.satfinite{relu}.{fmt}x2.f32 {{0}}, {{1}}, {{2}};", "Hww", pick(24, SINGLES, SINGLES),
                      lambda a, b: to_tiny(fmt, relued(decode("F32", a), relu)) << 8 | to_tiny(fmt, relued(decode("F32", b), relu)))
            pairs = [(a << 16 | b,) for a, b in pick(24, HALVES, HALVES)]
            out.group(f"cvt.rn.satfinite{relu}.{fmt}x2.f16x2 {{0}}, {{1}};", "Hw", pairs,
                      lambda a: to_tiny(fmt, relued(decode("F16", a >> 16), relu)) << 8 | to_tiny(fmt, relued(decode("F16", a & 0xFFFF), relu)))
            out.group(f"cvt.rn{relu}.f16x2.{fmt}x2 {{0}}, {{1}};", "Wh", [(n << 8 | 255 - n,) for n in range(256)],
                      lambda a: encode("F16", relued(tiny(fmt, a >> 8), relu)) << 16 | encode("F16", relued(tiny(fmt, a & 255), relu)))
    for ty in ("u16", "s16"):
        out.group(f"cvt.pack.sat.{ty}.s32 {{0}}, {{1}}, {{2}};", "Www", pick(16, WORDS, WORDS),
                  lambda a, b, ty=ty: (clamp(sx(a, 32), ty) & 0xFFFF) << 16 | clamp(sx(b, 32), ty) & 0xFFFF)
    for ty in ("u8", "s8", "u4", "s4", "u2", "s2"):
        bits = int(ty[1])
        out.group(f"cvt.pack.sat.{ty}.s32.b32 {{0}}, {{1}}, {{2}}, {{3}};", "Wwww", pick(16, WORDS, WORDS, WORDS),
                  lambda a, b, c, ty=ty: c << 2 * bits | zx(clamp(sx(a, 32), ty), bits) << bits | zx(clamp(sx(b, 32), ty), bits))


for part in (integers, choices, video, floats, words):
    part()
