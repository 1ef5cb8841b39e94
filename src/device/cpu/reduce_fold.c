// Reductions whose order is irrelevant (NUMERICS.md section 3): integer sums and products, which
// wrap; maxima and minima; and their positions. A position is that of the first (or last) element
// that compares equal to the extremum, so -0 and +0 are equal here. If there are NaNs, it is that
// of the first NaN.
#include "device/cpu/reduce.h"
#include "repops/scalar/ops.h"

// Number of terms that are searched for the extremum and then for its position, while they are in
// the cache.
#define POSITION_BLOCK 4096

static uint64_t lowest(uint32_t dtype) {
    switch (dtype) {
    case REE_I8: return (uint64_t)INT8_MIN;
    case REE_I32: return (uint64_t)INT32_MIN;
    case REE_I64: return (uint64_t)INT64_MIN;
    default: return 0;
    }
}

static uint64_t highest(uint32_t dtype) {
    switch (dtype) {
    case REE_I8: return INT8_MAX;
    case REE_U8: return UINT8_MAX;
    case REE_BOOL: return 1;
    case REE_I32: return INT32_MAX;
    case REE_U32: return UINT32_MAX;
    case REE_I64: return INT64_MAX;
    default: return UINT64_MAX;
    }
}

void ree_cpu_fold_start(uint32_t kind, uint32_t dtype, struct ree_cpu_fold *fold) {
    fold->index = -1;
    fold->value.u = 0;
    switch (kind) {
    case REE_REDUCE_PROD: fold->value.u = 1; break;
    case REE_REDUCE_MAX:
        if (dtype == REE_F32)
            fold->value.f = -INFINITY;
        else
            fold->value.u = lowest(dtype);
        break;
    case REE_REDUCE_MIN:
        if (dtype == REE_F32)
            fold->value.f = INFINITY;
        else
            fold->value.u = highest(dtype);
        break;
    default: break;
    }
}

