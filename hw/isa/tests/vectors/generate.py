#!/usr/bin/env python3
"""Writes the vector files of this folder: expected results of instructions, computed with exact fractions and integers.

The rules are from IEEE 754 and the PTX ISA, independent of the Rust code. Run it in this folder. The output is deterministic.
A line is `INSTRUCTION : source words [; predicate sources] -> result words [; result predicates]`, words in hexadecimal, low word first.
"""

import random
from fractions import Fraction
from math import isqrt

# ---- floats: ("nan",), ("inf", sign), ("num", sign, magnitude)

FORMATS = {"F16": (11, 5), "BF16": (8, 8), "F32": (24, 8), "F64": (53, 11)}
NANS = {"F16": 0x7FFF, "BF16": 0x7FFF, "F32": 0x7FFFFFFF, "F64": 0xFFF8 << 48}
ROUNDS = {"": "RN", ".RZ": "RZ", ".RM": "RM", ".RP": "RP"}


def width(fmt):
    return sum(FORMATS[fmt])


def decode(fmt, bits):
    precision, exponent_bits = FORMATS[fmt]
    sign, exponent = bits >> (width(fmt) - 1), bits >> (precision - 1) & (1 << exponent_bits) - 1
    fraction = bits & (1 << precision - 1) - 1
    if exponent == (1 << exponent_bits) - 1:
        return ("nan",) if fraction else ("inf", sign)
    bias = (1 << exponent_bits - 1) - 1
    mantissa = fraction + (1 << precision - 1 if exponent else 0)
    return ("num", sign, mantissa * Fraction(2) ** (max(exponent, 1) - bias - precision + 1))


def round_integer(value, sign, mode):
    whole, rest = value.numerator // value.denominator, value % 1
    if mode == "RN":
        up = rest > Fraction(1, 2) or rest == Fraction(1, 2) and whole % 2
    else:
        up = rest and (mode == "RM" and sign or mode == "RP" and not sign)
    return whole + bool(up)


def encode(fmt, value, mode="RN"):
    precision, exponent_bits = FORMATS[fmt]
    if value[0] == "nan":
        return NANS[fmt]
    sign = value[1] << width(fmt) - 1
    infinity = (1 << exponent_bits) - 1 << precision - 1
    if value[0] == "inf":
        return sign | infinity
    magnitude = value[2]
    if not magnitude:
        return sign
    bias = (1 << exponent_bits - 1) - 1
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    exponent = max(exponent, 1 - bias)
    mantissa = round_integer(magnitude / Fraction(2) ** (exponent - precision + 1), value[1], mode)
    if mantissa == 1 << precision:
        mantissa, exponent = mantissa >> 1, exponent + 1
    if exponent > bias:
        outward = mode == "RN" or mode == "RM" and value[1] or mode == "RP" and not value[1]
        return sign | (infinity if outward else infinity - 1)
    if mantissa < 1 << precision - 1:
        return sign | mantissa
    return sign | exponent + bias << precision - 1 | mantissa - (1 << precision - 1)


def number(value):
    """Returns a Fraction as a float value. Zero is positive."""
    return ("num", int(value < 0), abs(Fraction(value)))


def signed(value):
    return -value[2] if value[1] else value[2]


def f_add(x, y, mode="RN"):
    if "nan" in (x[0], y[0]) or x[0] == y[0] == "inf" and x[1] != y[1]:
        return ("nan",)
    if "inf" in (x[0], y[0]):
        return x if x[0] == "inf" else y
    total = signed(x) + signed(y)
    if total == 0:
        sign = x[1] if x[1] == y[1] else int(mode == "RM")
        return ("num", sign, Fraction(0))
    return number(total)


def f_mul(x, y):
    if "nan" in (x[0], y[0]):
        return ("nan",)
    sign = x[1] ^ y[1]
    if "inf" in (x[0], y[0]):
        other = y if x[0] == "inf" else x
        return ("nan",) if other[0] == "num" and other[2] == 0 else ("inf", sign)
    return ("num", sign, x[2] * y[2])


def f_div(x, y):
    if "nan" in (x[0], y[0]) or x[0] == y[0] == "inf":
        return ("nan",)
    sign = x[1] ^ y[1]
    if x[0] == "inf":
        return ("inf", sign)
    if y[0] == "inf":
        return ("num", sign, Fraction(0))
    if y[2] == 0:
        return ("nan",) if x[2] == 0 else ("inf", sign)
    return ("num", sign, x[2] / y[2])


def f_sqrt(x):
    """Returns a square root close enough to round: an irrational root lies strictly between two fractions of 200 bits."""
    if x[0] == "nan" or x[1] and x[2:] != (0,):
        return ("nan",)
    if x[0] == "inf" or x[2] == 0:
        return x
    scale = 4**1300
    radicand = x[2] * scale
    assert radicand.denominator == 1
    root = isqrt(radicand.numerator)
    inexact = root * root != radicand.numerator
    return ("num", 0, Fraction(2 * root + inexact, 2 * 2**1300))


def f_cmp(x, y):
    """Returns -1, 0, 1, or None if unordered."""
    if "nan" in (x[0], y[0]):
        return None
    key = lambda v: (1 if v[1] == 0 else -1) * Fraction(2) ** 2000 if v[0] == "inf" else signed(v)
    return (key(x) > key(y)) - (key(x) < key(y))


def f_minmax(x, y, least):
    if x[0] == "nan" or y[0] == "nan":
        return x if y[0] == "nan" else y
    order = f_cmp(x, y)
    if order == 0:
        order = y[1] - x[1]  # minus zero is the lesser
    return x if (order < 0) == least else y


def flush(fmt, bits):
    precision, exponent_bits = FORMATS[fmt]
    exponent = bits >> (precision - 1) & (1 << exponent_bits) - 1
    return bits if exponent else bits & 1 << width(fmt) - 1


def saturate(fmt, bits):
    value = decode(fmt, bits)
    if value[0] == "nan" or value[1]:
        return 0
    one = encode(fmt, number(1))
    return min(bits, one)


# ---- inputs

F32 = [0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x80800000, 0x3F800000, 0xBF800000, 0x3F800001, 0x3F000000, 0x40490FDB,
       0x4B7FFFFF, 0x4B800001, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFC12345]
