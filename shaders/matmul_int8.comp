#version 460
// matmul of blockwise activations (int8) and blockwise weights, the block-dot of NUMERICS.md
// section 3:
//
//     acc = fma(I, da * db, acc), I = the sum of a * (q - z) over a run of terms, exact
//
// a is an element of A; q is a weight's number and z its zero point; da and db are the scales.
//
// matmul_int8_pack.comp has arranged A by runs. If B_PACKED, it has arranged B too, so that
// neighbouring threads read neighbouring words. A thread computes TM x 4 results in registers; its
// columns are one workgroup size apart. It loads a word of B once for all of its rows.
//
// STAGE 0: a thread computes all chunks. STAGE 1: it computes one chunk and stores the results in
// scratch memory. STAGE 2 adds these in ascending order, one thread per output.
//
//     TM     rows per thread: 1 or 4
//     DOT8   uses the device's four-byte dot product; otherwise multiplications
#include "ree.glsl"
#include "expr.glsl"
#include "dot8.glsl"
#include "matmul.glsl"

layout(constant_id = 27) const bool HAS_EPILOGUE = false;
layout(constant_id = 28) const uint A_BLOCK = 32;
layout(constant_id = 29) const uint B_BLOCK = 32;
layout(constant_id = 30) const uint B_BITS = 4;
layout(constant_id = 31) const bool HAS_ZERO_POINTS = false;
layout(constant_id = 32) const bool B_PACKED = false;
layout(constant_id = 33) const uint STAGE = 0;
#include "matmul_int8.glsl"

const uint N_FACTORS = HAS_ZERO_POINTS ? 5u : 4u; // operands before the epilogue's tensors
// Numbers of 8 bits are multiplied as signed bytes, q - 128, and 128 is subtracted from z too.
// Numbers of 4 bits are below 128, so they are signed bytes already. The sum of a * z over a run is
// z times the sum of a, and is subtracted once per run.
const uint Z_SHIFT = B_BITS == 8u ? 128u : 0u;
const bool HAS_SHIFT = HAS_ZERO_POINTS || B_BITS == 4u; // otherwise z - 128 is 0
// The integer sum starts at BIAS, the bits of the float 1.5 * 2^23. The bits of the float
// 1.5 * 2^23 + I are BIAS + I if |I| is below 2^22, so a subtraction converts I. Runs of 256 terms
// of 8 bits may have larger sums: these start at 0 and are converted in integers.
const bool IS_BIASED = RUN * B_BITS < 2048u;
const uint BIAS = IS_BIASED ? 0x4B400000u : 0u;
const uint STEP = RUN_WORDS < 4u ? 2u : 4u; // words of a column that are loaded together
const bool IS_NATIVE = REE_FORM_FMA == REE_NATIVE && REE_FORM_ADD == REE_NATIVE &&
                       REE_FORM_MUL == REE_NATIVE;

#define TN 4u
#if TM == 4
#define ROWS(X) X(0) X(1) X(2) X(3)
#else
#define ROWS(X) X(0)
#endif

ReeExprState epilogue;
ReeWords out_words;

void store(const uint index, const uint sum) {
    uint bits = sum == REE_SIGN ? 0u : ree_canon(sum); // + 0: -0 becomes +0
    if (HAS_EPILOGUE) {
        uvec2 value = ree_expr_result(ree_expr_epilogue(epilogue, index, bits));
        ree_store(out_words, EXPR_OUT_DTYPE, index, value);
    } else {
        out_words.w[index] = bits;
    }
}

void add_chunks(const uint base, const uint index, const uint n_outputs, const uint n_chunks) {
    ReeWords chunks = ree_scratch();
    uint at = base + index, sum = chunks.w[at];
    for (uint c = 1u; c < n_chunks; c++) sum = ree_add(sum, chunks.w[at + c * n_outputs]);
    store(index, sum);
}

// Returns the float of an integer sum that started at BIAS.
uint to_float(const uint sum) {
    if (IS_BIASED) return ree_sub(sum, BIAS);
    return ree_soft_i32_to_f32(sum);
}
uvec4 to_floats(const uvec4 sum) {
    return uvec4(to_float(sum.x), to_float(sum.y), to_float(sum.z), to_float(sum.w));
}

// Memory as units of four words: ReeQuads for scratch memory, which is aligned to 16 bytes;
// ReeNumbers for operands, which are aligned to 4.
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer ReeQuads {
    uvec4 w[];
};
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer ReeNumbers {
    uvec4 w[];
};
// Returns STEP words of B, from word `at` on, a multiple of STEP. address: of B's operand or, if
// B_PACKED, of scratch memory.
uvec4 load_b(const uvec2 address, const uint at) {
    if (STEP == 2u) return uvec4(ReePairs(address).w[at / 2u], 0u, 0u);
    if (B_PACKED) return ReeQuads(address).w[at / 4u];
    return ReeNumbers(address).w[at / 4u];
}

