"""GPU kernels that cut, join and count sets of cases, written in Python and compiled by CuPy.

A set is a row of `masks`, one bit per case, or a slice of `lists`, row numbers in no particular order. Each state of a
variable but the first has a bit plane; `rows` contains the codes row by row. One warp counts one plane for one set; one
thread counts one variable of some rows.
"""

from threading import Lock

import cupy as cp
from cupyx import jit

THREADS = 256
WARPS = THREADS // 32
PLANES = 4  # planes that a warp counts together, if all variables are binary
CHUNK = 512  # rows of a list that a thread counts
SUMMED = 240  # the same if eight bytes are summed at a time, none of which may overflow


@jit.rawkernel(device=True)
def popcount(bits):
    """Return the number of set bits, by adding pairs, fours and eights."""
    pairs = bits - ((bits >> cp.uint64(1)) & cp.uint64(0x5555555555555555))
    fours = (pairs & cp.uint64(0x3333333333333333)) + ((pairs >> cp.uint64(2)) & cp.uint64(0x3333333333333333))
    eights = (fours + (fours >> cp.uint64(4))) & cp.uint64(0x0F0F0F0F0F0F0F0F)
    return cp.int32((eights * cp.uint64(0x0101010101010101)) >> cp.uint64(56))


try:
    from cupyx.jit import _cuda_types, _internal_types
except ImportError:  # a release with other private parts: slower, same counts
    pass
else:

    class _Popcount(_internal_types.BuiltinFunc):
        """The device's own instruction, in less than half the time; CuPy's public interface does not provide it."""

        def call(self, env, bits):
            return _internal_types.Data(f"__popcll({_internal_types.Data.init(bits, env).code})", _cuda_types.int32)

    popcount = _Popcount()


class Kernel:
    """A kernel with a fast lookup of its compiled forms; CuPy looks them up by the texts of all types, at each call."""

    def __init__(self, kernel):
        self._kernel, self._known, self._compiling = kernel, {}, Lock()

    def __call__(self, grid, block, arguments):
        """Run the kernel on arrays and NumPy scalars."""
        types = tuple(
            (a.dtype.char, a.ndim, a._c_contiguous, a._index_32_bits) if isinstance(a, cp.ndarray) else a.dtype.char
            for a in arguments
        )
        key = cp.cuda.get_device_id(), types
        if key in self._known:
            compiled, is_cooperative = self._known[key]
            compiled(grid, block, arguments, 0, None, is_cooperative)
            return
        compiled = getattr(self._kernel, "_cache", {})  # without it, CuPy's own lookup is used every time
        with self._compiling:
            n_before = len(compiled)
            self._kernel(grid, block, arguments)
            if len(compiled) > n_before:
                self._known[key] = next(reversed(compiled.values()))


def rawkernel(function):
    """Compile a kernel when it is called."""
    return Kernel(jit.rawkernel()(function))


@rawkernel
def pack(codes, variables, states, n_cases, n_words, planes):
    """Set planes[p] to the cases in which variables[p] is in states[p]."""
    word = jit.blockIdx.x * jit.blockDim.x + jit.threadIdx.x
    plane = jit.blockIdx.y
    if word < n_words:
        variable = variables[plane]
        state = states[plane]
        bits = cp.uint64(0)
        for k in range(64):
            row = cp.int64(word) * 64 + k
            if row < n_cases:
                if cp.int64(codes[variable, row]) == state:
                    bits = bits | (cp.uint64(1) << cp.uint64(k))
        planes[plane, word] = bits