F64 = [0, 1 << 63, 1, 0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x3FF0000000000000, 0xBFF0000000000000, 0x3FF0000000000001, 0x3FE5555555555555,
       0x400921FB54442D18, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0x7FF0000000000001]
F16 = [0, 0x8000, 1, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x3C01, 0x3555, 0x4248, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0x7C01]
BF16 = [0, 0x8000, 1, 0x007F, 0x0080, 0x3F80, 0xBF80, 0x3F81, 0x3EAB, 0x4049, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0x7F81]
EDGES = {"F16": F16, "BF16": BF16, "F32": F32, "F64": F64}
INTS = [0, 1, 2, 7, 31, 32, 33, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0xFFFFFFFE, 0x12345678, 0xDEADBEEF]
LONGS = [0, 1, 3, 0xFFFFFFFF, 0x100000000, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF, 0x123456789ABCDEF0]

rng = random.Random(20)


def floats(fmt, count, arity):
    """Returns tuples of edge values, and of random values near one and anywhere."""
    for _ in range(count):
        yield tuple(rng.choice(EDGES[fmt]) for _ in range(arity))
    precision, exponent_bits = FORMATS[fmt]
    bias = (1 << exponent_bits - 1) - 1
    for n in range(count):
        near = [rng.getrandbits(1) << width(fmt) - 1 | bias + rng.randint(-3, 3) << precision - 1 | rng.getrandbits(precision - 1) for _ in range(arity)]
        yield tuple(near) if n % 2 else tuple(rng.getrandbits(width(fmt)) for _ in range(arity))


def ints(count, arity, edges=INTS, bits=32):
    for n in range(count):
        yield tuple(rng.choice(edges) if rng.random() < 0.7 else rng.getrandbits(bits) for _ in range(arity))


def to_signed(value, bits=32):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


class File:
    def __init__(self, name, origin):
        self.out = open(name + ".txt", "w")
        print(f"# {origin}\n# Written by generate.py.", file=self.out)

    def group(self, title):
        print(f"\n# {title}", file=self.out)

    def case(self, text, sources, results, preds=(), pdst=(), near=False):
        side = lambda words, bits: " ".join(f"{word & 0xFFFFFFFF:08x}" for word in words) + (" ; " + " ".join(str(int(bit)) for bit in bits) if bits else "")
        print(f"{text} : {side(sources, preds)} {'~>' if near else '->'} {side(results, pdst)}".rstrip(), file=self.out)


def words(value, is_wide=True):
    return [value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF] if is_wide else [value & 0xFFFFFFFF]


# ---- FP32

def fp32():
    out = File("fp32", "IEEE 754 binary32; NaN, .ftz, .sat, min and max of the PTX ISA")
    rules = {
        "FADD": (2, lambda x, m: f_add(x[0], x[1], m)),
        "FMUL": (2, lambda x, m: f_mul(x[0], x[1])),
        "FFMA": (3, lambda x, m: f_add(f_mul(x[0], x[1]), x[2], m)),
    }
    for name, (arity, rule) in rules.items():
        registers = ", ".join(f"R{n}" for n in range(arity + 1))
        for suffix, mode in ROUNDS.items():
            out.group(f"{name}{suffix}")
            for inputs in floats("F32", 20 if suffix else 50, arity):
                result = encode("F32", rule([decode("F32", x) for x in inputs], mode), mode)
                out.case(f"{name}{suffix} {registers}", inputs, [result])
        out.group(f"{name}: denormals flushed, result saturated")
        for inputs in floats("F32", 15, arity):
            result = flush("F32", encode("F32", rule([decode("F32", flush("F32", x)) for x in inputs], "RN")))
            out.case(f"{name}.FTZ {registers}", inputs, [result])
            result = saturate("F32", encode("F32", rule([decode("F32", x) for x in inputs], "RN")))
            out.case(f"{name}.SAT {registers}", inputs, [result])
    out.group("half-way cases that an f64 sum rounds twice")
    for a, b, c in [(0x3F800001, 0x3F800001, 0x57000000), (0x3F800001, 0x3F7FFFFF, 0x4B800000), (0x4B800001, 0x3F800000, 0x33800000), (0x4B800001, 0x3F800000, 0x3F800000),
                    (0x00800000, 0x3F7FFFFF, 0x00000000), (0x00800001, 0x3F000000, 0x00000000), (0x1F800001, 0x1F800001, 0x80000001)]:
        result = encode("F32", f_add(f_mul(decode("F32", a), decode("F32", b)), decode("F32", c)))
        out.case("FFMA R0, R1, R2, R3", (a, b, c), [result])
    out.group("operand modifiers")
    for a, b in floats("F32", 6, 2):
        negative, absolute = a ^ 0x80000000, b & 0x7FFFFFFF
        result = encode("F32", f_add(decode("F32", negative), decode("F32", absolute)))
        out.case("FADD R0, -R1, |R2|", (a, b), [result])
        result = encode("F32", f_mul(decode("F32", negative | 0x80000000), decode("F32", b ^ 0x80000000)))
        out.case("FMUL R0, -|R1|, -R2", (a, b), [result])
    out.group("FMNMX")
    for a, b in floats("F32", 60, 2):
        for least in (0, 1):
            result = encode("F32", f_minmax(decode("F32", a), decode("F32", b), bool(least)))
            out.case("FMNMX R0, R1, R2, P0", (a, b), [result], [least])
    for a, b in [(0x7FC00000, 0x3F800000), (0x3F800000, 0x7FC00000), (0x40000000, 0x3F800000)]:
        is_nan = 0x7FC00000 in (a, b)
        out.case("FMNMX.NANS R0, R1, R2, P0", (a, b), [0x7FFFFFFF if is_nan else 0x3F800000], [1])
    comparisons(out, "FSETP", "F32")
    out.group("FCHK: false if reciprocal, quotient and the remainder's last bit are normal numbers")
    for a, b in list(floats("F32", 60, 2)) + [(x << 23, y << 23) for x in (1, 24, 25, 127, 253, 254) for y in (1, 2, 127, 252, 253)]:
        near = all(0 < x >> 23 & 0xFF < 255 for x in (a, b))
        exponent = lambda x: (x >> 23 & 0xFF) - 127
        near = near and exponent(a) - 24 >= -126 and exponent(b) <= 125 and -125 <= exponent(a) - exponent(b) <= 126
        out.case("FCHK P0, R1, R2", (a, b), [], [], [int(not near)])


