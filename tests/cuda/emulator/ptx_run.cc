// Runs a kernel: one thread after the other, instruction by instruction.
#include "ptx_code.h"

#include "device/cuda/kernel_interface.h"
#include "repops/scalar/ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

using namespace ree_ptx;

namespace {

uint64_t truncated(uint64_t x, enum type type) {
    size_t bits = 8 * bytes_of(type);
    return bits == 64 ? x : x & ((UINT64_C(1) << bits) - 1);
}
int64_t extended(uint64_t x, enum type type) {
    size_t unused = 64 - 8 * bytes_of(type);
    return (int64_t)(x << unused) >> unused;
}

float as_float(uint64_t bits) {
    return ree_float((uint32_t)bits);
}
double as_double(uint64_t bits) {
    return ree_from_double_bits(bits);
}
// Returns the bits of x; a NaN gets the hardware's bits.
uint64_t of_float(float x) {
    return x == x ? ree_bits(x) : 0x7FFFFFFFu;
}
uint64_t of_double(double x) {
    return x == x ? ree_double_bits(x) : UINT64_C(0xFFF8000000000000);
}

struct machine {
    const struct ree_emulator_ptx *ptx;
    const unsigned char *args;
    std::vector<uint64_t> registers;
    uint64_t call_args[3], result;
    uint32_t block, block_size, thread;
    char *error;
    size_t error_size;
};

uint64_t value_of(const struct machine *m, const struct operand &o) {
    switch (o.kind) {
    case operand::REGISTER: return m->registers[o.at];
    case operand::BLOCK: return m->block;
    case operand::BLOCK_SIZE: return m->block_size;
    case operand::THREAD: return m->thread;
    default: return o.number;
    }
}

// min.f32 and max.f32: of a NaN and a number, the result is the number; -0 is less than +0.
float min_of(float a, float b) {
    if (a != a) return b;
    if (b != b) return a;
    if (a == b) return ree_bits(a) & 0x80000000u ? a : b;
    return a < b ? a : b;
}
float max_of(float a, float b) {
    if (a != a) return b;
    if (b != b) return a;
    if (a == b) return ree_bits(a) & 0x80000000u ? b : a;
    return a > b ? a : b;
}

template <class T> bool compare(enum condition condition, T a, T b) {
    switch (condition) {
    case EQ: return a == b;
    case NE: return a != b;
    case LT: return a < b;
    case LE: return a <= b;
    case GT: return a > b;
    case GE: return a >= b;
    default: return a != a || b != b;
    }
}

bool set_predicate(const struct instr &i, uint64_t a, uint64_t b) {
    if (i.type == F32) return compare(i.condition, as_float(a), as_float(b));
    if (i.type == F64) return compare(i.condition, as_double(a), as_double(b));
    if (is_signed(i.type)) return compare(i.condition, extended(a, i.type), extended(b, i.type));
    return compare(i.condition, truncated(a, i.type), truncated(b, i.type));
}

uint64_t float_op(enum action action, float a, float b, float c) {
    switch (action) {
    case ADD: return of_float(a + b);
    case SUB: return of_float(a - b);
    case MUL_LO: return of_float(a * b);
    case DIV: return of_float(a / b);
    case FMA: return of_float(fmaf(a, b, c));
    case SQRT: return of_float(sqrtf(a));
    case MIN: return of_float(min_of(a, b));
    default: return of_float(max_of(a, b));
    }
}
uint64_t double_op(enum action action, double a, double b, double c) {
    switch (action) {
    case ADD: return of_double(a + b);
    case SUB: return of_double(a - b);
    case MUL_LO: return of_double(a * b);
    case DIV: return of_double(a / b);
    case FMA: return of_double(fma(a, b, c));
    default: return of_double(sqrt(a));
    }
}

uint64_t integer_op(const struct instr &i, uint64_t a, uint64_t b, uint64_t c) {
    const int64_t x = extended(a, i.type), y = extended(b, i.type);
    const uint64_t u = truncated(a, i.type), v = truncated(b, i.type);
    const uint64_t bits = 8 * bytes_of(i.type);
    switch (i.action) {
    case MOV: return a;
    case ADD: return a + b;
    case SUB: return a - b;
    case MUL_LO: return a * b;
    case MUL_HI: return u * v >> 32;
    case MUL_WIDE: return u * v; // 64 bits, not truncated below
    case MAD_LO: return a * b + c;
    case NEG: return 0 - a;
    case ABS: return x < 0 ? 0 - a : a;
    case MIN: return is_signed(i.type) ? (x < y ? a : b) : (u < v ? a : b);
    case MAX: return is_signed(i.type) ? (x > y ? a : b) : (u > v ? a : b);
    case AND: return a & b;
    case OR: return a | b;
    case XOR: return a ^ b;
    case NOT: return ~a;
    case SHL: return (uint32_t)b >= bits ? 0 : a << (uint32_t)b;
    case SHR: return (uint32_t)b >= bits ? 0 : u >> (uint32_t)b;
    case BFE: { // b: first bit, c: number of bits
        uint64_t field = u >> b & ((UINT64_C(1) << c) - 1);
        bool negative = i.type == S32 && field >> (c - 1) & 1;
        return negative ? field | ~UINT64_C(0) << c : field;
    }
    default: abort();
    }
}

uint64_t convert(const struct instr &i, uint64_t a) {
    if (i.from == F32 && i.type == F32) {
        float x = as_float(a);
        return of_float(i.rounding == RMI   ? floorf(x)
                        : i.rounding == RPI ? ceilf(x)
                        : i.rounding == RZI ? truncf(x)
                                            : rintf(x));
    }
    if (i.from == F32 && i.type == F64) return of_double((double)as_float(a));
    if (i.from == F64) return of_float((float)as_double(a));
    if (i.from == F16) return of_float(as_float(ree_soft_f16_to_f32((uint32_t)a & 0xFFFFu)));
    if (i.type == F16)
        return as_float(a) == as_float(a) ? ree_soft_f32_to_f16((uint32_t)a) : 0x7FFFu;
    if (i.type == F32) { // from an integer
        if (i.from == S32) return of_float((float)(int32_t)a);
        if (i.from == U32) return of_float((float)(uint32_t)a);
        if (i.from == S64) return of_float((float)(int64_t)a);
        return of_float((float)a);
    }
    if (i.from == F32) { // to 32 bits, saturating
        double x = trunc((double)as_float(a));
        double low = i.type == S32 ? -2147483648.0 : 0,
               high = i.type == S32 ? 2147483647.0 : 4294967295.0;
        if (x != x) return 0;
        x = x < low ? low : x > high ? high : x;
        return i.type == S32 ? (uint64_t)(int64_t)x : (uint64_t)x;
    }
    return is_signed(i.from) ? (uint64_t)extended(a, i.from) : truncated(a, i.from);
}

// Returns the host memory of an access, or NULL if it is outside the kernel's operands.
void *memory_of(struct machine *m, const struct instr &i, bool writes) {
    const struct ree_cuda_header *h = (const struct ree_cuda_header *)m->args;
    const uint64_t size = i.n * bytes_of(i.type);
    const uint64_t at = m->registers[i.args[0].at] + (uint64_t)i.offset;
    const char *what = "outside the operands";
    if (at % size != 0) what = "at an address that is not a multiple of its size";
    for (int o = 0; o < REE_MAX_OPERANDS && at % size == 0; o++) {
        // A read may cover the whole last word of an operand.
        uint64_t n = writes ? h->sizes[o] : (h->sizes[o] + 3) / 4 * 4;
        if (h->operands[o] && at >= h->operands[o] && at - h->operands[o] <= n &&
            n - (at - h->operands[o]) >= size)
            return (void *)at;
    }
    snprintf(m->error, m->error_size,
             "kernel %s, line %d, block %u, thread %u: %s of %llu bytes %s", m->ptx->name.c_str(),
             i.line, m->block, m->thread, writes ? "a store" : "a load", (unsigned long long)size,
             what);
    return NULL;
}

bool access(struct machine *m, const struct instr &i) {
    unsigned char *memory = (unsigned char *)memory_of(m, i, i.action == STORE);
    const size_t size = bytes_of(i.type);
    if (!memory) return false;
    for (uint32_t e = 0; e < i.n; e++) {
        uint64_t &r = m->registers[i.to[e].at];
        if (i.action == STORE) {
            memcpy(memory + e * size, &r, size);
            continue;
        }
        uint64_t x = 0;
        memcpy(&x, memory + e * size, size);
        r = is_signed(i.type) ? (uint64_t)extended(x, i.type) : x;
        if (size < 8) r = (uint32_t)r; // loaded into a 32-bit register
    }
    return true;
}

// Executes one instruction that is not a branch; returns false after an error.
bool step(struct machine *m, const struct instr &i) {
    const uint64_t a = value_of(m, i.args[0]), b = value_of(m, i.args[1]),
                   c = value_of(m, i.args[2]);
    uint64_t &to = m->registers[i.to[0].at];
    switch (i.action) {
    case LOAD:
    case STORE: return access(m, i);
    case LOAD_PARAM:
        to = 0;
        memcpy(&to, m->args + i.offset, bytes_of(i.type));
        return true;
    case STORE_ARG: m->call_args[i.offset] = truncated(to, i.type); return true;
    case CALL: m->result = i.function(m->call_args); return true;
    case LOAD_RESULT: to = truncated(m->result, i.type); return true;
    case SETP: to = set_predicate(i, a, b); return true;
    case SELP: to = truncated(c ? a : b, i.type); return true;
    case CVT:
        to = convert(i, a);
        if (bytes_of(i.type) < 8) to = truncated(to, i.type);
        return true;
    default: break;
    }
    if (i.type == F32)
        to = float_op(i.action, as_float(a), as_float(b), as_float(c));
    else if (i.type == F64)
        to = double_op(i.action, as_double(a), as_double(b), as_double(c));
    else
        to = i.action == MUL_WIDE ? integer_op(i, a, b, c)
                                  : truncated(integer_op(i, a, b, c), i.type);
    return true;
}

bool run_thread(struct machine *m) {
    const std::vector<struct instr> &code = m->ptx->code;
    for (size_t at = 0; at < code.size();) {
        const struct instr &i = code[at++];
        if (i.is_guarded && (m->registers[i.guard] != 0) == i.if_not) continue;
        if (i.action == RET) return true;
        if (i.action == BRA)
            at = i.target;
        else if (!step(m, i))
            return false;
    }
    snprintf(m->error, m->error_size, "kernel %s has no end", m->ptx->name.c_str());
    return false;
}

} // namespace

int ree_emulator_ptx_run(const struct ree_emulator_ptx *ptx, uint32_t grid, uint32_t block,
                         const void *args, char *error, size_t size) {
    struct machine m = {ptx, (const unsigned char *)args, {}, {}, 0, 0, block, 0, error, size};
    for (m.block = 0; m.block < grid; m.block++)
        for (m.thread = 0; m.thread < block; m.thread++) {
            // Registers that a thread has not written must not have a usable value.
            m.registers.assign(ptx->n_registers, UINT64_C(0xCDCDCDCDCDCDCDCD));
            if (!run_thread(&m)) return -1;
        }
    return 0;
}