@rawkernel
def count_masks(slots, targets, offsets, variables, bases, n_states, first, masks, planes, n_words, n_entries, out):
    """Count all rows of the histograms of masks except those of first states and totals."""
    request = jit.blockIdx.x
    entry = jit.blockIdx.y * 8 + jit.threadIdx.x // 32
    lane = jit.threadIdx.x % 32
    if entry < n_entries:
        slot = slots[request]
        target = targets[request]
        variable = variables[entry]
        n_classes = n_states[target]
        for state in range(1, n_states[variable]):
            plane = first[variable] + state - 1
            at = offsets[request] + (bases[entry] + state) * n_classes
            rest = cp.int32(0)
            for k in range(1, max(n_classes, cp.int64(2))):
                whole = cp.int32(0)
                part = cp.int32(0)
                other = first[target] + k - 1
                word = cp.int64(lane)
                while word < n_words:
                    bits = masks[slot, word] & planes[plane, word]
                    whole += popcount(bits)
                    if k < n_classes:
                        part += popcount(bits & planes[other, word])
                    word += 32
                step = cp.int32(16)
                while step > 0:
                    whole += jit.shfl_xor_sync(0xFFFFFFFF, whole, step)
                    part += jit.shfl_xor_sync(0xFFFFFFFF, part, step)
                    step = cp.int32(step >> 1)
                if k == 1:
                    rest = whole
                rest -= part
                if lane == 0 and k < n_classes:
                    out[at + k] = part
            if lane == 0:
                out[at] = rest


@jit.rawkernel(device=True)
def summed(n):
    """Return the sum over a warp."""
    step = cp.int32(16)
    while step > 0:
        n += jit.shfl_xor_sync(0xFFFFFFFF, n, step)
        step = cp.int32(step >> 1)
    return n


@jit.rawkernel(device=True)
def write_binary(variable, n_variables, target, size, whole, part, offset, bases, n_rows, out):
    """Write the row of a binary variable's second state; and the totals, if it is the target."""
    if variable < n_variables:
        if bases[variable] >= 0:
            out[offset + bases[variable] * 2 + 2] = whole - part
            out[offset + bases[variable] * 2 + 3] = part
        if variable == target:
            out[offset + n_rows * 2] = cp.int32(size) - whole
            out[offset + n_rows * 2 + 1] = whole
    return cp.int32(0)


@rawkernel
def count_binary_masks(slots, sizes, targets, offsets, n_variables, bases, masks, planes, n_words, n_rows, out):
    """Count the same rows and the totals, if all variables are binary; a warp takes four planes at a time."""
    request = jit.blockIdx.x
    group = jit.blockIdx.y * 8 + jit.threadIdx.x // 32
    lane = jit.threadIdx.x % 32
    first = cp.int64(group) * 4
    if first < n_variables:
        slot = slots[request]
        target = targets[request]
        second = min(first + 1, n_variables - 1)
        third = min(first + 2, n_variables - 1)
        fourth = min(first + 3, n_variables - 1)
        whole0 = cp.int32(0)
        whole1 = cp.int32(0)
        whole2 = cp.int32(0)
        whole3 = cp.int32(0)
        part0 = cp.int32(0)
        part1 = cp.int32(0)
        part2 = cp.int32(0)
        part3 = cp.int32(0)
        word = cp.int64(lane)
        while word < n_words:
            mask = masks[slot, word]
            own = mask & planes[target, word]
            bits0 = planes[first, word]
            bits1 = planes[second, word]
            bits2 = planes[third, word]
            bits3 = planes[fourth, word]
            whole0 += popcount(mask & bits0)
            whole1 += popcount(mask & bits1)
            whole2 += popcount(mask & bits2)
            whole3 += popcount(mask & bits3)
            part0 += popcount(own & bits0)
            part1 += popcount(own & bits1)
            part2 += popcount(own & bits2)
            part3 += popcount(own & bits3)
            word += 32
        whole0 = summed(whole0)
        whole1 = summed(whole1)
        whole2 = summed(whole2)
        whole3 = summed(whole3)
        part0 = summed(part0)
        part1 = summed(part1)
        part2 = summed(part2)
        part3 = summed(part3)
        if lane == 0:
            offset = offsets[request]
            write_binary(first, n_variables, target, sizes[request], whole0, part0, offset, bases, n_rows, out)
            write_binary(first + 1, n_variables, target, sizes[request], whole1, part1, offset, bases, n_rows, out)
            write_binary(first + 2, n_variables, target, sizes[request], whole2, part2, offset, bases, n_rows, out)
            write_binary(first + 3, n_variables, target, sizes[request], whole3, part3, offset, bases, n_rows, out)