ORDERS = {"EQ": (0,), "NE": (-1, 1), "LT": (-1,), "LE": (-1, 0), "GT": (1,), "GE": (0, 1), "NUM": (-1, 0, 1), "NAN": ()}
JOINS = {"AND": lambda x, y: x & y, "OR": lambda x, y: x | y, "XOR": lambda x, y: x ^ y}


def comparisons(out, name, fmt):
    is_wide = fmt == "F64"
    out.group(name)
    for cmp, orders in ORDERS.items():
        for unordered in (False, True) if cmp not in ("NUM", "NAN") else (False,):
            for a, b in list(floats(fmt, 6, 2)) + [(EDGES[fmt][-2], EDGES[fmt][5]), (EDGES[fmt][0], EDGES[fmt][1])]:
                order = f_cmp(decode(fmt, a), decode(fmt, b))
                holds = order in orders if order is not None else unordered or cmp == "NAN"
                join, with_ = rng.choice(list(JOINS)), rng.getrandbits(1)
                results = [JOINS[join](int(holds), with_), JOINS[join](int(not holds), with_)]
                preds = [with_]
                text = f"{name}.{cmp}{'U' if unordered else ''}.{join} P0, P1, R2, R4, P2"
                out.case(text, words(a, is_wide) + words(b, is_wide), [], preds, results)


# ---- half

def half():
    out = File("half", "IEEE 754 binary16 and bfloat16, every result rounded once; packed forms hold two")
    rules = {"HADD2": (2, lambda x: f_add(x[0], x[1])), "HMUL2": (2, lambda x: f_mul(x[0], x[1])), "HFMA2": (3, lambda x: f_add(f_mul(x[0], x[1]), x[2]))}
    for fmt in ("F16", "BF16"):
        for name, (arity, rule) in rules.items():
            registers = ", ".join(f"R{n}" for n in range(arity + 1))
            one = lambda inputs: encode(fmt, rule([decode(fmt, x) for x in inputs]))
            out.group(f"{name} {fmt}")
            for low, high in zip(floats(fmt, 40, arity), reversed(list(floats(fmt, 40, arity)))):
                packed = [h << 16 | l for l, h in zip(low, high)]
                out.case(f"{name}.{fmt}X2 {registers}", packed, [one(high) << 16 | one(low)])
                out.case(f"{name}.{fmt} {registers}", packed, [one(low)])
            for low in floats(fmt, 8, arity):
                out.case(f"{name}.{fmt}.SAT {registers}", low, [saturate(fmt, one(low))])
                if fmt == "F16":
                    out.case(f"{name}.{fmt}.FTZ {registers}", low, [flush(fmt, one([flush(fmt, x) for x in low]))])
        out.group(f"HMNMX2 {fmt}, modifiers of both halves")
        for (a, b), (c, d) in zip(floats(fmt, 12, 2), reversed(list(floats(fmt, 12, 2)))):
            for least in (0, 1):
                best = lambda x, y: encode(fmt, f_minmax(decode(fmt, x), decode(fmt, y), bool(least)))
                out.case(f"HMNMX2.{fmt}X2 R0, R1, R2, P0", (c << 16 | a, d << 16 | b), [best(c, d) << 16 | best(a, b)], [least])
            total = lambda x, y: encode(fmt, f_add(decode(fmt, x ^ 0x8000), decode(fmt, y & 0x7FFF)))
            out.case(f"HADD2.{fmt}X2 R0, -R1, |R2|", (c << 16 | a, d << 16 | b), [total(c, d) << 16 | total(a, b)])
        out.group(f"HSETP2 {fmt}: low halves, high halves")
        for (a, b), (c, d) in zip(floats(fmt, 16, 2), reversed(list(floats(fmt, 16, 2)))):
            cmp = rng.choice(["EQ", "NE", "LT", "LE", "GT", "GE"])
            holds = [f_cmp(decode(fmt, x), decode(fmt, y)) in ORDERS[cmp] for x, y in ((a, b), (c, d))]
            out.case(f"HSETP2.{cmp}.AND.{fmt}X2 P0, P1, R1, R2, PT", (c << 16 | a, d << 16 | b), [], [1], holds)


# ---- FP64

def fp64():
    out = File("fp64", "IEEE 754 binary64")
    rules = {
        "DADD": (2, lambda x, m: f_add(x[0], x[1], m)),
        "DMUL": (2, lambda x, m: f_mul(x[0], x[1])),
        "DFMA": (3, lambda x, m: f_add(f_mul(x[0], x[1]), x[2], m)),
    }
    for name, (arity, rule) in rules.items():
        registers = ", ".join(f"R{2 * n}" for n in range(arity + 1))
        for suffix, mode in ROUNDS.items():
            out.group(f"{name}{suffix}")
            for inputs in floats("F64", 10 if suffix else 30, arity):
                result = encode("F64", rule([decode("F64", x) for x in inputs], mode), mode)
                out.case(f"{name}{suffix} {registers}", sum(map(words, inputs), []), words(result))
    out.group("operand modifiers change the upper word")
    for a, b in floats("F64", 5, 2):
        result = encode("F64", f_add(decode("F64", a ^ 1 << 63), decode("F64", b & ~(1 << 63))))
        out.case("DADD R0, -R2, |R4|", words(a) + words(b), words(result))
    out.group("DMNMX")
    for a, b in floats("F64", 25, 2):
        for least in (0, 1):
            result = encode("F64", f_minmax(decode("F64", a), decode("F64", b), bool(least)))
            out.case("DMNMX R0, R2, R4, P0", words(a) + words(b), words(result), [least])
    comparisons(out, "DSETP", "F64")


# ---- integers

