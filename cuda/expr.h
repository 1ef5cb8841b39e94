// Interpreter of expressions (src/repops/repop.h, struct ree_expr): out[i] = expr(i), NUMERICS.md
// sections 1 and 4. All threads of a launch execute the same instruction. Each thread decodes it
// once for its WIDTH (1 or 4) elements.
//
// The result of an instruction stays in registers if only the next instruction uses it. All other
// results, and the operands, are stored in slots in shared memory with the layout
// [slot][element][thread], so that neighbouring threads use different banks.
#ifndef REE_CUDA_EXPR_H
#define REE_CUDA_EXPR_H

#include "kernel.h"

// The operations that a kernel supports. Fewer operations need fewer registers. The encoder uses
// REE_EXPR_ARITHMETIC if ree_cuda_expr_is_arithmetic (src/device/cuda/encode.h) is true.
//
//   REE_EXPR_ARITHMETIC  operations on 32-bit values, except REE_CUDA_LONG_OPS
//   REE_EXPR_ALL         all operations except REE_HOST_MAP_OPS; values have 64 bits
enum ree_expr_ops { REE_EXPR_ARITHMETIC, REE_EXPR_ALL };

template <int OPS> struct ree_expr_value { typedef u32 type; };
template <> struct ree_expr_value<REE_EXPR_ALL> { typedef u64 type; };

// C types of the value classes of map_ops.def: W has 32 bits, D has 64; _ stands for no argument.
#define REE_CLASS_TYPE_W u32
#define REE_CLASS_TYPE_D u64
#define REE_CLASS_TYPE__ u32
#define REE_CLASS_IS_WIDE_W 0
#define REE_CLASS_IS_WIDE_D 1
#define REE_CLASS_IS_WIDE__ 0

#define REE_APPLY_1(name, A, B, C) ree_op_##name((A)args[0][j])
#define REE_APPLY_2(name, A, B, C) ree_op_##name((A)args[0][j], (B)args[1][j])
#define REE_APPLY_3(name, A, B, C) ree_op_##name((A)args[0][j], (B)args[1][j], (C)args[2][j])

template <u32 OP> struct ree_expr_is_long { static constexpr bool value = false; };
#define REE_EXPR_LONG(name)                                                                        \
    template <> struct ree_expr_is_long<REE_MAP_##name> { static constexpr bool value = true; };
REE_CUDA_LONG_OPS(REE_EXPR_LONG)

// `value` is true if a kernel for the operations OPS (enum ree_expr_ops) supports operation OP.
// WIDE: the result or an argument of the operation has 64 bits.
template <int OPS, u32 OP, bool WIDE> struct ree_expr_has {
    static constexpr bool value = OPS == REE_EXPR_ALL || (!WIDE && !ree_expr_is_long<OP>::value);
};

