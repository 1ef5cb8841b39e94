// Accesses to memory: an address is found in the memory that the kernel may use, then checked as
// in kernels compiled for the host (state.h).
//
// A generic address is one of the host. An address in shared memory is the offset in the
// emulator's shared memory; one in global or parameter memory is a generic address.
#include "ptx_lanes.h"

#include "device/cuda/kernel_interface.h"

#include "launch.h"
#include "pointer.h"

#include <algorithm>

using namespace ree_emulator;

namespace ree_ptx {

namespace {

std::vector<struct range> tables; // of the module, and the kernel's argument
std::vector<struct range> arrays; // in shared memory
struct place {
    const struct range *of;
    uint64_t origin;
};
std::vector<struct place> global_memory, shared_memory;
struct range fault;

bool may_mean(const struct instr &i, const struct place &p) {
    return i.space == SHARED || (i.origins & (p.origin | ORIGIN_UNKNOWN));
}

const struct range *find(const std::vector<struct place> &places, const struct instr &i,
                         uint64_t at) {
    for (auto &p : places)
        if (at - p.of->base < p.of->size && may_mean(i, p)) return p.of;
    return NULL;
}

// Fails with the memory that the address means or that ends nearest before it.
[[noreturn]] void outside(const struct instr &i, uint64_t at, uint64_t size, enum access access) {
    const struct range *nearest = NULL;
    for (auto &p : i.space == SHARED ? shared_memory : global_memory) {
        if (!may_mean(i, p)) continue;
        const bool before = p.of->base <= at;
        if (!nearest || (before && (nearest->base > at ||
                                    p.of->base + p.of->size > nearest->base + nearest->size)))
            nearest = p.of;
    }
    if (!nearest) fail("an access to memory that the launch does not have");
    bad_address(at, size, size, nearest, access);
}

const struct range *range_of(const struct instr &i, uint64_t at, uint64_t size,
                             enum access access) {
    const struct range *r = i.range;
    if (r && at - r->base < r->size) return r;
    r = find(i.space == SHARED ? shared_memory : global_memory, i, at);
    if (!r && i.space == GENERIC) r = find(shared_memory, i, at);
    if (!r) outside(i, at, size, access);
    i.range = r;
    if (r->kind == RANGE_CONSTANT && access != READ) fail("a store to constant memory");
    return r;
}

// Returns the host's address of a thread's access. `from` is the row of the address register.
uint64_t address(const struct warp &w, const struct instr &i, uint32_t from, uint32_t lane) {
    uint64_t at = i.is_base_wide ? row<uint64_t>(w, from)[lane] : row<uint32_t>(w, from)[lane];
    at += (uint64_t)i.offset;
    return i.space == SHARED ? (uint64_t)shared + at : at;
}

uint64_t load_element(const unsigned char *at, uint32_t size, bool is_signed) {
    switch (size) {
    case 1: return is_signed ? (uint64_t)(int64_t)(int8_t)*at : *at;
    case 2: {
        uint16_t x;
        memcpy(&x, at, 2);
        return is_signed ? (uint64_t)(int64_t)(int16_t)x : x;
    }
    case 4: {
        uint32_t x;
        memcpy(&x, at, 4);
        return is_signed ? (uint64_t)(int64_t)(int32_t)x : x;
    }
    default: {
        uint64_t x;
        memcpy(&x, at, 8);
        return x;
    }
    }
}

void set(const struct warp &w, const struct instr &i, uint32_t e, uint32_t lane, uint64_t value) {
    if (i.is_wide)
        row<uint64_t>(w, i.to[e])[lane] = value;
    else
        row<uint32_t>(w, i.to[e])[lane] = (uint32_t)value;
}
uint64_t value_of(const struct warp &w, const struct instr &i, uint32_t from, uint32_t lane) {
    return i.is_wide ? row<uint64_t>(w, from)[lane] : row<uint32_t>(w, from)[lane];
}

void count(const struct instr &i, const uint64_t *at, uint32_t lanes, uint32_t bytes) {
    if (i.space == PARAM) return; // constant memory, or registers
    const bool in_shared =
        i.space == SHARED || (i.range && i.range->kind >= RANGE_SHARED); // generic
    if (in_shared)
        count_shared(i, at, lanes, bytes);
    else
        count_global(i, at, lanes, bytes);
}

// Data of ld.global.nc must not change while the kernel runs.
void check_constant(uint64_t at, uint64_t size, const struct range *of) {
    if (!of->words) return;
    for (uint64_t i = (at - of->base) >> 2; i <= (at - of->base + size - 1) >> 2; i++)
        if (of->words[i].write >= of->start)
            fail("a load of data as constant (ld.global.nc), which the kernel has written");
}

// Only the bytes that the kernel uses must be written and ordered.
void check_used(uint64_t at, uint32_t bytes, uint32_t used, const struct range *of) {
    struct range bounds = *of;
    bounds.words = NULL;
    check(at, bytes, bytes, &bounds, READ);
    for (uint32_t b = 0; b < bytes; b++)
        if ((used >> b & 15) == 15 && b % 4 == 0) {
            check(at + b, 4, 4, of, READ);
            b += 3;
        } else if (used >> b & 1) {
            check(at + b, 1, 1, of, READ);
        }
}

unsigned char *memory_of(const struct warp &w, uint32_t at, uint32_t size, uint32_t lane) {
    return w.params + at * LANES + lane * size;
}

} // namespace

void begin_memory(struct ree_emulator_ptx *ptx) {
    const struct ree_cuda_header *h = (const struct ree_cuda_header *)arguments;
    tables.clear();
    arrays.clear();
    for (auto &t : ptx->tables)
        tables.push_back(
            {(uintptr_t)t.memory.data(), t.size, 0, NULL, NULL, RANGE_CONSTANT, 0, t.name.c_str()});
    tables.push_back({(uintptr_t)arguments, ptx->args_size, 0, NULL, NULL, RANGE_CONSTANT, 0,
                      "the kernel's argument"});
    fault = {(uintptr_t)h->fault,
             sizeof(struct ree_cuda_fault),
             now.launch,
             NULL,
             NULL,
             RANGE_FAULT,
             0,
             NULL};
    for (auto &s : ptx->shared)
        arrays.push_back({(uintptr_t)shared + s.at, s.size, 0, shared_words + s.at / 4,
                          shared_bytes + s.at, RANGE_SHARED, 0, s.name.c_str()});
    global_memory.clear();
    shared_memory.clear();
    for (int o = 0; o < REE_MAX_OPERANDS; o++)
        if (operand_usable[o] && operands[o].size)
            global_memory.push_back({&operands[o], UINT64_C(1) << o});
    if (scratch.size) global_memory.push_back({&scratch, ORIGIN_SCRATCH});
    if (h->fault) global_memory.push_back({&fault, ORIGIN_FAULT});
    for (auto &t : tables)
        global_memory.push_back({&t, ORIGIN_UNKNOWN});
    for (auto &a : arrays)
        shared_memory.push_back({&a, ORIGIN_UNKNOWN});
    dynamic.name = ptx->dynamic_name.c_str();
    if (ptx->has_dynamic && dynamic.size) shared_memory.push_back({&dynamic, ORIGIN_UNKNOWN});
    for (auto &i : ptx->code)
        i.range = NULL;
}

void begin_memory_of_block() {
    for (auto &a : arrays)
        a.start = now.block;
}

void enter(const struct warp &w, const struct instr &i) {
    now.warp = warps[w.number].together;
    now.partial = warps[w.number].partial;
    current_line = i.line;
}
void enter_lane(const struct warp &w, uint32_t lane) {
    running = w.number * LANES + lane;
    now.now = time_of(now.now) | running;
}

void load(struct warp &w, const struct instr &i, uint32_t lanes) {
    const uint32_t bytes = i.n * i.size;
    uint64_t at[LANES];
    enter(w, i);
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const uint32_t l = (uint32_t)__builtin_ctz(rest);
        enter_lane(w, l);
        at[l] = address(w, i, i.from[0], l);
        const struct range *of = range_of(i, at[l], bytes, READ);
        if (i.used_bytes == ~0u)
            check(at[l], bytes, bytes, of, READ);
        else
            check_used(at[l], bytes, i.used_bytes, of);
        if (i.is_nc) check_constant(at[l], bytes, of);
        for (uint32_t e = 0; e < i.n; e++)
            set(w, i, e, l,
                load_element((const unsigned char *)at[l] + e * i.size, i.size, i.is_signed));
    }
    if (counts_memory()) count(i, at, lanes, bytes);
}

