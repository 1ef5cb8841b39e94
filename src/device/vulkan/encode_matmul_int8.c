// The encoder of matmul with blockwise activations (a_block): one step packs A by runs, for many
// rows another one packs B, then a thread computes 4 columns of one or several rows.
#include "device/vulkan/vulkan.h"
#include "device/vulkan/encode.h"
#include "shaders.h"

#define TILE_ROWS 4 // per thread, TM of the modules for several rows (shaders/shaders.cmake)

static uint32_t min_u32(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}
static uint64_t ceil_div(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

// The runs of an operand, as in shaders/include/matmul_int8.glsl.
struct runs {
    uint32_t length, words; // terms, and words of B, in a run
    uint64_t n;             // runs of a row or column
};

// Adds the step that arranges one operand by runs.
static void add_pack(struct ree_vk_encoding *out, const struct runs *runs, bool is_b,
                     bool b_packed) {
    const struct ree_matmul_params *p = &out->params.matmul;
    uint64_t n = runs->n * (is_b ? p->n : p->m);
    struct ree_vk_step *step = ree_vk_add_step(out, REE_VK_SHADER_MATMUL_INT8_PACK, 64, n);
    const uint32_t constants[] = {is_b,      p->a_block,         p->b_block,
                                  p->b_bits, p->has_zero_points, b_packed};
    for (uint32_t i = 0; i < sizeof constants / sizeof *constants; i++)
        ree_vk_add_spec(step, constants[i]);
    step->loops = is_b ? ree_vk_loop(runs->words, 0, 0)
                       : ree_vk_loop(runs->length / 4, ree_vk_loop(4, 0, 0), 1);
    out->scratch_bytes +=
        n * 4 * (is_b ? runs->words + 1 + p->has_zero_points : runs->length / 4 + 2);
}

// Returns the iterations of a thread that computes `rows` rows of all chunks and stores them.
static uint64_t tile_loops(const struct ree_vk_forms *forms, const struct runs *runs, uint32_t rows,
                           uint64_t n_chunks, uint64_t store_loops) {
    const uint32_t *of = forms->of;
    bool emulated = of[REE_VK_FMA] != REE_VK_NATIVE || of[REE_VK_MUL] != REE_VK_NATIVE ||
                    of[REE_VK_ADD] != REE_VK_NATIVE;
    // Emulated operations run in loops over the thread's results.
    uint64_t row = ree_vk_loop(REE_VK_TILE_COLUMNS, 0, 0);
    uint64_t tile = emulated ? ree_vk_loop(rows, row, 1) : 0;
    uint32_t step = runs->words < 4 ? 2 : 4; // words loaded together
    uint64_t words = ree_vk_loop(runs->words / step, ree_vk_loop(step, 0, 0), 1);
    uint64_t chunk = ree_vk_loop(REE_CHUNK / runs->length, words + tile, 4) + tile;
    return ree_vk_loop(n_chunks, chunk, 6) +
           ree_vk_loop(rows * REE_VK_TILE_COLUMNS, store_loops, 0);
}

void ree_vk_encode_matmul_int8(const struct ree_vk *vk, struct ree_vk_encoding *out) {
    const struct ree_matmul_params *p = &out->params.matmul;
    uint32_t length = min_u32(p->a_block, p->b_block);
    const struct runs runs = {
        .length = length, .words = length * p->b_bits / 32, .n = ceil_div(p->k, length)};
    bool small = ree_vk_is_small_product(vk, p->m, p->n, p->k, 1);
    bool few = p->m < REE_VK_FEW_ROWS || small;
    uint32_t rows = p->m == 1 || small ? 1 : TILE_ROWS;
    uint64_t n_chunks = ceil_div(p->k, REE_CHUNK), n_outputs = (uint64_t)p->m * p->n;
    uint64_t store_loops = ree_vk_expr_loops(out->expr);
    // Packing B saves time if its words are used several times.
    bool b_packed = !few;
    add_pack(out, &runs, false, b_packed);
    if (b_packed) add_pack(out, &runs, true, b_packed);

    bool can_split = n_chunks > 1 && n_outputs * n_chunks * 4 <= vk->thresholds.max_split_scratch;
    if (!can_split &&
        ree_vk_is_long(vk, tile_loops(&out->forms, &runs, rows, n_chunks, store_loops),
                       vk->thresholds.long_tiles))
        rows = 1;
    static const uint32_t modules[2][2] = {
        {REE_VK_SHADER_MATMUL_INT8_1_MUL, REE_VK_SHADER_MATMUL_INT8_1_DOT},
        {REE_VK_SHADER_MATMUL_INT8_N_MUL, REE_VK_SHADER_MATMUL_INT8_N_DOT}};
    uint32_t module = ree_vk_variant(out, modules[rows > 1][out->forms.dot8]);
    uint32_t lanes = vk->is_cpu ? vk->subgroup.subgroupSize : 64;
    struct ree_vk_step *step = ree_vk_add_step(out, module, lanes, 1);
    step->n_groups = ceil_div(p->n, REE_VK_TILE_COLUMNS * lanes) * ceil_div(p->m, rows);
    step->loops = tile_loops(&out->forms, &runs, rows, n_chunks, store_loops);
    step->store_loops = tile_loops(&out->forms, &runs, rows, 0, store_loops);
    ree_vk_add_expr_spec(step, &p->epilogue);
    const uint32_t own[] = {p->has_epilogue, p->a_block,         p->b_block,
                            p->b_bits,       p->has_zero_points, b_packed};
    for (uint32_t i = 0; i < sizeof own / sizeof *own; i++)
        ree_vk_add_spec(step, own[i]);
    if (n_chunks < 2) return;
    // If few rows leave a part of the device idle, different groups compute the chunks of an
    // output.
    bool idle = few && step->n_groups < vk->thresholds.enough_groups;
    if (idle || ree_vk_must_split(vk, out)) ree_vk_split_chunks(out, n_outputs, n_chunks);
}