// Applies operation `op` to the WIDTH elements of a thread: out[j] = op(args[0][j], ...). The
// arguments are converted to the classes that the operation requires.
template <int OPS, class V, int WIDTH>
REE_DEVICE void ree_expr_apply(u32 op, const V (&args)[3][WIDTH], V (&out)[WIDTH]) {
    switch (op) {
#define MAP_OP(name, n_args, result, A, B, C)                                                      \
    case REE_MAP_##name:                                                                           \
        if constexpr (ree_expr_has<OPS, REE_MAP_##name,                                            \
                                   (REE_CLASS_IS_WIDE_##result || REE_CLASS_IS_WIDE_##A ||         \
                                    REE_CLASS_IS_WIDE_##B || REE_CLASS_IS_WIDE_##C)>::value) {     \
            REE_UNROLL                                                                             \
            for (int j = 0; j < WIDTH; j++)                                                        \
                out[j] = (V)REE_APPLY_##n_args(name, REE_CLASS_TYPE_##A, REE_CLASS_TYPE_##B,       \
                                               REE_CLASS_TYPE_##C);                                \
        }                                                                                          \
        break;
#define REE_DEVICE_MAP_OPS
#include "repops/map_ops.def"
#undef REE_DEVICE_MAP_OPS
    default: break;
    }
}

// Returns the value of an operand for element i of the expression: an element of its tensor, or,
// for an iota operand, the index offset + sum(coordinate * stride).
template <class V>
REE_DEVICE V ree_expr_fetch(const struct ree_cuda_header &h, const struct ree_cuda_expr &e,
                            u32 first_operand, const struct ree_cuda_expr_operand &operand, u32 i) {
    u32 at = (u32)operand.offset;
    if (operand.access == REE_CUDA_LINEAR) {
        at += i;
    } else if (operand.access == REE_CUDA_STRIDED) {
        u32 rest = i;
        REE_NO_UNROLL
        for (u32 d = e.rank; d-- > 0;) {
            u32 coordinate, q = ree_divide(rest, e.dims[d], &coordinate);
            at += coordinate * (u32)operand.strides[d];
            rest = q;
        }
    }
    if (operand.kind == REE_EXPR_IOTA) return (V)(int64_t)(int32_t)at;
    u32 index = first_operand + operand.tensor;
    if constexpr (sizeof(V) == 4)
        if (operand.dtype == REE_F32 || operand.dtype == REE_I32 || operand.dtype == REE_U32)
            return ree_in<u32>(h, index)[at];
    return (V)ree_load_any(h, index, operand.dtype, at);
}

// Returns the bits to store for a value of type dtype: a NaN of float32 or float64 becomes
// canonical.
template <class V> REE_DEVICE V ree_expr_finish(u32 dtype, V value) {
    if (dtype == REE_F32) return ree_canon((u32)value);
    if constexpr (sizeof(V) == 8)
        if (dtype == REE_F64) return ree_f64_canon(value);
    return value;
}

// Evaluates the expression for `n` (at most WIDTH) elements from index `first` on.
// - accumulators: for an epilogue, the product's results for these elements; otherwise not read.
// - slots: e.n_slots * WIDTH * n_threads values of shared memory. This thread uses every
//   n_threads-th value, starting at `thread`.
template <int OPS, int WIDTH, class Slots>
REE_DEVICE void ree_expr_run(const struct ree_cuda_header &h, const struct ree_cuda_expr &e,
                             u32 first_operand, u32 first, u32 n, bool epilogue,
                             const typename ree_expr_value<OPS>::type *accumulators, Slots slots,
                             u32 thread, u32 n_threads, typename ree_expr_value<OPS>::type *out) {
    typedef typename ree_expr_value<OPS>::type V;
    V last[WIDTH];
#define REE_SLOT(s, j) slots[((u32)(s)*WIDTH + (j)) * n_threads + thread]
    REE_UNROLL
    for (int j = 0; j < WIDTH; j++)
        last[j] = epilogue ? accumulators[j] : 0;
    if (epilogue && e.n_instrs > 0) {
        REE_UNROLL
        for (int j = 0; j < WIDTH; j++)
            REE_SLOT(e.n_operands, j) = last[j];
    }
    REE_NO_UNROLL
    for (u32 o = 0; o < e.n_operands; o++) {
        const struct ree_cuda_expr_operand &operand = e.operands[o];
        V fetched[WIDTH];
        bool done = false;
        if constexpr (sizeof(V) == 4 && WIDTH == 4) {
            if (operand.kind == REE_EXPR_TENSOR && operand.access == REE_CUDA_LINEAR && n == 4 &&
                (operand.dtype == REE_F32 || operand.dtype == REE_I32 ||
                 operand.dtype == REE_U32)) {
                auto x = ree_in<u32>(h, first_operand + operand.tensor);
                u32 at = (u32)operand.offset + first;
                if (ree_aligned(x, at, 16)) {
                    uint4 four = ree_load<uint4>(x, at);
                    fetched[0] = four.x, fetched[1] = four.y;
                    fetched[2] = four.z, fetched[3] = four.w;
                    done = true;
                }
            }
        }
        if (!done) {
            REE_UNROLL
            for (int j = 0; j < WIDTH; j++)
                fetched[j] = (u32)j < n
                                 ? ree_expr_fetch<V>(h, e, first_operand, operand, first + (u32)j)
                                 : 0;
        }
        REE_UNROLL
        for (int j = 0; j < WIDTH; j++)
            REE_SLOT(o, j) = fetched[j];
    }
    REE_NO_UNROLL
    for (u32 i = 0; i < e.n_instrs; i++) {
        const struct ree_cuda_instr instr = e.instrs[i];
        V args[3][WIDTH];
        REE_UNROLL
        for (int a = 0; a < 3; a++) {
            u32 from = instr.args[a];
            if (from == REE_CUDA_ARG_LAST) {
                REE_UNROLL
                for (int j = 0; j < WIDTH; j++)
                    args[a][j] = last[j];
            } else if (from & REE_CUDA_ARG_CONSTANT) {
                V constant = (V)e.constants[from & ~REE_CUDA_ARG_CONSTANT];
                REE_UNROLL
                for (int j = 0; j < WIDTH; j++)
                    args[a][j] = constant;
            } else {
                REE_UNROLL
                for (int j = 0; j < WIDTH; j++)
                    args[a][j] = REE_SLOT(from, j);
            }
        }
        ree_expr_apply<OPS, V, WIDTH>(instr.op, args, last);
        if (instr.to != REE_CUDA_NOWHERE) {
            REE_UNROLL
            for (int j = 0; j < WIDTH; j++)
                REE_SLOT(instr.to, j) = last[j];
        }
    }
    REE_UNROLL
    for (int j = 0; j < WIDTH; j++) {
        V value = last[j];
        if (e.result != REE_CUDA_ARG_LAST)
            value = e.result & REE_CUDA_ARG_CONSTANT
                        ? (V)e.constants[e.result & ~REE_CUDA_ARG_CONSTANT]
                        : REE_SLOT(e.result, j);
        out[j] = ree_expr_finish<V>(e.out_dtype, value);
    }
#undef REE_SLOT
}

#endif
