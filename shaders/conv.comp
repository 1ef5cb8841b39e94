#version 460
// conv: out[b, g*M + i, o] = expr(sum over (c, k) of x[b, g*C + c, o*stride + k*dilation - pad] *
// w[g*M + i, c, k]), where x is 0 outside its bounds. Transposed: out[b, g*M + i, o] =
// expr(sum over (c, k) of x[b, g*C + c, p] * w[g*C + c, i, k]), where p*stride + k*dilation - pad =
// o. NUMERICS.md section 3 (dot), terms in the order (c, kz, ky, kx). src/repops/repop.h explains
// the symbols.
//
// For each image b and group g, the weights (rows, M x CK) are multiplied with a matrix that is
// never built: column o has the inputs under the kernel at output position o.
#include "ree.glsl"
#include "expr.glsl"
#include "conv.glsl"

layout(constant_id = 27) const bool HAS_EPILOGUE = false;
layout(constant_id = 28) const bool TRANSPOSED = false;
// The kernel has size 1, there is no padding, and every output position reads inside x.
layout(constant_id = 29) const bool POINTWISE = false;

// Coordinates in x of the kernel's first position at output position o. Transposed: these
// coordinates times stride.
struct TileColumn {
    int z, y, x;
};
// A term: the offset in x of its channel, and its kernel position times dilation.
struct TileStep {
    uint channel;
    int z, y, x;
};

ReeWords x_words, w_words, out_words;
uint x_base, w_base, out_base;
uint n_rows, n_terms, kernel_size, in_count;
uvec3 in_size, kernel, out_size, stride;
ivec3 dilation, pad, extent; // extent: kernel * dilation
ReeExprState epilogue;

TileColumn tile_column(uint j) {
    uint x = j % out_size.z, rest = j / out_size.z;
    ivec3 o = ivec3(rest / out_size.y, rest % out_size.y, x);
    o = TRANSPOSED ? o + pad : o * ivec3(stride) - pad;
    return TileColumn(o.x, o.y, o.z);
}
TileStep tile_step(uint k) {
    uint c = k / kernel_size, rest = k % kernel_size;
    uint x = rest % kernel.z;
    rest /= kernel.z;
    ivec3 at = ivec3(rest / kernel.y, rest % kernel.y, x) * dilation;
    return TileStep(c * in_count, at.x, at.y, at.z);
}
void tile_next(inout TileStep s) {
    s.x += dilation.z;
    bool carry = s.x == extent.z;
    s.x = carry ? 0 : s.x;
    s.y += carry ? dilation.y : 0;
    carry = s.y == extent.y;
    s.y = carry ? 0 : s.y;
    s.z += carry ? dilation.x : 0;
    carry = s.z == extent.x;
    s.z = carry ? 0 : s.z;
    s.channel += carry ? in_count : 0u;
}
float tile_a(uint i, uint k) {
    uint at = TRANSPOSED ? (k / kernel_size * n_rows + i) * kernel_size + k % kernel_size
                         : i * n_terms + k;
    return uintBitsToFloat(w_words.w[w_base + at]);
}
float tile_b(TileStep s, TileColumn c) {
    ivec3 origin = ivec3(c.z, c.y, c.x), offset = ivec3(s.z, s.y, s.x);
    ivec3 at = TRANSPOSED ? origin - offset : origin + offset;
    bool inside = true;
    if (TRANSPOSED) {
        uvec3 whole = uvec3(max(at, ivec3(0))) / stride;
        inside = all(greaterThanEqual(at, ivec3(0))) && whole * stride == uvec3(at);
        at = ivec3(whole);
    }
    if (!POINTWISE)
        // a negative coordinate is a large uint
        inside = inside && all(lessThan(uvec3(at), in_size));
    uint index = inside ? s.channel + (uint(at.x) * in_size.y + uint(at.y)) * in_size.z +
                              uint(at.z)
                        : 0u;
    uint bits = x_words.w[x_base + index];
    return uintBitsToFloat(inside ? bits : 0u);
}
void tile_store(uint i, uint j, uint bits) {
    uint index = out_base + i * (out_size.x * out_size.y * out_size.z) + j;
    if (HAS_EPILOGUE) {
        uvec2 value = ree_expr_result(ree_expr_epilogue(epilogue, index, bits));
        ree_store(out_words, EXPR_OUT_DTYPE, index, value);
    } else {
        out_words.w[index] = bits;
    }
}