@rawkernel
def count_totals(slots, sizes, targets, offsets, n_states, first, masks, planes, n_words, n_rows, out):
    """Count the last rows of the histograms: the target's counts."""
    request = jit.blockIdx.x
    lane = jit.threadIdx.x
    target = targets[request]
    at = offsets[request] + n_rows * n_states[target]
    rest = sizes[request]
    for k in range(1, n_states[target]):
        n = cp.int32(0)
        other = first[target] + k - 1
        word = cp.int64(lane)
        while word < n_words:
            n += popcount(masks[slots[request], word] & planes[other, word])
            word += 32
        step = cp.int32(16)
        while step > 0:
            n += jit.shfl_xor_sync(0xFFFFFFFF, n, step)
            step = cp.int32(step >> 1)
        if lane == 0:
            out[at + k] = n
            rest -= n
    if lane == 0:
        out[at] = rest


@rawkernel
def subtract(targets, offsets, variables, bases, n_states, n_entries, n_rows, out):
    """Compute the rows of first states: the totals minus the other states."""
    request = jit.blockIdx.x
    entry = jit.blockIdx.y * jit.blockDim.x + jit.threadIdx.x
    if entry < n_entries:
        n_classes = n_states[targets[request]]
        at = offsets[request] + bases[entry] * n_classes
        for k in range(n_classes):
            n = out[offsets[request] + n_rows * n_classes + k]
            for state in range(1, n_states[variables[entry]]):
                n -= out[at + state * n_classes + k]
            out[at + k] = n


@rawkernel
def count_lists(begins, sizes, targets, offsets, variables, bases, n_states, lists, rows, n_entries, n_rows, out):
    """Count histograms of lists, a chunk of a list per thread; they must be zero before."""
    request = jit.blockIdx.x
    entry = jit.blockIdx.y * jit.blockDim.x + jit.threadIdx.x
    begin = cp.int64(jit.blockIdx.z) * 512
    end = min(begin + 512, sizes[request])
    if entry <= n_entries and begin < end:
        target = targets[request]
        n_classes = n_states[target]
        offset = offsets[request]
        if entry == n_entries:
            for k in range(begin, end):
                own = cp.int64(rows[lists[begins[request] + k], target])
                jit.atomic_add(out, offset + n_rows * n_classes + own, cp.int32(1))
        else:
            variable = variables[entry]
            at = offset + bases[entry] * n_classes
            if n_classes == 2 and n_states[variable] == 2:
                n = cp.int32(0)
                ones = cp.int32(0)
                owns = cp.int32(0)
                both = cp.int32(0)
                for k in range(begin, end):
                    row = lists[begins[request] + k]
                    one = cp.int32(rows[row, variable])
                    own = cp.int32(rows[row, target])
                    n += 1
                    ones += one
                    owns += own
                    both += one * own
                jit.atomic_add(out, at, n - ones - owns + both)
                jit.atomic_add(out, at + 1, owns - both)
                jit.atomic_add(out, at + 2, ones - both)
                jit.atomic_add(out, at + 3, both)
            else:
                for k in range(begin, end):
                    row = lists[begins[request] + k]
                    cell = cp.int64(rows[row, variable]) * n_classes + cp.int64(rows[row, target])
                    jit.atomic_add(out, at + cell, cp.int32(1))


@rawkernel
def count_binary_lists(begins, sizes, targets, offsets, bases, lists, rows, octets, n_variables, n_octets, n_rows, out):
    """Count all rows of histograms but those of first states, if all variables are binary; they must be zero before.

    A thread sums eight variables, a byte each, over a chunk of a list.
    """
    request = jit.blockIdx.x
    begin = cp.int64(jit.blockIdx.y) * 240
    end = min(begin + 240, sizes[request])
    octet = cp.int64(jit.blockIdx.z * jit.blockDim.x + jit.threadIdx.x)
    if octet < n_octets and begin < end:
        target = targets[request]
        start = begins[request]
        whole = cp.uint64(0)
        part = cp.uint64(0)
        for k in range(begin, end):
            row = cp.int64(lists[start + k])
            cells = octets[row, octet]
            whole += cells
            part += cells * cp.uint64(rows[row, target])
        for byte in range(8):
            variable = octet * 8 + byte
            if variable < n_variables:
                ones = cp.int32((whole >> cp.uint64(8 * byte)) & cp.uint64(255))
                both = cp.int32((part >> cp.uint64(8 * byte)) & cp.uint64(255))
                if bases[variable] >= 0:
                    jit.atomic_add(out, offsets[request] + bases[variable] * 2 + 2, ones - both)
                    jit.atomic_add(out, offsets[request] + bases[variable] * 2 + 3, both)
                if variable == target:
                    total = offsets[request] + n_rows * 2
                    jit.atomic_add(out, total, cp.int32(end - begin) - ones)
                    jit.atomic_add(out, total + 1, ones)


