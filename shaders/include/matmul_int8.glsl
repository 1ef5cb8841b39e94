// The runs of a block-dot (NUMERICS.md section 3), and where matmul_int8_pack.comp puts them in
// scratch memory, in words:
//
//     A                 [m][n_runs][RUN / 4]       four numbers in each word
//     B                 [n_runs][n][RUN_WORDS]     only if B_PACKED
//     sums, scales of A [m][n_runs][2]             for each run: the sum of its terms, its scale
//     scales of B       [n_runs][n]                only if B_PACKED
//     zero points of B  [n_runs][n]                only if B_PACKED and HAS_ZERO_POINTS
//     chunks            [n_chunks][m][n]           the results of chunks
//
// The including shader defines A_BLOCK, B_BLOCK, B_BITS, HAS_ZERO_POINTS and B_PACKED.
#ifndef REE_GLSL_MATMUL_INT8
#define REE_GLSL_MATMUL_INT8

const uint RUN = A_BLOCK < B_BLOCK ? A_BLOCK : B_BLOCK; // terms; the last run may have fewer
const uint RUN_WORDS = RUN * B_BITS / 32u;              // words of B

struct Int8Layout {
    uint n_runs;
    uint a_blocks, b_blocks; // blocks of a row of A, of a column of B
    uint column_words;       // words of a column of the operand B
    // Where these parts begin; a_pairs: sums and scales of A.
    uint b, a_pairs, b_scales, b_zeros, chunks;
};

Int8Layout int8_layout(const Params p) {
    Int8Layout s;
    s.n_runs = (p.k + RUN - 1u) / RUN;
    s.a_blocks = (p.k + A_BLOCK - 1u) / A_BLOCK;
    s.b_blocks = (p.k + B_BLOCK - 1u) / B_BLOCK;
    s.column_words = s.b_blocks * (B_BLOCK * B_BITS / 32u);
    uint b_runs = B_PACKED ? s.n_runs * p.n : 0u;
    s.b = p.m * s.n_runs * (RUN / 4u);
    s.a_pairs = s.b + b_runs * RUN_WORDS;
    s.b_scales = s.a_pairs + p.m * s.n_runs * 2u;
    s.b_zeros = s.b_scales + b_runs;
    s.chunks = s.b_zeros + (HAS_ZERO_POINTS ? b_runs : 0u);
    return s;
}

#endif