def integer():
    out = File("int", "integer arithmetic modulo 2^32 and 2^64; shifts, bfe, bfi, prmt, bfind as the PTX ISA defines them")
    low = lambda value: [value & 0xFFFFFFFF]

    out.group("IADD3: the predicate is the carry of the sum; a negated addend counts as its inversion plus one")
    for a, b, c in ints(60, 3):
        out.case("IADD3 R0, P0, R1, R2, R3, PT", (a, b, c), low(a + b + c), [1], [a + b + c >= 1 << 32])
    for a, b in ints(40, 2):
        out.case("IADD3 R0, P0, R1, -R2, RZ, PT", (a, b, 0), low(a - b), [1], [a >= b])
        out.case("IADD3 R0, PT, R1, -R2, RZ, PT", (a, b, 0), low(a - b), [1])
        for carry in (0, 1):
            out.case("IADD3.X R0, P0, R1, R2, RZ, P1", (a, b, 0), low(a + b + carry), [carry], [a + b + carry >= 1 << 32])
            out.case("IADD3.X R0, P0, R1, ~R2, RZ, P1", (a, b, 0), low(a - b - 1 + carry), [carry], [a + carry > b])

    out.group("LEA")
    for a, b, c in ints(30, 3):
        shift = rng.choice([0, 1, 2, 3, 4, 16, 31])
        shifted, mods = a << shift & 0xFFFFFFFF, f".0x{shift:02x}" if shift else ""
        out.case(f"LEA{mods} R0, P0, R1, R2, RZ, PT", (a, b, 0), low(shifted + b), [1], [shifted + b >= 1 << 32])
        upper = ((c << 32 | a) << shift) >> 32 & 0xFFFFFFFF
        carry = rng.getrandbits(1)
        out.case(f"LEA.HI.X{mods} R0, PT, R1, R2, R3, P0", (a, b, c), low(upper + b + carry), [carry])

    out.group("LOP3: bit 4a + 2b + c of the table, at every bit")
    for lut in [0xC0, 0xFC, 0x3C, 0x33, 0x0F, 0x96, 0xF8, 0xEA, 0xCA, 0xE8, 0x00, 0xFF, 0x1B, 0x80, 0x47, 0xB2, 0x6A]:
        for a, b, c in [(0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA), (0xDEADBEEF, 0x12345678, 0x0F1E2D3C)]:
            result = sum((lut >> (4 * (a >> n & 1) + 2 * (b >> n & 1) + (c >> n & 1)) & 1) << n for n in range(32))
            out.case(f"LOP3{f'.0x{lut:02x}' if lut else ''} R0, R1, R2, R3", (a, b, c), [result])
    out.case("LOP3.0xc0 R0, R1, ~R2, RZ", (0xFF00FF00, 0x0FF00FF0, 0), [0xF000F000])

    out.group("SHF: counts clamp at 32 or 64, or wrap")
    counts = [0, 1, 4, 31, 32, 33, 63, 64, 65, 255, 0xFFFFFFFF]
    for ty, span in (("", 32), (".S32", 32), (".U64", 64), (".S64", 64)):
        for right in (False, True):
            for high in (False, True):
                for wrap in (False, True):
                    mods = ty + (".HI" if high else "") + (".R" if right else "") + (".W" if wrap else "")
                    for count in rng.sample(counts, 6):
                        a, c = rng.choice(INTS), rng.choice(INTS)
                        n = count % span if wrap else min(count, span)
                        value = to_signed(c << 32 | a, 64) if "S" in ty else c << 32 | a
                        result = value >> n if right else value << n
                        word = low(result >> 32 if high else result)
                        out.case(f"SHF{mods} R0, R1, R2, R3", (a, count, c), word)
                        out.case(f"SHF{mods} R0, R1, 0x{count:x}, R3", (a, count, c), word)

    out.group("BFE, BFI")
    for a, b in ints(40, 2):
        for ty in ("", ".S32"):
            pos, length = rng.choice([0, 1, 5, 16, 31, 32, 40, 255, 0x105]), rng.choice([0, 1, 8, 16, 31, 32, 33, 255])
            p, l = pos & 0xFF, length & 0xFF
            sign = a >> min(p + l - 1, 31) & 1 if ty and l else 0
            bits = [a >> p + n & 1 if n < l and p + n <= 31 else sign for n in range(32)]
            out.case(f"BFE{ty} R0, R1, R2, R3", (a, pos, length), [sum(bit << n for n, bit in enumerate(bits))])
        bits = [b >> n & 1 for n in range(32)]
        for n in range(l):
            if p + n <= 31:
                bits[p + n] = a >> n & 1
        out.case("BFI R0, R1, R2, R3, R4", (a, b, pos, length), [sum(bit << n for n, bit in enumerate(bits))])

    out.group("IMNMX, IABS, SEL, MOV, ISETP")
    for a, b in ints(25, 2):
        for least in (0, 1):
            best = min if least else max
            out.case("IMNMX R0, R1, R2, P0", (a, b), [best(a, b)], [least])
            out.case("IMNMX.S32 R0, R1, R2, P0", (a, b), low(best(to_signed(a), to_signed(b))), [least])
            out.case("SEL R0, R1, R2, P0", (a, b), [a if least else b], [least])
        out.case("SEL R0, -R1, ~R2, PT", (a, b), low(-a), [1])
        out.case("IABS R0, R1", (a,), low(abs(to_signed(a))))
        out.case("MOV R0, R1", (a,), [a])
        for cmp in ("EQ", "NE", "LT", "LE", "GT", "GE"):
            for ty, value in (("", lambda x: x), (".S32", to_signed)):
                order = (value(a) > value(b)) - (value(a) < value(b))
                holds, with_, join = int(order in ORDERS[cmp]), rng.getrandbits(1), rng.choice(list(JOINS))
                results = [JOINS[join](holds, with_), JOINS[join](1 - holds, with_)]
                out.case(f"ISETP.{cmp}.{join}{ty} P0, P1, R1, R2, P2, PT", (a, b), [], [with_, 1], results)
    out.group("ISETP.X: the upper words, after an unsigned comparison of the lower ones")
    for a, b in list(ints(30, 2, LONGS, 64)) + [(0x700000001, 0x700000002), (0x8000000000000000, 0x8000000000000000)]:
        for cmp in ("EQ", "NE", "LT", "LE", "GT", "GE"):
            for ty, value in (("", lambda x: x), (".S32", lambda x: to_signed(x, 64))):
                la, lb = a & 0xFFFFFFFF, b & 0xFFFFFFFF
                below = ((la > lb) - (la < lb)) in ORDERS[cmp]
                holds = ((value(a) > value(b)) - (value(a) < value(b))) in ORDERS[cmp]
                out.case(f"ISETP.{cmp}.AND{ty}.X P0, PT, R1, R2, PT, P1", (a >> 32, b >> 32), [], [1, below], [holds, not holds])

    out.group("PRMT")
    for a, b in ints(6, 2):
        pool = [(b << 32 | a) >> 8 * n & 0xFF for n in range(8)]
        for selector in (0x3210, 0x7654, 0x5410, 0x0123, 0x89AB, 0xFEDC, 0x4444):
            picked = [pool[selector >> 4 * n & 7] for n in range(4)]
            picked = [(0xFF if byte >> 7 else 0) if selector >> 4 * n & 8 else byte for n, byte in enumerate(picked)]
            result = sum(byte << 8 * n for n, byte in enumerate(picked))
            out.case("PRMT R0, R1, R2, R3", (a, b, selector), [result])
            out.case(f"PRMT R0, R1, R2, 0x{selector:x}", (a, b, selector), [result])
        modes = {1: ["3210", "4321", "5432", "6543"], 2: ["5670", "6701", "7012", "0123"], 3: ["0000", "1111", "2222", "3333"],
                 4: ["3210", "3211", "3222", "3333"], 5: ["0000", "1110", "2210", "3210"], 6: ["1010", "3232", "1010", "3232"]}
        for mode, table in modes.items():
            for position, digits in enumerate(table):
                result = sum(pool[int(digit)] << 8 * n for n, digit in enumerate(reversed(digits)))
                out.case(f"PRMT.0x{mode:02x} R0, R1, R2, R3", (a, b, position), [result])

    out.group("VIADDMNMX, VIMNMX3")
    for n in range(40):
        a, b, c = (INTS[(n * step + n // len(INTS)) % len(INTS)] for step in (1, 3, 7))
        for least in (0, 1):
            best = min if least else max
            for ty, value in (("", lambda x: x & 0xFFFFFFFF), (".S32", lambda x: to_signed(x & 0xFFFFFFFF))):
                out.case(f"VIADDMNMX{ty} R0, R1, R2, R3, P0", (a, b, c), low(best(value(a + b), value(c))), [least])
                out.case(f"VIMNMX3{ty} R0, R1, R2, R3, P0", (a, b, c), low(best(value(a), value(b), value(c))), [least])

    out.group("POPC, FLO, BREV")
    for (a,) in ints(25, 1):
        out.case("POPC R0, R1", (a,), [bin(a).count("1")])
        out.case("BREV R0, R1", (a,), [int(f"{a:032b}"[::-1], 2)])
        for ty in ("", ".S32"):
            bits = a ^ 0xFFFFFFFF if ty and a >> 31 else a
            top = bits.bit_length() - 1
            out.case(f"FLO{ty} R0, R1", (a,), low(top))
            out.case(f"FLO{ty}.SAT R0, R1", (a,), low(31 - top if bits else -1))

    out.group("PLOP3: bit 2p + q of the table")
    for lut in (0x8, 0xE, 0x6, 0x1, 0x4):
        for p in (0, 1):
            for q in (0, 1):
                holds = lut >> 2 * p + q & 1
                out.case(f"PLOP3.0x{lut:02x} P0, P1, P2, P3", (), [], [p, q], [holds, 1 - holds])


def product():
    out = File("product", "integer products and quotients; a division by zero, undefined in PTX, gives all ones")
    low = lambda value: [value & 0xFFFFFFFF]
    out.group("IMAD")
    for a, b, c in ints(40, 3):
        sa, sb, sc = map(to_signed, (a, b, c))
        out.case("IMAD R0, R1, R2, R3", (a, b, c), low(a * b + c))
        out.case("IMAD R0, -R1, R2, ~R3", (a, b, c), low(-a * b + ~c))
        out.case("IMAD.HI R0, R1, R2, R3", (a, b, c), low((a * b >> 32) + c))
        out.case("IMAD.S32.HI R0, R1, R2, R3", (a, b, c), low((sa * sb >> 32) + sc))
        clamped = max(-(1 << 31), min((1 << 31) - 1, (sa * sb >> 32) + sc))
        out.case("IMAD.S32.HI.SAT R0, R1, R2, R3", (a, b, c), low(clamped))
    out.group("IMAD.WIDE")
    for (a, b), (c,) in zip(ints(40, 2), ints(40, 1, LONGS, 64)):
        out.case("IMAD.WIDE R0, R2, R3, R4", [a, b] + words(c), words(a * b + c))
        out.case("IMAD.WIDE.S32 R0, R2, R3, R4", [a, b] + words(c), words(to_signed(a) * to_signed(b) + c))
        out.case("IMAD.WIDE.S32 R0, R2, -R3, -R4", [a, b] + words(c), words(to_signed(a) * to_signed(-b) - c))
    out.group("IDP.4A: signs of a (second type) and b (first)")
    for a, b, c in ints(15, 3):
        byte = lambda word, n, signed: to_signed(word >> 8 * n, 8) if signed else word >> 8 * n & 0xFF
        for sa, sb in ((0, 0), (1, 1), (0, 1), (1, 0)):
            total = c + sum(byte(a, n, sa) * byte(b, n, sb) for n in range(4))
            name = f"IDP.4A.{'S32' if sb else 'U32'}.{'S32' if sa else 'U32'}".removesuffix(".U32")
            out.case(f"{name} R0, R1, R2, R3", (a, b, c), low(total))
    out.group("VABSDIFF4: signs of a (second type) and b (first); .N1 sums onto c")
    edges = (0, 0xFFFFFFFF, 0x80808080, 0x7F80FF01, 0x0102FE80, 0xDEADBEEF)
    for a, b in ((a, b) for a in edges for b in edges):
        for sa, sb in ((0, 0), (1, 1), (0, 1)):
            differences = [abs(byte(a, n, sa) - byte(b, n, sb)) for n in range(4)]
            packed = sum((d & 0xFF) << 8 * n for n, d in enumerate(differences))
            name = f"VABSDIFF4.{'S32' if sb else 'U32'}.{'S32' if sa else 'U32'}".removesuffix(".U32")
            name = name.removesuffix(".U32")
            out.case(f"{name} R0, R1, R2, R3", (a, b, 9), low(packed))
            out.case(f"{name}.N1 R0, R1, R2, R3", (a, b, 0xFFFFFFF0), low(sum(differences) + 0xFFFFFFF0))



# ---- divisions and roots: PTX instructions that are lowered to sequences, for testbench/tests/arithmetic

def slow():
    out = File("../../../../testbench/tests/arithmetic/slow_operations", "IEEE 754 quotients and roots in every rounding; truncating integer division, all ones by zero")
    rules = {
        "div": (2, lambda x: f_div(x[0], x[1])),
        "rcp": (1, lambda x: f_div(number(1), x[0])),
        "sqrt": (1, lambda x: f_sqrt(x[0])),
    }
    for ty, fmt in (("f32", "F32"), ("f64", "F64")):
        is_wide = ty == "f64"
        for name, (arity, rule) in rules.items():
            for mode in ("RN", "RZ", "RM", "RP"):
                cases = list(floats(fmt, 60, arity))
                spelling = f"{name}.{mode.lower()}"
                for inputs in cases:
                    result = encode(fmt, rule([decode(fmt, x) for x in inputs]), mode)
                    out.case(f"{spelling}.{ty}", sum((words(x, is_wide) for x in inputs), []), words(result, is_wide))
                for inputs in cases if not is_wide else []:
                    result = flush(fmt, encode(fmt, rule([decode(fmt, flush(fmt, x)) for x in inputs]), mode))
                    out.case(f"{spelling}.ftz.{ty}", inputs, [result])
    for bits, pool in ((16, [0, 1, 3, 0x7FFF, 0x8000, 0xFFFF]), (32, INTS), (64, LONGS)):
        for kind in "us":
            cases = list(ints(120, 2, pool, bits))
            for name in ("div", "rem"):
                for a, b in cases:
                    x, y = (to_signed(a, bits), to_signed(b, bits)) if kind == "s" else (a, b)
                    quotient = -1 if y == 0 else abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)
                    result = quotient if name == "div" or y == 0 else x - y * quotient
                    out.case(f"{name}.{kind}{bits}", words(a, bits == 64) + words(b, bits == 64), words(result & (1 << bits) - 1, bits == 64))


# ---- conversions

def convert():
    out = File("convert", "conversions of the PTX ISA: float to integer saturates; NaN gives 0, or the top bit alone from f64 or to 64 bits")
    sizes = (8, 16, 32, 64)
    span = lambda kind, bits: (-(1 << bits - 1), (1 << bits - 1) - 1) if kind == "S" else (0, (1 << bits) - 1)
    both = lambda to, source: f".{to}" if source == "U32" and to != "U32" else f".{to}.{source}" if source != "U32" else ""
    in_register = lambda value, bits: words(value, bits == 64)

    out.group("I2F")
    for kind in "US":
        for bits in sizes:
            for fmt in FORMATS:
                for suffix, mode in ROUNDS.items():
                    pool = [0, 1, span(kind, bits)[0], span(kind, bits)[1], rng.randint(*span(kind, bits)), rng.randint(*span(kind, bits)), (1 << min(bits - 2, 40)) + 1]
                    for value in rng.sample(pool, 3):
                        result = encode(fmt, number(value), mode)
                        out.case(f"I2F{both(fmt, kind + str(bits))}{suffix} R0, R2", in_register(value & (1 << bits) - 1, bits), words(result, fmt == "F64"))

    out.group("F2I")
    for fmt in FORMATS:
        for kind in "US":
            for bits in sizes:
                for suffix, mode in ROUNDS.items():
                    extra = [encode(fmt, number(Fraction(rng.randint(-600, 600), 4))) for _ in range(2)] + [encode(fmt, number(Fraction(5, 2)))]
                    for value in rng.sample(EDGES[fmt], 3) + extra + [NANS[fmt]]:
                        x, (least, greatest) = decode(fmt, value), span(kind, bits)
                        if x[0] == "nan":
                            result = 1 << bits - 1 if fmt == "F64" or bits == 64 else 0
                            result = to_signed(result, bits) if kind == "S" else result
                        elif x[0] == "inf":
                            result = least if x[1] else greatest
                        else:
                            whole = round_integer(x[2], x[1], mode)
                            result = max(least, min(greatest, -whole if x[1] else whole))
                        out.case(f"F2I.{kind}{bits}.{fmt}{suffix} R0, R2", words(value, fmt == "F64"), in_register(result, bits))

    out.group("F2F: float to float, and to an integral value")
    for source in FORMATS:
        for to in FORMATS:
            for suffix, mode in ROUNDS.items():
                for (value,) in floats(source, 4, 1):
                    x = decode(source, value)
                    out.case(f"F2F.{to}.{source}{suffix} R0, R2", words(value, source == "F64"), words(encode(to, x, mode), to == "F64"))
                    if x[0] == "num":
                        x = ("num", x[1], Fraction(round_integer(x[2], x[1], mode)))
                    out.case(f"F2F.{to}.{source}{suffix}.INT R0, R2", words(value, source == "F64"), words(encode(to, x, mode), to == "F64"))
    for (value,) in floats("F32", 10, 1):
        out.case("F2F.F32.F32.SAT R0, R2", [value], [saturate("F32", encode("F32", decode("F32", value)))])
        out.case("F2F.F32.F32.FTZ R0, R2", [value], [encode("F32", decode("F32", flush("F32", value)))])
        out.case("F2F.F16.F32.FTZ R0, R2", [value], [encode("F16", decode("F32", flush("F32", value)))])
        out.case("F2F.F16.F32.SAT R0, R2", [value], [saturate("F16", encode("F16", decode("F32", value)))])

    out.group("F2FP: a in the upper half, b in the lower")
    for fmt in ("F16", "BF16"):
        for suffix, mode in (("", "RN"), (".RZ", "RZ")):
            for a, b in floats("F32", 12, 2):
                one = lambda word: encode(fmt, decode("F32", word), mode)
                out.case(f"F2FP.{fmt}X2{suffix} R0, R1, R2", (a, b), [one(a) << 16 | one(b)])

    out.group("I2I: narrowed and extended, or clamped")
    for kind in "US":
        for bits in sizes:
            for to_kind in "US":
                for to_bits in sizes:
                    value = rng.choice([rng.randint(*span(kind, bits)), span(kind, bits)[0], span(kind, bits)[1]])
                    to, source = f"{to_kind}{to_bits}", f"{kind}{bits}"
                    least, greatest = span(to_kind, to_bits)
                    wrapped = value & (1 << to_bits) - 1 if to_kind == "U" else to_signed(value, to_bits)
                    sources = in_register(value & (1 << bits) - 1, bits)
                    out.case(f"I2I{both(to, source)} R0, R2", sources, in_register(wrapped, to_bits))
                    out.case(f"I2I{both(to, source)}.SAT R0, R2", sources, in_register(max(least, min(greatest, value)), to_bits))

    eight_bits(out)


def eight_bits(out):
    """Decodes an 8-bit float (Open Compute Project, OFP8): e4m3 has one NaN per sign and no infinity, e5m2 is a short f16."""

    def value(fmt, byte):
        exponent_bits, fraction_bits = int(fmt[1]), int(fmt[3])
        exponent, fraction = byte >> fraction_bits & (1 << exponent_bits) - 1, byte & (1 << fraction_bits) - 1
        if fmt == "E5M2" and exponent == 31:
            return ("nan",) if fraction else ("inf", byte >> 7)
        if fmt == "E4M3" and byte & 0x7F == 0x7F:
            return ("nan",)
        bias = (1 << exponent_bits - 1) - 1
        mantissa = Fraction(fraction, 1 << fraction_bits) + (exponent > 0)
        return ("num", byte >> 7, mantissa * Fraction(2) ** (max(exponent, 1) - bias))

    for fmt in ("E4M3", "E5M2"):
        out.group(f"F2F: every pair of {fmt} as f16")
        for byte in range(128):
            pair = (byte + 128) << 8 | byte
            wide = [encode("F16", value(fmt, part)) for part in (byte + 128, byte)]
            out.case(f"F2F.F16X2.{fmt}X2 R0, R2", [pair], [wide[0] << 16 | wide[1]])
        out.group(f"F2FP: {fmt} of numbers on, between and beyond its values")
        numbers = [value(fmt, byte)[2] for byte in range(128) if value(fmt, byte)[0] == "num"]
        for byte, (low, high) in enumerate(zip(numbers, numbers[1:])):
            middle = (low + high) / 2
            # A tie rounds to the even byte, its neighbours to the nearer one.
            below, above = [number(middle * (1 + Fraction(d, 1 << 20))) for d in (-1, 1)]
            even = byte + byte % 2
            ask = f"F2FP.{fmt}X2 R0, R1, R2"
            out.case(ask, [encode("F32", number(-middle)), encode("F32", number(middle))], [(even + 128) << 8 | even])
            out.case(ask, [encode("F32", below), encode("F32", above)], [byte << 8 | byte + 1])
        greatest = len(numbers) - 1
        for word in (0x7F800000, 0x7F7FFFFF, encode("F32", number(numbers[-1])), encode("F32", number(numbers[-1] * 3 / 2))):
            out.case(f"F2FP.{fmt}X2 R0, R1, R2", [word | 1 << 31, word], [(greatest + 128) << 8 | greatest])
        out.case(f"F2FP.{fmt}X2 R0, R1, R2", [0x7FC00000, 0x80000000], [0x7F80])


# ---- special functions

def mufu():
    from decimal import Decimal, getcontext

    getcontext().prec = 60
    out = File("mufu", "exact cases of the PTX ISA's tables, and values by 60-digit decimal arithmetic to one unit in the last place (~>)")
    plus, minus, nan = 0x7F800000, 0xFF800000, 0x7FFFFFFF
    exact = {
        "RCP": [(0x40000000, 0x3F000000), (0, plus), (0x80000000, minus), (plus, 0), (minus, 0x80000000), (0x7FC00000, nan)],
        "RSQ": [(0x40800000, 0x3F000000), (0, plus), (0x80000000, minus), (plus, 0), (minus, nan), (0xBF800000, nan), (0x7F800001, nan)],
        "SQRT": [(0x40800000, 0x40000000), (0, 0), (0x80000000, 0x80000000), (plus, plus), (0xBF800000, nan)],
        "EX2": [(0x40400000, 0x41000000), (0, 0x3F800000), (0x80000000, 0x3F800000), (plus, plus), (minus, 0), (nan, nan), (0x43000000, plus), (0xC3000000, 0x00200000)],
        "LG2": [(0x41000000, 0x40400000), (0x3F800000, 0), (0, minus), (0x80000000, minus), (plus, plus), (0xBF800000, nan), (1, 0xC3150000)],
        "SIN": [(0, 0), (0x80000000, 0x80000000), (plus, nan), (minus, nan)],
        "COS": [(0, 0x3F800000), (plus, nan)],
        "TANH": [(0, 0), (0x80000000, 0x80000000), (plus, 0x3F800000), (minus, 0xBF800000), (nan, nan)],
    }
    for name, cases in exact.items():
        out.group(name)
        for a, result in cases:
            out.case(f"MUFU.{name} R0, R1", [a], [result])
    out.case("MUFU.EX2.FTZ R0, R1", [0xC3000000], [0])
    out.case("MUFU.RCP.FTZ R0, R1", [0x7F000001], [0])
    out.case("MUFU.RCP.F64 R0, R1", [0x40000000], [0x3FE00000])
    out.case("MUFU.RSQ.F64 R0, R1", [0x40100000], [0x3FE00000])

    ln2 = Decimal(2).ln()

    def sine(x, cosine):
        term, total, n = (Decimal(1), Decimal(0), 0) if cosine else (x, Decimal(0), 1)
        while abs(term) > Decimal(10) ** -50:
            total, term, n = total + term, -term * x * x / ((n + 1) * (n + 2)), n + 2
        return total

    functions = {
        "RCP": lambda x: 1 / x, "RSQ": lambda x: 1 / abs(x).sqrt(), "SQRT": lambda x: abs(x).sqrt(), "EX2": lambda x: (x * ln2).exp(),
        "LG2": lambda x: abs(x).ln() / ln2, "SIN": lambda x: sine(x, False), "COS": lambda x: sine(x, True),
        "TANH": lambda x: ((2 * x).exp() - 1) / ((2 * x).exp() + 1),
    }
    for name, rule in functions.items():
        out.group(f"{name}, values in between")
        for _ in range(25):
            a = rng.getrandbits(1) << 31 | 127 + rng.randint(-4, 3) << 23 | rng.getrandbits(23)
            if name in ("RSQ", "SQRT", "LG2"):
                a &= 0x7FFFFFFF
            x = signed(decode("F32", a))
            result = rule(Decimal(x.numerator) / Decimal(x.denominator))
            out.case(f"MUFU.{name} R0, R1", [a], [encode("F32", number(Fraction(result)))], near=True)


def flushed():
    """Runs last, so that the random numbers of the earlier parts stay unchanged."""
    out = File("flush", "IEEE 754, with denormal inputs and results flushed to zeros of the same sign (PTX ISA, .ftz)")
    denormal = {"F32": [1, 0x80000001, 0x007FFFFF, 0x807FFFFF], "F16": [1, 0x8001, 0x03FF, 0x83FF]}

    def pairs(fmt, count):
        yield from floats(fmt, count, 2)
        for a in denormal[fmt]:
            for b in denormal[fmt] + EDGES[fmt][:6]:
                yield a, b

    out.group("FMNMX and FSETP of denormals")
    for a, b in pairs("F32", 20):
        x, y = (decode("F32", flush("F32", word)) for word in (a, b))
        for least in (0, 1):
            out.case("FMNMX.FTZ R0, R1, R2, P0", (a, b), [encode("F32", f_minmax(x, y, bool(least)))], [least])
        for cmp in ("EQ", "LT", "GE"):
            holds = f_cmp(x, y) in ORDERS[cmp]
            out.case(f"FSETP.{cmp}.AND.FTZ P0, P1, R1, R2, PT", (a, b), [], [1], [holds, not holds])
    out.group("packed halves")
    rules = {"HADD2": lambda x, y: f_add(x, y), "HMUL2": lambda x, y: f_mul(x, y)}
    both = list(pairs("F16", 12))
    for (a, b), (c, d) in zip(both, reversed(both)):
        for name, rule in rules.items():
            one = lambda v, w: flush("F16", encode("F16", rule(*(decode("F16", flush("F16", word)) for word in (v, w)))))
            out.case(f"{name}.F16X2.FTZ R0, R1, R2", (c << 16 | a, d << 16 | b), [one(c, d) << 16 | one(a, b)])
    out.group("minimum and maximum of single halves")
    for fmt in ("F16", "BF16"):
        for a, b in floats(fmt, 24, 2):
            for least in (0, 1):
                result = encode(fmt, f_minmax(decode(fmt, a), decode(fmt, b), bool(least)))
                out.case(f"HMNMX2.{fmt} R0, R1, R2, P0", (a, b), [result], [least])


def mufu_half():
    """Writes 2^x and tanh of halves, rounded once. The PTX ISA allows ten times the error."""
    from decimal import Decimal, getcontext

    getcontext().prec = 60
    out = File("mufu_half", "PTX ISA, ex2.approx and tanh.approx of f16, bf16 and pairs: exact values rounded to nearest")

    def power(x):
        return (Decimal(x.numerator) / Decimal(x.denominator) * Decimal(2).ln()).exp()

    def value(name, fmt, word):
        x = decode(fmt, word)
        if x[0] == "nan":
            return NANS[fmt]
        if name == "TANH":
            if x[0] == "inf" or x[2] > 60:
                return encode(fmt, ("num", x[1], Fraction(1)))
            if x[2] == 0 or x[2] < Fraction(1, 2**40):
                return encode(fmt, x)
            p = power(2 * x[2] / Fraction(Decimal(2).ln()))
            return encode(fmt, ("num", x[1], Fraction((p - 1) / (p + 1))))
        if x[0] == "inf" or x[2] > 300:
            return encode(fmt, ("num", 0, Fraction(0)) if x[1] else ("inf", 0))
        return encode(fmt, ("num", 0, Fraction(power(signed(x)))))

    for fmt in ("F16", "BF16"):
        one = 0x3C00 if fmt == "F16" else 0x3F80
        edges = [0, 0x8000, 1, 0x8001, one, one | 0x8000, one + 1, one >> 1, NANS[fmt], 0xFFFF]
        infinity = 0x7C00 if fmt == "F16" else 0x7F80
        edges += [infinity, infinity | 0x8000, infinity - 1, infinity - 1 | 0x8000, infinity + 1]
        near_one = [sign | one + rng.randrange(-4 << 7 if fmt == "BF16" else -4 << 10, 3 << 7 if fmt == "BF16" else 3 << 10) & 0x7FFF
                    for sign in (0, 0x8000) for _ in range(14)]
        for name in ("EX2", "TANH"):
            out.group(f"{name} of {fmt}")
            words = edges + near_one
            for word in words:
                out.case(f"MUFU.{name}.{fmt} R0, R1", [word], [value(name, fmt, word)])
            for low, high in zip(words, words[5:] + words[:5]):
                out.case(f"MUFU.{name}.{fmt}X2 R0, R1", [high << 16 | low], [value(name, fmt, high) << 16 | value(name, fmt, low)])
        out.group(f"EX2 of {fmt}, denormal results flushed")
        least = -14 if fmt == "F16" else -126
        for step in range(6):
            word = encode(fmt, number(Fraction(least) - Fraction(step, 2)))
            result = value("EX2", fmt, word)
            flushed = 0 if not result & infinity else result
            out.case(f"MUFU.EX2.{fmt}.FTZ R0, R1", [word], [flushed])


if __name__ == "__main__":
    for part in (fp32, half, fp64, integer, product, convert, mufu, slow, flushed, mufu_half):
        part()