// Folds n terms x of type T. V is the type of member m of union `value`. U is unsigned and has at
// least 32 bits, so that sums wrap without overflow.
#define DEFINE_FOLD(name, T, U, V, m)                                                              \
    static V max_##name(const T *x, uint32_t n) {                                                  \
        T best = x[0];                                                                             \
        for (uint32_t i = 1; i < n; i++)                                                           \
            best = x[i] > best ? x[i] : best;                                                      \
        return best;                                                                               \
    }                                                                                              \
    static V min_##name(const T *x, uint32_t n) {                                                  \
        T best = x[0];                                                                             \
        for (uint32_t i = 1; i < n; i++)                                                           \
            best = x[i] < best ? x[i] : best;                                                      \
        return best;                                                                               \
    }                                                                                              \
    static void fold_##name(uint32_t kind, struct ree_cpu_fold *fold, const T *x, uint32_t n) {    \
        U acc = (U)fold->value.u;                                                                  \
        switch (kind) {                                                                            \
        case REE_REDUCE_SUM:                                                                       \
            for (uint32_t i = 0; i < n; i++)                                                       \
                acc += (U)(V)x[i];                                                                 \
            fold->value.u = acc;                                                                   \
            return;                                                                                \
        case REE_REDUCE_SUM_SQ:                                                                    \
            for (uint32_t i = 0; i < n; i++)                                                       \
                acc += (U)(V)x[i] * (U)(V)x[i];                                                    \
            fold->value.u = acc;                                                                   \
            return;                                                                                \
        case REE_REDUCE_SUM_ABS:                                                                   \
            for (uint32_t i = 0; i < n; i++)                                                       \
                acc += x[i] < (T)1 ? (U)0 - (U)(V)x[i] : (U)(V)x[i]; /* also for unsigned x */     \
            fold->value.u = acc;                                                                   \
            return;                                                                                \
        case REE_REDUCE_PROD:                                                                      \
            for (uint32_t i = 0; i < n; i++)                                                       \
                acc *= (U)(V)x[i];                                                                 \
            fold->value.u = acc;                                                                   \
            return;                                                                                \
        case REE_REDUCE_MAX: {                                                                     \
            V best = max_##name(x, n);                                                             \
            if (best > fold->value.m) fold->value.m = best;                                        \
            return;                                                                                \
        }                                                                                          \
        default: {                                                                                 \
            V best = min_##name(x, n);                                                             \
            if (best < fold->value.m) fold->value.m = best;                                        \
        }                                                                                          \
        }                                                                                          \
    }                                                                                              \
    static bool takes_##name(uint32_t kind, bool last, const struct ree_cpu_fold *fold, V value) { \
        if (fold->index < 0) return true;                                                          \
        V best = fold->value.m;                                                                    \
        return (last && value == best) ||                                                          \
               (kind == REE_REDUCE_ARGMAX ? value > best : value < best);                          \
    }                                                                                              \
    static void position_##name(uint32_t kind, bool last, struct ree_cpu_fold *fold, const T *x,   \
                                uint32_t first, uint32_t n) {                                      \
        V value = kind == REE_REDUCE_ARGMAX ? max_##name(x, n) : min_##name(x, n);                 \
        if (!takes_##name(kind, last, fold, value)) return;                                        \
        uint32_t i = last ? n - 1 : 0;                                                             \
        while (x[i] != value)                                                                      \
            i += last ? UINT32_MAX : 1; /* down or up; the value exists */                         \
        fold->value.m = value;                                                                     \
        fold->index = (int64_t)first + i;                                                          \
    }

DEFINE_FOLD(i8, int8_t, uint32_t, int64_t, i)
DEFINE_FOLD(u8, uint8_t, uint32_t, uint64_t, u)
DEFINE_FOLD(i32, int32_t, uint32_t, int64_t, i)
DEFINE_FOLD(u32, uint32_t, uint32_t, uint64_t, u)
DEFINE_FOLD(i64, int64_t, uint64_t, int64_t, i)
DEFINE_FOLD(u64, uint64_t, uint64_t, uint64_t, u)

static bool takes_f32(uint32_t kind, bool last, const struct ree_cpu_fold *fold, float value) {
    if (fold->index < 0) return true;
    float best = fold->value.f;
    if (best != best) return false;
    return value != value || (last && value == best) ||
           (kind == REE_REDUCE_ARGMAX ? value > best : value < best);
}

static void position_f32(const struct ree_cpu_reduce_plan *plan, struct ree_cpu_fold *fold,
                         const float *x, uint32_t first, uint32_t n) {
    uint32_t kind = plan->params->kind;
    bool last = plan->params->select_last;
    float value = ree_float(kind == REE_REDUCE_ARGMAX ? plan->expr->max_f32(n, x)
                                                      : plan->expr->min_f32(n, x));
    if (!takes_f32(kind, last, fold, value)) return;
    uint32_t i = 0;
    if (value != value) {
        while (x[i] == x[i])
            i++;
    } else if (last) {
        i = n - 1;
        while (x[i] != value)
            i--;
    } else {
        while (x[i] != value)
            i++;
    }
    fold->value.f = value;
    fold->index = (int64_t)first + i;
}

static void extreme_f32(const struct ree_cpu_reduce_plan *plan, struct ree_cpu_fold *fold,
                        const float *x, uint32_t n) {
    uint32_t best = ree_bits(fold->value.f);
    if (plan->params->kind == REE_REDUCE_MAX)
        best = ree_op_max_f32(best, plan->expr->max_f32(n, x));
    else
        best = ree_op_min_f32(best, plan->expr->min_f32(n, x));
    fold->value.f = ree_float(best);
}

static bool is_position(uint32_t kind) {
    return kind == REE_REDUCE_ARGMAX || kind == REE_REDUCE_ARGMIN;
}

#define TERMS_OF(dtype, name, T)                                                                   \
    case dtype:                                                                                    \
        if (position)                                                                              \
            position_##name(kind, last, fold, (const T *)terms + i, first + i, m);                 \
        else                                                                                       \
            fold_##name(kind, fold, (const T *)terms + i, m);                                      \
        break;

void ree_cpu_fold_terms(const struct ree_cpu_reduce_plan *plan, struct ree_cpu_fold *fold,
                        const void *terms, uint32_t first, uint32_t n) {
    uint32_t kind = plan->params->kind;
    bool last = plan->params->select_last, position = is_position(kind);
    for (uint32_t i = 0, m; i < n; i += m) {
        m = n - i < POSITION_BLOCK ? n - i : POSITION_BLOCK;
        switch (plan->params->dtype) {
        case REE_F32:
            if (position)
                position_f32(plan, fold, (const float *)terms + i, first + i, m);
            else
                extreme_f32(plan, fold, (const float *)terms + i, m);
            break;
            TERMS_OF(REE_I8, i8, int8_t)
            TERMS_OF(REE_U8, u8, uint8_t)
            TERMS_OF(REE_BOOL, u8, uint8_t)
            TERMS_OF(REE_I32, i32, int32_t)
            TERMS_OF(REE_U32, u32, uint32_t)
            TERMS_OF(REE_I64, i64, int64_t)
            TERMS_OF(REE_U64, u64, uint64_t)
        }
    }
}

void ree_cpu_fold_join(const struct ree_cpu_reduce_plan *plan, struct ree_cpu_fold *fold,
                       const struct ree_cpu_fold *later) {
    uint32_t kind = plan->params->kind, dtype = plan->params->dtype;
    bool last = plan->params->select_last;
    bool is_signed = dtype == REE_I8 || dtype == REE_I32 || dtype == REE_I64;
    switch (kind) {
    case REE_REDUCE_PROD: fold->value.u *= later->value.u; return;
    case REE_REDUCE_MAX:
    case REE_REDUCE_MIN:
        if (dtype == REE_F32) {
            extreme_f32(plan, fold, &later->value.f, 1);
        } else {
            bool less = is_signed ? later->value.i < fold->value.i : later->value.u < fold->value.u;
            bool more = is_signed ? later->value.i > fold->value.i : later->value.u > fold->value.u;
            if (kind == REE_REDUCE_MAX ? more : less) fold->value = later->value;
        }
        return;
    case REE_REDUCE_ARGMAX:
    case REE_REDUCE_ARGMIN:
        if (later->index < 0) return;
        if (dtype == REE_F32 ? takes_f32(kind, last, fold, later->value.f)
            : is_signed      ? takes_i64(kind, last, fold, later->value.i)
                             : takes_u64(kind, last, fold, later->value.u))
            *fold = *later;
        return;
    default: fold->value.u += later->value.u;
    }
}

void ree_cpu_fold_store(const struct ree_cpu_reduce_plan *plan, const struct ree_cpu_fold *fold,
                        uint32_t o) {
    if (is_position(plan->params->kind)) {
        ((int64_t *)plan->out)[o] = fold->index < 0 ? 0 : fold->index;
        return;
    }
    switch (plan->size) {
    case 1: ((uint8_t *)plan->out)[o] = (uint8_t)fold->value.u; break;
    case 4:
        ((ree_any_u32 *)plan->out)[o] =
            plan->params->dtype == REE_F32
                ? ree_op_max_f32(ree_bits(fold->value.f), ree_bits(fold->value.f))
                : (uint32_t)fold->value.u;
        break;
    default: ((uint64_t *)plan->out)[o] = fold->value.u;
    }
}
