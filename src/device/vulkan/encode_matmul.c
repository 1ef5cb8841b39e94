// The encoders of matmul and conv: choose the module and the tiles of the result.
#include "device/vulkan/vulkan.h"
#include "device/vulkan/encode.h"
#include "repops/merge.h"
#include "shaders.h"

#include <stddef.h>

#define SPEC_SUBGROUP (40 - REE_VK_SPEC_FIRST) // shaders/include/tile.glsl
#define DOT8_ROWS 8                            // per thread, shaders/dot8.comp

// Returns the iterations per chunk of a thread that computes `rows` rows of `columns` results: the
// loop over the terms and, in emulated forms, one more computation of each result's chunk.
static uint64_t chunk_loops(uint32_t form, uint32_t rows, uint32_t columns) {
    uint64_t again = form == REE_VK_NATIVE ? 0 : 1;
    // The float64 form for many rows has two nested loops. The inner one runs over the threads of a
    // subgroup, at least 2.
    uint64_t terms = form == REE_VK_FLOAT64 && rows > 1 ? 2 * REE_CHUNK : REE_CHUNK;
    return terms + rows * columns * (again * (REE_CHUNK + 1) + 2) + 8;
}

// Returns the iterations for all chunks and for storing the results.
static uint64_t tile_loops(uint32_t form, uint32_t rows, uint32_t columns, uint64_t n_chunks,
                           uint64_t store_loops) {
    return n_chunks * chunk_loops(form, rows, columns) +
           ree_vk_loop(rows * columns, store_loops, 0);
}

static bool is_below(uint32_t m, uint32_t n, uint64_t k, uint64_t n_products, uint64_t limit) {
    return (double)m * n * (double)k * (double)n_products < (double)limit;
}

bool ree_vk_is_small_product(const struct ree_vk *vk, uint32_t m, uint32_t n, uint64_t k,
                             uint64_t n_products) {
    return is_below(m, n, k, n_products, vk->thresholds.small_product);
}

struct ree_vk_step *ree_vk_add_tiles(const struct ree_vk *vk, struct ree_vk_encoding *out,
                                     uint32_t first_module, uint32_t m, uint32_t n, uint64_t k,
                                     bool can_split, uint64_t n_products, uint64_t store_loops) {
    static const uint32_t tile_rows[REE_VK_N_FORMS] = {
        [REE_VK_NATIVE] = 8, [REE_VK_FLOAT64] = 16, [REE_VK_FLOAT32] = 4, [REE_VK_INTEGER] = 1};
    uint32_t form = out->forms.of[REE_VK_FMA];
    bool shares_rows = form == REE_VK_FLOAT64; // among threads of a subgroup, for many rows
    bool few = m < REE_VK_FEW_ROWS || ree_vk_is_small_product(vk, m, n, k, n_products);
    uint32_t rows = few || (shares_rows && !vk->has_subgroups) ? 1 : tile_rows[form];
    uint64_t n_chunks = (k + REE_CHUNK - 1) / REE_CHUNK;
    uint64_t scratch = (uint64_t)m * n * n_products * n_chunks * 4;
    store_loops += ree_vk_expr_loops(out->expr);
    // Only in float64. In the other forms no device was measured with one column.
    bool tiny = few && form == REE_VK_FLOAT64 &&
                is_below(m, n, k, n_products, vk->thresholds.tiny_product) &&
                !ree_vk_is_long(vk, tile_loops(form, 1, 1, n_chunks, store_loops),
                                vk->thresholds.long_loops);
    uint32_t columns = tiny ? 1 : REE_VK_TILE_COLUMNS;
    bool too_long = ree_vk_is_long(vk, tile_loops(form, rows, columns, n_chunks, store_loops),
                                   vk->thresholds.long_tiles);
    // Splitting by chunks shortens the loops, but requires memory. One row per thread shortens them
    // too.
    if (too_long && !(can_split && n_chunks > 1 && scratch <= vk->thresholds.max_split_scratch))
        rows = 1;
    uint32_t module = first_module + form + (rows > 1 ? REE_VK_N_FORMS : 0);
    // On a CPU driver a group consists of a vector's lanes; more threads would only enlarge the
    // stack. The float64 module for many rows requires exactly one subgroup.
    bool one_subgroup = vk->is_cpu || (shares_rows && rows > 1);
    uint32_t lanes = one_subgroup ? vk->subgroup.subgroupSize : 64;
    struct ree_vk_step *step = ree_vk_add_step(out, module, lanes, 1);
    uint64_t width = (uint64_t)columns * lanes;
    step->rows = rows;
    step->columns = columns;
    step->n_groups = (n + width - 1) / width * ((m + rows - 1) / rows) * n_products;
    step->loops = tile_loops(form, rows, columns, n_chunks, store_loops);
    step->store_loops = tile_loops(form, rows, columns, 0, store_loops);
    return step;
}