void load_rows(struct warp &w, const struct instr &i, uint32_t lanes, uint32_t (*to)[LANES],
               uint64_t *at) {
    enter(w, i);
    for (; lanes; lanes &= lanes - 1) {
        const uint32_t l = (uint32_t)__builtin_ctz(lanes);
        enter_lane(w, l);
        at[l] = address(w, i, i.from[0], l);
        check(at[l], 16, 16, range_of(i, at[l], 16, READ), READ);
        for (uint32_t e = 0; e < 4; e++)
            memcpy(&to[e][l], (const void *)(at[l] + 4 * e), 4);
    }
}

void store(struct warp &w, const struct instr &i, uint32_t lanes) {
    const uint32_t bytes = i.n * i.size;
    uint64_t at[LANES];
    enter(w, i);
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const uint32_t l = (uint32_t)__builtin_ctz(rest);
        enter_lane(w, l);
        at[l] = address(w, i, i.from[0], l);
        check(at[l], bytes, bytes, range_of(i, at[l], bytes, WRITE), WRITE);
        for (uint32_t e = 0; e < i.n; e++) {
            const uint64_t value = value_of(w, i, i.from[1 + e], l);
            memcpy((unsigned char *)at[l] + e * i.size, &value, i.size);
        }
    }
    if (counts_memory()) count(i, at, lanes, bytes);
}

// The kernel's argument, at a fixed offset: number = offset.
void load_argument(struct warp &w, const struct instr &i, uint32_t lanes) {
    for (uint32_t e = 0; e < i.n; e++) {
        const uint64_t x = load_element(arguments + i.number + e * i.size, i.size, i.is_signed);
        each(lanes, [&](uint32_t l) { set(w, i, e, l, x); });
    }
}

