#!/usr/bin/env python3
"""Makes the launches of a plan on a real GPU.

    python3 measure.py DIR...

A DIR is a folder of `warpwave validate --plan` or `warpwave run --plan`. The program needs the driver of the GPU and nothing else. It
writes DIR/results.json: clock values, nanoseconds of each timed launch, and for a scenario how its data differ from those of the model.
"""

import argparse
import ctypes as c
import functools
import json
import math
import os
import random
import re
import struct
import sys
import time

REPETITIONS = 5
RING_SEED = 1


class Cuda:
    """The CUDA driver's interface, as far as launches need it."""

    def __init__(self):
        for name in ("libcuda.so.1", "nvcuda.dll"):
            try:
                self.lib = c.CDLL(name)
                break
            except OSError:
                continue
        else:
            sys.exit("there is no CUDA driver on this machine: libcuda.so.1 cannot be loaded")
        self("cuInit", 0)
        device, self.context = c.c_int(), c.c_void_p()
        self("cuDeviceGet", c.byref(device), 0)
        self.device = device
        self("cuDevicePrimaryCtxRetain", c.byref(self.context), device)
        self("cuCtxSetCurrent", self.context)
        self.stream = c.c_void_p()
        self("cuStreamCreate", c.byref(self.stream), 0)
        self.events = [c.c_void_p(), c.c_void_p()]
        for event in self.events:
            self("cuEventCreate", c.byref(event), 0)

    def __call__(self, name, *args):
        error = getattr(self.lib, name)(*args)
        if error != 0:
            text = c.c_char_p()
            self.lib.cuGetErrorString(error, c.byref(text))
            raise CudaError(f"{name}: error {error}, {(text.value or b'unknown').decode()}")

    def name(self):
        text = c.create_string_buffer(256)
        self("cuDeviceGetName", text, 256, self.device)
        version = c.c_int()
        self("cuDriverGetVersion", c.byref(version))
        return text.value.decode(), f"CUDA {version.value // 1000}.{version.value % 1000 // 10}"

    def load(self, ptx, max_registers):
        """Compiles a PTX text. Returns its module."""
        log = c.create_string_buffer(8192)
        options = [(5, c.cast(log, c.c_void_p)), (6, c.c_void_p(8192))]
        if max_registers:
            options.append((0, c.c_void_p(max_registers)))
        keys = (c.c_int * len(options))(*[key for key, _ in options])
        values = (c.c_void_p * len(options))(*[value for _, value in options])
        module = c.c_void_p()
        for text in (ptx, self.lowered(ptx)):
            try:
                self("cuModuleLoadDataEx", c.byref(module), text.encode() + b"\0", len(options), keys, values)
                return module
            except CudaError as error:
                failure = f"{error}: {log.value.decode(errors='replace')}"
        raise CudaError(failure)

    def lowered(self, ptx):
        """The text with the newest PTX version of the driver. A compiler writes its own, even if it uses nothing of it."""
        version = c.c_int()
        self("cuDriverGetVersion", c.byref(version))
        major, minor = version.value // 1000, version.value % 1000 // 10
        # PTX 8.0 came with CUDA 12.0, and PTX 9.0 with CUDA 13.0.
        return re.sub(r"^\.version .*", f".version {major - 4}.{minor}", ptx, count=1, flags=re.MULTILINE)

    def allocate(self, size):
        pointer = c.c_uint64()
        self("cuMemAlloc_v2", c.byref(pointer), c.c_size_t(max(size, 4)))
        return pointer.value

    def free(self, pointer):
        self("cuMemFree_v2", c.c_uint64(pointer))

    def put(self, pointer, data):
        self("cuMemcpyHtoD_v2", c.c_uint64(pointer), data, c.c_size_t(len(data)))

    def zero(self, pointer, size):
        self("cuMemsetD8_v2", c.c_uint64(pointer), c.c_ubyte(0), c.c_size_t(size))

    def get(self, pointer, size):
        data = c.create_string_buffer(size)
        self("cuMemcpyDtoH_v2", data, c.c_uint64(pointer), c.c_size_t(size))
        return data.raw

    def wait(self):
        self("cuStreamSynchronize", self.stream)


class CudaError(Exception):
    """A call of the driver that failed."""


class LaunchConfig(c.Structure):
    _fields_ = [(name, c.c_uint) for name in ("gx", "gy", "gz", "bx", "by", "bz", "shared")] + [
        ("stream", c.c_void_p),
        ("attributes", c.c_void_p),
        ("n_attributes", c.c_uint),
    ]


class LaunchAttribute(c.Structure):
    _fields_ = [("id", c.c_int), ("pad", c.c_char * 4), ("values", c.c_uint * 3), ("rest", c.c_char * 52)]