void ree_vk_add_tile_spec(const struct ree_vk *vk, struct ree_vk_step *step) {
    while (step->n_spec < SPEC_SUBGROUP)
        ree_vk_add_spec(step, 0);
    ree_vk_add_spec(step, vk->subgroup.subgroupSize);
    ree_vk_add_spec(step, step->columns);
}

bool ree_vk_must_split(const struct ree_vk *vk, const struct ree_vk_encoding *out) {
    return ree_vk_is_long(vk, out->steps[out->n_steps - 1].loops, vk->thresholds.long_loops);
}

void ree_vk_split_chunks(struct ree_vk_encoding *out, uint64_t n_outputs, uint64_t n_chunks) {
    struct ree_vk_step *step = &out->steps[out->n_steps - 1], *sum = &out->steps[out->n_steps++];
    *sum = *step;
    out->scratch_bytes += n_outputs * n_chunks * 4;
    step->n_groups *= n_chunks;
    step->loops = (step->loops - step->store_loops) / n_chunks;
    sum->n_groups = (n_outputs + sum->local_size - 1) / sum->local_size;
    sum->loops = ree_vk_loop(n_chunks, 0, 0) + ree_vk_expr_loops(out->expr);
    ree_vk_add_spec(step, 1);
    ree_vk_add_spec(sum, 2);
}

// Adds the constants of every product: the expression's, then the module's (`own`).
static void add_constants(const struct ree_vk *vk, struct ree_vk_step *step,
                          const struct ree_expr *epilogue, bool has_epilogue, uint32_t n_own,
                          const uint32_t *own) {
    ree_vk_add_expr_spec(step, epilogue);
    ree_vk_add_spec(step, has_epilogue);
    for (uint32_t i = 0; i < n_own; i++)
        ree_vk_add_spec(step, own[i]);
    ree_vk_add_tile_spec(vk, step);
}

// Adds the step that sums products of packed bytes, after the steps that packed them. is_conv: use
// the modules of conv instead of matmul.
static void add_dot8(const struct ree_vk *vk, struct ree_vk_encoding *out, bool is_conv, uint32_t m,
                     uint32_t n, uint64_t n_products, const struct ree_expr *epilogue,
                     bool has_epilogue, uint64_t n_words, uint32_t n_own, const uint32_t *own) {
    uint32_t module = is_conv ? out->forms.dot8 ? REE_VK_SHADER_CONV_DOT8 : REE_VK_SHADER_CONV_MUL8
                      : out->forms.dot8 ? REE_VK_SHADER_MATMUL_DOT8
                                        : REE_VK_SHADER_MATMUL_MUL8;
    uint32_t lanes = vk->is_cpu ? vk->subgroup.subgroupSize : 64;
    struct ree_vk_step *step = ree_vk_add_step(out, ree_vk_variant(out, module), lanes, 1);
    uint64_t width = (uint64_t)REE_VK_TILE_COLUMNS * lanes;
    step->n_groups = (n + width - 1) / width * ((m + DOT8_ROWS - 1) / DOT8_ROWS) * n_products;
    step->loops = ree_vk_loop(n_words, 0, 0) +
                  ree_vk_loop(DOT8_ROWS * REE_VK_TILE_COLUMNS, ree_vk_expr_loops(out->expr), 0);
    ree_vk_add_expr_spec(step, epilogue);
    ree_vk_add_spec(step, has_epilogue);
    for (uint32_t i = 0; i < n_own; i++)
        ree_vk_add_spec(step, own[i]);
}

// Returns the kind of an operand's copies in the scratch memory. 1: one copy for all batches; 2:
// one copy per batch.
static uint32_t copies_kind(const struct ree_matmul_params *p, const int32_t *batch_strides) {
    for (uint32_t d = 0; d < p->batch_rank; d++)
        if (batch_strides[d] != 0) return 2;
    return 1;
}

static void encode_bytes(const struct ree_vk *vk, struct ree_vk_encoding *out,
                         const struct ree_matmul_params *p) {
    uint64_t n_words = ((uint64_t)p->k + 3) / 4;
    uint32_t a_copies = copies_kind(p, p->a_batch_strides),
             b_copies = copies_kind(p, p->b_batch_strides);
    for (uint32_t is_b = 0; is_b < 2; is_b++) {
        bool shared = (is_b ? b_copies : a_copies) == 1;
        uint64_t n = (shared ? 1 : p->n_batch) * n_words * (is_b ? p->n : p->m);
        struct ree_vk_step *step = ree_vk_add_step(out, REE_VK_SHADER_MATMUL_PACK, 64, n);
        ree_vk_add_spec(step, is_b);
        ree_vk_add_spec(step, p->batch_rank);
        ree_vk_add_spec(step, shared);
        ree_vk_add_spec(step, a_copies);
        out->scratch_bytes += n * 4;
    }
    const uint32_t own[] = {2, p->a_dtype == REE_I8, p->b_dtype == REE_I8, a_copies, b_copies};
    add_dot8(vk, out, false, p->m, p->n, p->n_batch, &p->epilogue, p->has_epilogue, n_words, 5,
             own);
}