// Parameters of functions: from[0] and number are the members `at` and `size` of struct parameter.
void load_parameter(struct warp &w, const struct instr &i, uint32_t lanes) {
    for (uint32_t e = 0; e < i.n; e++)
        each(lanes, [&](uint32_t l) {
            const unsigned char *from = memory_of(w, i.from[0], i.number, l) + i.offset;
            set(w, i, e, l, load_element(from + e * i.size, i.size, i.is_signed));
        });
}
void store_parameter(struct warp &w, const struct instr &i, uint32_t lanes) {
    for (uint32_t e = 0; e < i.n; e++)
        each(lanes, [&](uint32_t l) {
            const uint64_t value = value_of(w, i, i.from[1 + e], l);
            memcpy(memory_of(w, i.from[0], i.number, l) + i.offset + e * i.size, &value, i.size);
        });
}

enum { ADD, MIN, MAX, AND, OR, XOR, EXCHANGE, COMPARE }; // ptx_decode.cc has the same order

// atom and red: number = operation, to[0] = old value if is_nc is not set
void atomic(struct warp &w, const struct instr &i, uint32_t lanes) {
    uint64_t at[LANES];
    uint8_t order[LANES];
    enter(w, i);
    permute(order, LANES);
    for (uint32_t k = 0; k < LANES; k++) {
        const uint32_t l = order[k];
        if (!(lanes >> l & 1)) continue;
        enter_lane(w, l);
        at[l] = address(w, i, i.from[0], l);
        const struct range *of = range_of(i, at[l], i.size, ATOMIC_ACCESS);
        check(at[l], i.size, i.size, of, ATOMIC_ACCESS);
        const uint64_t old = load_element((unsigned char *)at[l], i.size, i.is_signed),
                       x = value_of(w, i, i.from[1], l);
        const int64_t a = (int64_t)old, b = i.size == 4 ? (int64_t)(int32_t)x : (int64_t)x;
        uint64_t value = x;
        switch (i.number) {
        case ADD: value = old + x; break;
        case MIN: value = i.is_signed ? (a < b ? old : x) : (old < x ? old : x); break;
        case MAX: value = i.is_signed ? (a > b ? old : x) : (old > x ? old : x); break;
        case AND: value = old & x; break;
        case OR: value = old | x; break;
        case XOR: value = old ^ x; break;
        case COMPARE: value = old == x ? value_of(w, i, i.from[2], l) : old; break;
        default: break;
        }
        memcpy((void *)at[l], &value, i.size);
        if (of->kind < RANGE_SHARED) note_atomic();
        if (!i.is_nc) set(w, i, 0, l, old);
    }
    if (counts_memory()) count(i, at, lanes, i.size);
}

// from: destination, source, bytes to read if is_signed is set; size = bytes to write
void async_copy(struct warp &w, const struct instr &i, uint32_t lanes) {
    uint64_t to[LANES], from[LANES];
    uint32_t reading = 0;
    enter(w, i);
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const uint32_t l = (uint32_t)__builtin_ctz(rest);
        enter_lane(w, l);
        struct instr source = i, target = i;
        to[l] = (uint64_t)shared + (uint64_t)i.offset +
                (i.is_base_wide ? row<uint64_t>(w, i.from[0])[l] : row<uint32_t>(w, i.from[0])[l]);
        from[l] = row<uint64_t>(w, i.from[1])[l] + i.number;
        const uint32_t n = i.is_signed ? row<uint32_t>(w, i.from[2])[l] : i.size;
        if (n != 0 && n != i.size) fail("an asynchronous copy that reads a part of its bytes");
        source.space = GLOBAL;
        target.space = SHARED;
        source.range = target.range = NULL;
        const struct range *source_range =
            n ? range_of(source, from[l], i.size, READ) : global_memory.at(0).of;
        ree_emulator::async_copy(to[l], range_of(target, to[l], i.size, WRITE), from[l],
                                 source_range, i.size, n != 0);
        if (n) reading |= 1u << l;
    }
    if (!counts_memory()) return;
    count_shared(i, to, lanes, i.size);
    count_global(i, from, reading, i.size);
}

void async_commit(struct warp &w, const struct instr &i, uint32_t lanes) {
    enter(w, i);
    for (; lanes; lanes &= lanes - 1) {
        enter_lane(w, (uint32_t)__builtin_ctz(lanes));
        ree_emulator::async_commit();
    }
}

// number: groups that may remain
void async_wait(struct warp &w, const struct instr &i, uint32_t lanes) {
    enter(w, i);
    for (; lanes; lanes &= lanes - 1) {
        enter_lane(w, (uint32_t)__builtin_ctz(lanes));
        ree_emulator::async_wait(i.number);
    }
}

void fence(struct warp &w, const struct instr &i, uint32_t lanes) {
    enter(w, i);
    for (; lanes; lanes &= lanes - 1) {
        enter_lane(w, (uint32_t)__builtin_ctz(lanes));
        ree_emulator::fence();
    }
}

} // namespace ree_ptx