class Launch:
    """A launch with its argument bytes in place."""

    def __init__(self, cuda, module, step, resolve):
        self.cuda = cuda
        self.function = c.c_void_p()
        kernel = step["kernel"] or resolve.only_kernel()
        cuda("cuModuleGetFunction", c.byref(self.function), module, kernel.encode())
        shared = step["dynamic_shared_bytes"]
        if shared > 48 * 1024:
            cuda("cuFuncSetAttribute", self.function, 8, shared)
        cluster = step["cluster"]
        if cluster and math.prod(cluster) > 8:
            cuda("cuFuncSetAttribute", self.function, 14, 1)
        self.args = []
        for arg in step["args"]:
            data = bytearray.fromhex(arg["hex"])
            if arg["relocations"]:
                resolve.relocate(data, arg["relocations"])
            self.args.append(c.create_string_buffer(bytes(data), max(len(data), 1)))
        self.pointers = (c.c_void_p * max(len(self.args), 1))(*[c.addressof(arg) for arg in self.args])
        # Numbers of the driver's interface: 4 is the cluster size, 2 a cooperative launch.
        attributes = [(4, cluster)] if cluster else []
        if step["is_cooperative"]:
            attributes.append((2, [1, 0, 0]))
        self.attributes = (LaunchAttribute * max(len(attributes), 1))()
        for attribute, (key, values) in zip(self.attributes, attributes):
            attribute.id = key
            attribute.values[:] = values
        self.config = LaunchConfig(*step["grid"], *step["block"], shared, cuda.stream, None, 0)
        self.config.attributes = c.addressof(self.attributes)
        self.config.n_attributes = len(attributes)

    def run(self):
        self.cuda("cuLaunchKernelEx", c.byref(self.config), self.function, self.pointers, None)

    def nanoseconds(self):
        """The mean time of a launch in a graph of many: without the host, and with the gap between two launches."""
        self.run()
        self.cuda.wait()
        once = self.of_graph(1)
        n = max(4, min(50, int(20e6 / max(once, 1))))
        return self.of_graph(n) / n

    def of_graph(self, n):
        cuda, graph, ready = self.cuda, c.c_void_p(), c.c_void_p()
        cuda("cuStreamBeginCapture_v2", cuda.stream, 2)
        for _ in range(n):
            self.run()
        cuda("cuStreamEndCapture", cuda.stream, c.byref(graph))
        cuda("cuGraphInstantiateWithFlags", c.byref(ready), graph, c.c_ulonglong(0))
        cuda("cuGraphLaunch", ready, cuda.stream)
        cuda("cuEventRecord", cuda.events[0], cuda.stream)
        cuda("cuGraphLaunch", ready, cuda.stream)
        cuda("cuEventRecord", cuda.events[1], cuda.stream)
        cuda.wait()
        milliseconds = c.c_float()
        cuda("cuEventElapsedTime", c.byref(milliseconds), *cuda.events)
        cuda("cuGraphExecDestroy", ready)
        cuda("cuGraphDestroy", graph)
        return milliseconds.value * 1e6


CLOCK = """.version 7.0
.target sm_70
.address_size 64
.visible .entry clock(.param .u64 out)
{
    .reg .pred %p; .reg .b64 %r<8>;
    ld.param.u64 %r1, [out];
    mov.u64 %r2, %globaltimer; mov.u64 %r3, %clock64;
again:
    mov.u64 %r4, %globaltimer; sub.u64 %r5, %r4, %r2; setp.lt.u64 %p, %r5, 200000;
    @%p bra again;
    mov.u64 %r6, %clock64; sub.u64 %r6, %r6, %r3;
    st.global.u64 [%r1], %r5; st.global.u64 [%r1+8], %r6;
    ret;
}
"""


class Clock:
    """Reads the clock of the SMs: cycles beside nanoseconds over 0.2 ms."""

    def __init__(self, cuda):
        self.cuda, self.out = cuda, cuda.allocate(16)
        step = {"kernel": "clock", "grid": [1, 1, 1], "block": [1, 1, 1], "cluster": None, "dynamic_shared_bytes": 0}
        step["is_cooperative"] = False
        step["args"] = [{"hex": self.out.to_bytes(8, "little").hex(), "relocations": []}]
        self.launch = Launch(cuda, cuda.load(CLOCK, None), step, None)

    def ghz(self):
        self.launch.run()
        self.cuda.wait()
        nanoseconds, cycles = struct.unpack("<2Q", self.cuda.get(self.out, 16))
        return cycles / nanoseconds