static void encode_words(const struct ree_vk *vk, struct ree_vk_encoding *out,
                         const struct ree_matmul_params *p) {
    (void)vk;
    uint32_t module = p->dtype == REE_F64 ? REE_VK_SHADER_MATMUL_WORDS_DOUBLE
                                          : ree_vk_variant(out, REE_VK_SHADER_MATMUL_WORDS);
    struct ree_vk_step *step = ree_vk_add_step(out, module, 64, (uint64_t)p->m * p->n * p->n_batch);
    ree_vk_add_expr_spec(step, &p->epilogue);
    ree_vk_add_spec(step, p->has_epilogue);
    ree_vk_add_spec(step, p->batch_rank);
    ree_vk_add_spec(step, ree_dtype_class(p->dtype) == REE_CLASS_D);
    ree_vk_add_spec(step, p->a_dtype);
    ree_vk_add_spec(step, p->b_dtype);
    step->loops = ree_vk_loop(p->k, 0, 0) + ree_vk_expr_loops(out->expr);
}

// Adds the step that converts one operand to float32 in the scratch memory.
static void add_widening(struct ree_vk_encoding *out, const struct ree_matmul_params *p, bool is_b,
                         uint32_t copies, uint32_t a_copies) {
    uint64_t n = (copies == 2 ? p->n_batch : 1) * (uint64_t)p->k * (is_b ? p->n : p->m);
    struct ree_vk_step *step = ree_vk_add_step(out, REE_VK_SHADER_MATMUL_WIDEN, 64, n);
    const uint32_t constants[] = {
        is_b,     p->batch_rank,         copies == 1, is_b ? p->b_dtype : p->a_dtype,
        a_copies, is_b ? p->b_block : 0, p->b_bits,   p->has_zero_points};
    for (uint32_t i = 0; i < sizeof constants / sizeof *constants; i++)
        ree_vk_add_spec(step, constants[i]);
    out->scratch_bytes += n * 4;
}

enum ree_status ree_vk_encode_matmul(const struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                     struct ree_vk_encoding *out, struct ree_error *err) {
    (void)err;
    struct ree_matmul_params *p = &out->params.matmul;
    out->params_size = offsetof(struct ree_matmul_params, epilogue.instrs);
    if (p->m == 0 || p->n == 0 || p->n_batch == 0) return REE_OK;
    int32_t *sets[] = {p->a_batch_strides, p->b_batch_strides};
    p->batch_rank = p->n_batch == 1 ? 0 : ree_merge_dims(p->batch_rank, p->batch_dims, 2, sets);
    if (p->has_epilogue) {
        ree_merge_expr(&p->epilogue);
        out->expr = &dispatch->params.matmul.epilogue;
    }
    if (p->dtype != REE_F32) {
        bool bytes = p->dtype == REE_I32 && ree_dtype_size((enum ree_dtype)p->a_dtype) == 1 &&
                     ree_dtype_size((enum ree_dtype)p->b_dtype) == 1;
        // Packing saves time if the packed bytes are used several times.
        (bytes && p->m >= REE_VK_FEW_ROWS && p->k > 0 ? encode_bytes : encode_words)(vk, out, p);
        return REE_OK;
    }
    if (p->a_block) {
        ree_vk_encode_matmul_int8(vk, out);
        return REE_OK;
    }
    bool narrow = p->a_dtype != REE_F32 || p->b_dtype != REE_F32 || p->b_block;
    uint32_t n_factors = ree_matmul_n_operands(p);
    uint32_t form = out->forms.of[REE_VK_FMA];
    struct ree_vk_step *step;
    bool few_rows =
        p->m < REE_VK_FEW_ROWS || ree_vk_is_small_product(vk, p->m, p->n, p->k, p->n_batch);
    if (narrow && few_rows && (form == REE_VK_NATIVE || form == REE_VK_FLOAT64)) {
        step = ree_vk_add_tiles(vk, out, REE_VK_SHADER_MATMUL_NARROW_NATIVE, p->m, p->n, p->k, true,
                                p->n_batch, 0);
        const uint32_t own[] = {p->batch_rank, n_factors, p->a_dtype,        p->b_dtype,
                                p->b_block,    p->b_bits, p->has_zero_points};
        add_constants(vk, step, &p->epilogue, p->has_epilogue, 7, own);
    } else {
        const uint32_t a_copies = p->a_dtype == REE_F32 ? 0 : copies_kind(p, p->a_batch_strides);
        const uint32_t b_copies =
            p->b_dtype == REE_F32 && !p->b_block ? 0 : copies_kind(p, p->b_batch_strides);
        if (a_copies) add_widening(out, p, false, a_copies, a_copies);
        if (b_copies) add_widening(out, p, true, b_copies, a_copies);
        step = ree_vk_add_tiles(vk, out, REE_VK_SHADER_MATMUL_1_NATIVE, p->m, p->n, p->k, true,
                                p->n_batch, 0);
        const uint32_t own[] = {p->batch_rank, n_factors, a_copies, b_copies};
        add_constants(vk, step, &p->epilogue, p->has_epilogue, 4, own);
    }
    uint64_t n_chunks = ((uint64_t)p->k + REE_CHUNK - 1) / REE_CHUNK;
    if (n_chunks < 2) return REE_OK;
    // If few rows leave a part of the device idle, different groups compute the chunks of an
    // output.
    bool few = few_rows && step->n_groups < vk->thresholds.enough_groups;
    if (few || ree_vk_must_split(vk, out))
        ree_vk_split_chunks(out, (uint64_t)p->n_batch * p->m * p->n, n_chunks);
    return REE_OK;
}