uvec4 load_words(const ReeWords words, const uvec4 at) {
    return uvec4(words.w[at.x], words.w[at.y], words.w[at.z], words.w[at.w]);
}
// Returns v with `bits` in component c.
uvec4 replace(const uvec4 v, const uint c, const uint bits) {
    return mix(v, uvec4(bits), equal(uvec4(c), uvec4(0u, 1u, 2u, 3u)));
}

// Computes rows i0, i0 + 1, ... of this thread's columns j0, j0 + lanes, ..., from chunk
// `first_chunk` to chunk `end` - 1.
void tile_run(const Params p, const Int8Layout s, const uint i0, const uint j0,
              const uint first_chunk, const uint end) {
    uint m = p.m, n = p.n, lanes = gl_WorkGroupSize.x, n_outputs = m * n;
    // A row or column past the end is computed as the last one and not stored.
    uvec4 columns = min(j0 + lanes * uvec4(0u, 1u, 2u, 3u), uvec4(n - 1u));
    uvec2 scratch = ree_block().scratch, b = B_PACKED ? scratch : ree_block().operands[1];
    ReeWords words = ReeWords(scratch);
    ReeWords b_scales = ReeWords(B_PACKED ? scratch : ree_block().operands[2]);
    ReeWords zeros = ree_operand(3); // used only with HAS_ZERO_POINTS and without B_PACKED
    uvec4 columns_at = columns * s.column_words, blocks_at = columns * s.b_blocks;
#define DECLARE(i)                                                                                 \
    uvec4 total##i = uvec4(0u), acc##i;                                                            \
    uint row##i = min(i0 + uint(i), m - 1u) * s.n_runs;
    ROWS(DECLARE)
    [[dont_unroll]] for (uint chunk = first_chunk; chunk < end; chunk++) {
        const uint first_run = chunk * (REE_CHUNK / RUN);
        const uint end_run = min(first_run + REE_CHUNK / RUN, s.n_runs);
#define CLEAR(i) acc##i = uvec4(0u);
        ROWS(CLEAR)
        [[dont_unroll]] for (uint run = first_run; run < end_run; run++) {
            uvec4 at = B_PACKED ? run * n + columns : blocks_at + run / (B_BLOCK / RUN);
            uvec4 scales = load_words(b_scales, B_PACKED ? at + s.b_scales : at);
            uvec4 shifts = uvec4(8u); // the zero points minus Z_SHIFT
            if (HAS_ZERO_POINTS && B_PACKED)
                shifts = load_words(words, at + s.b_zeros) - Z_SHIFT;
            else if (HAS_ZERO_POINTS)
                shifts = uvec4(ree_load8(zeros, at.x), ree_load8(zeros, at.y),
                               ree_load8(zeros, at.z), ree_load8(zeros, at.w)) - Z_SHIFT;
#define BEGIN(i)                                                                                   \
    uvec2 pair##i = ree_load64(words, s.a_pairs / 2u + row##i + run); /* sum, scale */             \
    uvec4 sum##i = uvec4(BIAS);                                                                    \
    if (HAS_SHIFT) sum##i -= shifts * pair##i.x;
            ROWS(BEGIN)
            for (uint w = 0u; w < RUN_WORDS; w += STEP) {
                uvec4 from = (B_PACKED ? at * RUN_WORDS + s.b : columns_at + run * RUN_WORDS) + w;
                uvec4 q0 = load_b(b, from.x), q1 = load_b(b, from.y), q2 = load_b(b, from.z),
                      q3 = load_b(b, from.w);
#define LOAD_A(i)                                                                                  \
    uint from##i = (row##i + run) * (RUN / 4u) + w * (8u / B_BITS);                                \
    uvec4 a##i = ReeQuads(scratch).w[from##i / 4u], high##i = a##i;                                \
    if (B_BITS == 4u && STEP == 4u) high##i = ReeQuads(scratch).w[from##i / 4u + 1u];
                ROWS(LOAD_A)
#define UNPACK                                                                                     \
    Bytes b0 = bytes_of(part.x, true), b1 = bytes_of(part.y, true), b2 = bytes_of(part.z, true),   \
          b3 = bytes_of(part.w, true);
#define ADD(i, word)                                                                               \
    {                                                                                              \
        Bytes a = bytes_of(word, true);                                                            \
        sum##i += uvec4(dot8(a, b0, true, true), dot8(a, b1, true, true),                          \
                        dot8(a, b2, true, true), dot8(a, b3, true, true));                         \
    }
                [[unroll]] for (uint c = 0u; c < STEP; c++) {
                    uvec4 q = uvec4(q0[c], q1[c], q2[c], q3[c]);
                    if (B_BITS == 8u) {
                        uvec4 part = q ^ 0x80808080u;
                        UNPACK
#define ADD_BYTES(i) ADD(i, a##i[c])
                        ROWS(ADD_BYTES)
                    } else {
                        {
                            uvec4 part = q & 0x0F0F0F0Fu;
                            UNPACK
#define ADD_EVEN(i) ADD(i, (c < 2u ? a##i : high##i)[c % 2u * 2u])
                            ROWS(ADD_EVEN)
                        }
                        {
                            uvec4 part = q >> 4u & 0x0F0F0F0Fu;
                            UNPACK
#define ADD_ODD(i) ADD(i, (c < 2u ? a##i : high##i)[c % 2u * 2u + 1u])
                            ROWS(ADD_ODD)
                        }
                    }
                }
            }
            if (IS_NATIVE) {
#define FMA(i)                                                                                     \
    {                                                                                              \
        precise vec4 d = uintBitsToFloat(pair##i.y) * uintBitsToFloat(scales);                     \
        precise vec4 r = fma(uintBitsToFloat(to_floats(sum##i)), d, uintBitsToFloat(acc##i));      \
        acc##i = floatBitsToUint(r);                                                               \
    }
                ROWS(FMA)
            } else {
                [[dont_unroll]] for (uint i = 0u; i < TM; i++) {
                    uvec4 sums, row;
                    uint a_scale;
#define GET(r)                                                                                     \
    if (i == uint(r)) {                                                                            \
        sums = sum##r;                                                                             \
        row = acc##r;                                                                              \
        a_scale = pair##r.y;                                                                       \
    }
                    ROWS(GET)
                    [[dont_unroll]] for (uint e = 0u; e < TN; e++) {
                        uint scale = ree_mul(a_scale, scales[e]);
                        row = replace(row, e, ree_fma(to_float(sums[e]), scale, row[e]));
                    }
#define PUT(r)                                                                                     \
    if (i == uint(r)) acc##r = row;
                    ROWS(PUT)
                }
            }
        }
        if (chunk == first_chunk) {
#define FIRST(i) total##i = acc##i;
            ROWS(FIRST)
        } else if (REE_FORM_ADD == REE_NATIVE) {
#define SUM(i)                                                                                     \
    {                                                                                              \
        precise vec4 r = uintBitsToFloat(total##i) + uintBitsToFloat(acc##i);                      \
        total##i = floatBitsToUint(r);                                                             \
    }
            ROWS(SUM)
        } else {
            [[dont_unroll]] for (uint e = 0u; e < TM * TN; e++) {
                uvec4 sums, row;
#define GET_TOTAL(i)                                                                               \
    if (e / TN == uint(i)) {                                                                       \
        sums = total##i;                                                                           \
        row = acc##i;                                                                              \
    }
                ROWS(GET_TOTAL)
                uint bits = ree_add(sums[e % TN], row[e % TN]);
#define PUT_TOTAL(i)                                                                               \
    if (e / TN == uint(i)) total##i = replace(total##i, e % TN, bits);
                ROWS(PUT_TOTAL)
            }
        }
    }
    [[dont_unroll]] for (uint e = 0u; e < TM * TN; e++) {
        uint i = i0 + e / TN, j = j0 + e % TN * lanes;
        uvec4 row;
#define TAKE(r)                                                                                    \
    if (e / TN == uint(r)) row = total##r;
        ROWS(TAKE)
        if (i >= m || j >= n) continue;
        if (STAGE == 1u)
            words.w[s.chunks + first_chunk * n_outputs + i * n + j] = row[e % TN];
        else
            store(i * n + j, row[e % TN]);
    }
}

void main() {
    Params p = Params(ree_params());
    Int8Layout s = int8_layout(p);
    uint n_chunks = (p.k + REE_CHUNK - 1u) / REE_CHUNK;
    uint n_tensors = 0u;
    if (HAS_EPILOGUE) {
        ReeExpr expr = ReeExpr(ree_address_add(ree_params(), EPILOGUE_OFFSET));
        epilogue = ree_expr_begin(expr, N_FACTORS);
        [[unroll]] for (uint e = 0u; e < EXPR_N_OPERANDS; e++)
            n_tensors += ree_expr_dtype(e) < EXPR_IOTA ? 1u : 0u;
    }
    out_words = ree_operand(N_FACTORS + n_tensors);
    if (STAGE == 2u) {
        uint n_outputs = p.m * p.n;
        if (ree_thread() < n_outputs) add_chunks(s.chunks, ree_thread(), n_outputs, n_chunks);
        return;
    }
    uint width = TN * gl_WorkGroupSize.x, tiles_j = (p.n + width - 1u) / width;
    uint group = ree_group(), chunk = 0u, end = n_chunks;
    if (STAGE == 1u) {
        chunk = group % n_chunks;
        end = chunk + 1u;
        group /= n_chunks;
    }
    uint i0 = group / tiles_j * TM, j0 = group % tiles_j * width + ree_local();
    if (i0 < p.m) tile_run(p, s, i0, j0, chunk, end);
}