class Place:
    """The data of a plan in device memory."""

    def __init__(self, cuda, module, ptx, plan, folder):
        self.cuda, self.module, self.ptx, self.plan, self.folder = cuda, module, ptx, plan, folder
        self.addresses, self.own = [], []
        for buffer in plan["buffers"]:
            if buffer["is_variable"]:
                self.addresses.append(self.variable(buffer["name"]))
                continue
            self.own.append(cuda.allocate(buffer["bytes"]))
            self.addresses.append(self.own[-1])

    def free(self):
        for pointer in self.own:
            self.cuda.free(pointer)

    def variable(self, symbol):
        pointer, size = c.c_uint64(), c.c_size_t()
        self.cuda("cuModuleGetGlobal_v2", c.byref(pointer), c.byref(size), self.module, symbol.encode())
        return pointer.value

    def only_kernel(self):
        start = self.ptx.index(".entry") + len(".entry")
        return self.ptx[start:].split("(")[0].split()[0]

    def relocate(self, data, relocations):
        for word in relocations:
            at, to = word["at"], word["to"]
            base = self.addresses[to] if isinstance(to, int) else self.variable(to)
            offset = int.from_bytes(data[at : at + 8], "little")
            data[at : at + 8] = (base + offset).to_bytes(8, "little")

    def init(self, index):
        buffer = self.plan["buffers"][index]
        address, size, init = self.addresses[index], buffer["bytes"], buffer["init"]
        if init == "program":
            return
        if init == "zeros" and not buffer["relocations"]:
            self.cuda.zero(address, size)
            return
        if init == "zeros":
            data = bytearray(size)
        elif "ring" in init:
            data = bytearray(ring(size // init["ring"], init["ring"]))
        else:
            with open(os.path.join(self.folder, init["data"]), "rb") as file:
                data = bytearray(file.read())
        self.relocate(data, buffer["relocations"])
        self.cuda.put(address, bytes(data))

    def init_all(self):
        for index in range(len(self.plan["buffers"])):
            self.init(index)

    def host_step(self, name, value):
        """A step of the host between launches."""
        cuda, addresses, buffers = self.cuda, self.addresses, self.plan["buffers"]
        if name == "reset":
            self.init(value)
        elif name == "fill":
            index, digits = value
            element = bytes.fromhex(digits)
            cuda.put(addresses[index], element * (buffers[index]["bytes"] // len(element)))
        else:
            one, two = value
            first = cuda.get(addresses[one], buffers[one]["bytes"])
            second = cuda.get(addresses[two], buffers[two]["bytes"])
            cuda.put(addresses[two], first)
            if name == "swap":
                cuda.put(addresses[one], second)


@functools.lru_cache(maxsize=1)
def ring(nodes, size):
    """A ring through all nodes in random order: each begins with the offset of the next one."""
    order = list(range(1, nodes))
    random.Random(RING_SEED).shuffle(order)
    order = [0, *order]
    data = bytearray(nodes * size)
    for here, there in zip(order, order[1:] + order[:1]):
        struct.pack_into("<Q", data, here * size, there * size)
    return bytes(data)


def measure(cuda, clock, module, ptx, plan, folder, once, dump):
    """Runs a plan. Returns its entry of results.json."""
    place = Place(cuda, module, ptx, plan, folder)
    result = {"name": plan["name"], "core_ghz": 0.0, "repetitions": [], "error": None}
    try:
        for _ in range(1 if once else REPETITIONS):
            launches, reads = [], []
            place.init_all()
            for step in plan["steps"]:
                [(name, value)] = step.items()
                if name == "launch":
                    launch = Launch(cuda, module, value, place)
                    if value["is_timed"] and not once:
                        launches.append(launch.nanoseconds())
                    else:
                        launch.run()
                        cuda.wait()
                elif name == "read":
                    data = cuda.get(place.addresses[value], plan["buffers"][value]["bytes"])
                    reads.append(extremes(struct.unpack(f"<{len(data) // 8}Q", data)))
                else:
                    place.host_step(name, value)
            result["repetitions"].append({"launches": launches, "reads": reads})
            if not once:
                result["core_ghz"] = clock.ghz()
        result["values"] = compare(cuda, place, plan, folder)
        if dump:
            write_buffers(cuda, place, plan, folder)
    finally:
        place.free()
    return result


def extremes(values):
    """Of pairs of clock values, those of the threads that began first, ended last, and took longest."""
    pairs = list(zip(values[::2], values[1::2]))
    first, last = min(pairs), max(pairs, key=lambda pair: pair[1])
    longest = max(pairs, key=lambda pair: pair[1] - pair[0])
    return [*first, *last, *longest]


def compare(cuda, place, plan, folder):
    """How the data differ from those of the model: a line for each buffer that has a file of the model."""
    lines = {}
    for index, buffer in enumerate(plan["buffers"]):
        path = os.path.join(folder, f"{plan['name']}.{buffer['name']}.model")
        if not os.path.exists(path):
            continue
        with open(path, "rb") as file:
            want = file.read()
        found = cuda.get(place.addresses[index], buffer["bytes"])
        lines[buffer["name"]] = difference(found, want, buffer["dtype"])
    return lines


def write_buffers(cuda, place, plan, folder):
    """Writes the data that the GPU left: PLAN.BUFFER.gpu for each buffer."""
    for address, buffer in zip(place.addresses, plan["buffers"]):
        with open(os.path.join(folder, f"{plan['name']}.{buffer['name']}.gpu"), "wb") as file:
            file.write(cuda.get(address, buffer["bytes"]))


FORMATS = {"f32": "f", "f64": "d", "f16": "e", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q"}


def difference(found, want, dtype):
    """`equal`, or the elements that differ and the largest relative difference."""
    if found == want:
        return "equal"
    if dtype == "bf16":
        widen = lambda data: b"".join(b"\0\0" + data[at : at + 2] for at in range(0, len(data), 2))
        return difference(widen(found), widen(want), "f32")
    code = FORMATS[dtype]
    n = len(want) // struct.calcsize(code)
    pairs = zip(struct.unpack(f"<{n}{code}", found), struct.unpack(f"<{n}{code}", want))
    unequal = [(a, b) for a, b in pairs if a != b and not (a != a and b != b)]
    if not unequal:
        return "equal"
    worst = max(abs(a - b) / max(abs(b), 1e-30) for a, b in unequal)
    a, b = unequal[0]
    return f"{len(unequal)} of {n} differ, by {worst:.3g} at most; the first: {a} here, {b} in the model"


def run(cuda, clock, folder, args, deadline):
    """Runs the plans of a folder. Returns their number and the number of failures."""
    with open(os.path.join(folder, "plan.json"), encoding="utf-8") as file:
        plans = [plan for plan in json.load(file) if args.filter in plan["name"]]
    modules, results = {}, []
    for n, plan in enumerate(plans):
        if time.monotonic() > deadline:
            print(f"{folder}: stopped after {args.seconds:.0f} s; {len(plans) - n} plans are left out")
            break
        key, started = (plan["ptx"], plan["max_registers"]), time.monotonic()
        try:
            if key not in modules:
                with open(os.path.join(folder, plan["ptx"]), encoding="utf-8") as file:
                    text = file.read()
                modules[key] = (cuda.load(text, plan["max_registers"]), text)
            result = measure(cuda, clock, *modules[key], plan, folder, args.once, args.dump)
        except CudaError as error:
            result = {"name": plan["name"], "core_ghz": 0.0, "repetitions": [], "error": str(error)[:500]}
        results.append(result)
        report(result, time.monotonic() - started)
        if result["error"] and cuda.lib.cuCtxSynchronize() != 0:
            sys.exit("the GPU does not go on after this error; leave the plan out with --filter")
    if not args.once:
        with open(os.path.join(folder, "results.json"), "w", encoding="utf-8") as file:
            json.dump(results, file)
    return len(results), sum(result["error"] is not None for result in results)


def report(result, seconds):
    """Prints a line for a plan that failed, took long, or has values to compare."""
    notes = [f"{name}: {text}" for name, text in result.get("values", {}).items()]
    notes += [result["error"]] if result["error"] else []
    if notes or seconds > 2:
        print(f"{result['name']} ({seconds:.1f} s)", *notes, sep="; ", flush=True)


def main():
    options = argparse.ArgumentParser(description="Makes the launches of plans on a real GPU.")
    options.add_argument("folders", nargs="+", metavar="DIR", help="folder of `warpwave validate --plan` or `warpwave run --plan`")
    options.add_argument("--filter", default="", metavar="TEXT", help="only plans whose name has this text")
    options.add_argument("--once", action="store_true", help="make every launch once, for a profiler; no file is written")
    options.add_argument("--dump", action="store_true", help="write the data that the GPU left, as PLAN.BUFFER.gpu")
    options.add_argument("--seconds", type=float, default=math.inf, metavar="N", help="begin no plan after this time")
    args = options.parse_args()
    deadline = time.monotonic() + args.seconds
    cuda = Cuda()
    print(*cuda.name(), sep=", ")
    clock = Clock(cuda)
    counts = [run(cuda, clock, folder, args, deadline) for folder in args.folders]
    failed = sum(failures for _, failures in counts)
    print(f"{sum(plans for plans, _ in counts)} plans ran, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