@rawkernel
def cut_masks(parents, variables, which, groups, at, slots, n_states, first, masks, planes, n_words, sizes):
    """Compute one child of a mask: the cases whose state goes to it."""
    child = jit.blockIdx.x
    word = jit.blockIdx.y * jit.blockDim.x + jit.threadIdx.x
    n = cp.int32(0)
    if word < n_words:
        variable = variables[child]
        bits = cp.uint64(0)
        others = cp.uint64(0)
        for state in range(1, n_states[variable]):
            plane = planes[first[variable] + state - 1, word]
            others = others | plane
            if groups[at[child] + state] == which[child]:
                bits = bits | plane
        if groups[at[child]] == which[child]:
            bits = bits | ~others
        bits = bits & masks[parents[child], word]
        masks[slots[child], word] = bits
        n = popcount(bits)
    step = cp.int32(16)
    while step > 0:
        n += jit.shfl_xor_sync(0xFFFFFFFF, n, step)
        step = cp.int32(step >> 1)
    if jit.threadIdx.x % 32 == 0:
        jit.atomic_add(sizes, child, n)


@rawkernel
def list_masks(slots, begins, masks, n_words, fill, lists):
    """Write the row numbers of masks."""
    which = jit.blockIdx.x
    word = jit.blockIdx.y * jit.blockDim.x + jit.threadIdx.x
    if word < n_words:
        bits = masks[slots[which], word]
        n = popcount(bits)
        if n > 0:
            at = begins[which] + jit.atomic_add(fill, which, n)
            for k in range(n):
                lowest = bits & (~bits + cp.uint64(1))
                lists[at + k] = cp.int64(word) * 64 + popcount(lowest - cp.uint64(1))
                bits = bits ^ lowest


@rawkernel
def cut_lists(begins, sizes, variables, groups, at, children, lists, rows, is_counting, child_begins, fill):
    """Count how many rows each child of a list gets, or distribute them."""
    request = jit.blockIdx.x
    k = jit.blockIdx.y * jit.blockDim.x + jit.threadIdx.x
    if k < sizes[request]:
        row = lists[begins[request] + k]
        child = children[request] + groups[at[request] + cp.int64(rows[row, variables[request]])]
        place = jit.atomic_add(fill, child, cp.int32(1))
        if is_counting == 0:
            lists[child_begins[child] + place] = row


@rawkernel
def mark(begins, sizes, slots, lists, masks):
    """Add the rows of lists to masks."""
    which = jit.blockIdx.x
    k = jit.blockIdx.y * jit.blockDim.x + jit.threadIdx.x
    if k < sizes[which]:
        row = lists[begins[which] + k]
        jit.atomic_or(masks, (slots[which], row // 64), cp.uint64(1) << cp.uint64(row % 64))


@rawkernel
def unite(begins, parts, slots, n_words, masks):
    """Set each of these masks to the union of several, or to the empty set."""
    which = jit.blockIdx.x
    word = jit.blockIdx.y * jit.blockDim.x + jit.threadIdx.x
    if word < n_words:
        value = cp.uint64(0)
        for k in range(begins[which], begins[which + 1]):
            value = value | masks[parts[k], word]
        masks[slots[which], word] = value


@rawkernel
def move_lists(begins, goals, sizes, lists, moved):
    """Copy lists to another place."""
    which = jit.blockIdx.x
    k = jit.blockIdx.y * jit.blockDim.x + jit.threadIdx.x
    if k < sizes[which]:
        moved[goals[which] + k] = lists[begins[which] + k]