enum ree_status ree_vk_encode_conv(const struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                   struct ree_vk_encoding *out, struct ree_error *err) {
    (void)err;
    struct ree_conv_params *p = &out->params.conv;
    out->params_size = offsetof(struct ree_conv_params, epilogue.instrs);
    uint64_t n_products = (uint64_t)p->n * p->groups;
    uint32_t n_out = p->out[0] * p->out[1] * p->out[2];
    if (n_products == 0 || p->m == 0 || n_out == 0) return REE_OK;
    if (p->has_epilogue) {
        ree_merge_expr(&p->epilogue);
        out->expr = &dispatch->params.conv.epilogue;
    }
    uint64_t n_terms = (uint64_t)p->c * p->kernel[0] * p->kernel[1] * p->kernel[2];
    if (ree_conv_sum_dtype(p) == REE_I32 && p->m >= REE_VK_FEW_ROWS) {
        uint64_t n_words = (n_terms + 3) / 4;
        uint64_t sizes[] = {(uint64_t)p->groups * p->m * n_words, n_products * n_words * n_out};
        for (uint32_t is_x = 0; is_x < 2; is_x++) {
            struct ree_vk_step *step =
                ree_vk_add_step(out, REE_VK_SHADER_CONV_PACK, 64, sizes[is_x]);
            ree_vk_add_spec(step, is_x);
            ree_vk_add_spec(step, p->has_pad_value);
            out->scratch_bytes += sizes[is_x] * 4;
        }
        const uint32_t own[] = {ree_conv_n_operands(p), p->w_dtype == REE_I8, p->x_dtype == REE_I8};
        add_dot8(vk, out, true, p->m, n_out, n_products, &p->epilogue, p->has_epilogue, n_words, 3,
                 own);
        return REE_OK;
    }
    if (ree_conv_sum_dtype(p) == REE_I32) {
        struct ree_vk_step *step = ree_vk_add_step(
            out, ree_vk_variant(out, REE_VK_SHADER_CONV_INTEGER), 64, n_products * p->m * n_out);
        ree_vk_add_expr_spec(step, &p->epilogue);
        ree_vk_add_spec(step, p->has_epilogue);
        ree_vk_add_spec(step, p->x_dtype);
        ree_vk_add_spec(step, p->w_dtype);
        ree_vk_add_spec(step, p->has_pad_value);
        uint64_t kernel = 0;
        for (uint32_t d = 3; d-- > 0;)
            kernel = ree_vk_loop(p->kernel[d], kernel, 2 - d);
        step->loops = ree_vk_loop(p->c, kernel, 3) + ree_vk_expr_loops(out->expr);
        return REE_OK;
    }
    bool pointwise = !p->transposed;
    for (int d = 0; d < 3; d++)
        pointwise = pointwise && p->kernel[d] == 1 && p->pad[d] == 0 &&
                    (p->out[d] - 1) * p->stride[d] < p->in[d];
    struct ree_vk_step *step = ree_vk_add_tiles(vk, out, REE_VK_SHADER_CONV_1_NATIVE, p->m, n_out,
                                                n_terms, true, n_products, 0);
    const uint32_t own[] = {p->transposed, pointwise};
    add_constants(vk, step, &p->epilogue, p->has_epilogue, 2, own);
    if (ree_vk_must_split(vk, out))
        ree_vk_split_chunks(out, n_products * p->m * n_out, (n_terms + REE_CHUNK - 1) / REE_CHUNK);
    return REE_OK;
}