// Index in scratch memory of the current chunk's results. The layout is [n_chunks][n_outputs].
uint chunk_base;
void tile_store_chunk(uint i, uint j, uint bits) {
    uint at = out_base + i * (out_size.x * out_size.y * out_size.z) + j;
    ree_scratch().w[chunk_base + at] = bits;
}

#include "tile.glsl"

void add_chunks(uint index, uint n_outputs, uint n_chunks) {
    ReeWords chunks = ree_scratch();
    uint sum = chunks.w[index];
    for (uint c = 1u; c < n_chunks; c++) sum = ree_add(sum, chunks.w[c * n_outputs + index]);
    out_base = index;
    tile_store(0u, 0u, sum == REE_SIGN ? 0u : ree_canon(sum)); // + 0: -0 becomes +0
}

void main() {
    Params p = Params(ree_params());
    in_size = uvec3(p.in_size[0], p.in_size[1], p.in_size[2]);
    kernel = uvec3(p.kernel[0], p.kernel[1], p.kernel[2]);
    out_size = uvec3(p.out_size[0], p.out_size[1], p.out_size[2]);
    stride = uvec3(p.stride[0], p.stride[1], p.stride[2]);
    dilation = ivec3(p.dilation[0], p.dilation[1], p.dilation[2]);
    pad = ivec3(p.pad[0], p.pad[1], p.pad[2]);
    extent = ivec3(kernel) * dilation;
    kernel_size = kernel.x * kernel.y * kernel.z;
    in_count = in_size.x * in_size.y * in_size.z;
    n_rows = p.m;
    uint m = p.m, n = out_size.x * out_size.y * out_size.z, k = p.c * kernel_size;
    n_terms = k;
    uint lanes = gl_WorkGroupSize.x;
    uint width = TILE_COLUMNS * lanes;
    uint tiles_j = (n + width - 1u) / width, tiles_i = (m + TM - 1u) / TM;
    uint n_outputs = p.n * p.groups * m * n, tile = ree_group();
    uint n_chunks = TILE_STAGE == 0u ? 1u : (k + REE_CHUNK - 1u) / REE_CHUNK;
    uint chunk = TILE_STAGE == 1u ? tile % n_chunks : 0u;
    if (TILE_STAGE == 1u) tile /= n_chunks;
    uint tile_j = tile % tiles_j, tile_i = tile / tiles_j % tiles_i;
    uint product = tile / (tiles_j * tiles_i); // image * groups + group
    if (TILE_STAGE == 2u ? ree_thread() >= n_outputs : product >= p.n * p.groups) return;
    x_words = ree_operand(0);
    w_words = ree_operand(1);
    x_base = product * p.c * in_count;
    w_base = product % p.groups * m * k;
    out_base = product * m * n;
    uint n_tensors = 0u;
    if (HAS_EPILOGUE) {
        epilogue = ree_expr_begin(ReeExpr(ree_address_add(ree_params(), EPILOGUE_OFFSET)), 2u);
        [[unroll]] for (uint i = 0u; i < EXPR_N_OPERANDS; i++)
            n_tensors += ree_expr_dtype(i) < EXPR_IOTA ? 1u : 0u;
    }
    out_words = ree_operand(2u + n_tensors);
    if (TILE_STAGE == 2u) {
        add_chunks(ree_thread(), n_outputs, n_chunks);
        return;
    }
    chunk_base = chunk * n_outputs;
    uint k_begin = chunk * REE_CHUNK, k_end = TILE_STAGE == 1u ? min(k_begin + REE_CHUNK, k) : k;
    tile_run(tile_i * TM, tile_j * width + ree_local(), lanes, m, n, k_begin, k_end);
}
