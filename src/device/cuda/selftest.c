// Self-tests: before a dispatch is first used, the code that it runs is tested on a small hard
// problem.
//
// The driver compiles kernels for devices that this binary does not know, and JIT-generated kernels
// on every device. The probe covers neither. So the dispatch's twin (device/selftest/twin.h) runs
// on the same kernels in the same modes, and its results are compared with the CPU's by bytes. If
// they differ, a map is interpreted instead of compiled, and that form is tested too. The last form
// of every RepOp is the host: the CPU backend computes the dispatch, and its operands are copied to
// the host and back.
//
// Dispatches that differ only in lengths have the same twin and share its verdict, if they run the
// same code. A dispatch with code that no twin reaches is computed on the host too. Verdicts PASSED
// are kept for the next start.
#include "device/cache_folder.h"
#include "base/memory.h"
#include "device/cuda/cuda.h"
#include "device/cuda/encode.h"
#include "device/cuda/ptx.h"
#include "device/cuda/tiles.h"
#include "device/selftest/identity.h"
#include "device/selftest/record.h"
#include "device/selftest/twin.h"
#include "device/selftest/twin_run.h"
#include "kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The part of a launch that decides which code runs: the kernel, and the switches that the encoder
// sets in it.
struct way {
    CUfunction jit; // NULL: the kernel is one of kernels.def
    enum ree_cuda_kernel kernel;
    uint32_t mode;
};

struct ree_cuda_tested {
    struct ree_cuda_tested *next;
    struct ree_dispatch twin;
    uint32_t n_ways;
    struct way ways[REE_CUDA_MAX_STEPS];
    enum ree_test_state state;
};

// The number of warps that share a row decides how they find its maximum (cuda/rows.h).
static uint32_t mode_of_rows(const struct ree_cuda_rows *rows) {
    const uint32_t warps = rows->at_once == 1 ? 0 : rows->at_once < 8 ? 1 : 2;
    return rows->width | warps << 8;
}

static uint32_t mode_of(enum ree_repop op, const struct ree_cuda_encoding *encoding,
                        const struct ree_cuda_step *step) {
    const union ree_cuda_params *p = &encoding->params;
    const uint32_t *extra = step->extra;
    switch (op) {
    case REE_REPOP_REDUCE:
        if (step->kernel == REE_CUDA_reduce_free) return extra[0] << 1 | (step->grid[1] > 1);
        return step->kernel == REE_CUDA_reduce_segments ? 0 : extra[1] << 1 | extra[0];
    case REE_REPOP_MATMUL:
    case REE_REPOP_CONV: {
        bool is_b = (step->kernel == REE_CUDA_matmul_widen || step->kernel == REE_CUDA_matmul_pack)
                        ? extra[REE_CUDA_PRODUCT_OTHER]
                        : 0;
        return extra[REE_CUDA_PRODUCT_FLAGS] | (extra[REE_CUDA_PRODUCT_N_PARTS] > 1) << 8 |
               (uint32_t)is_b << 9 | extra[REE_CUDA_PRODUCT_N_STAGES] << 10;
    }
    case REE_REPOP_SOFTMAX:
        return step->kernel == REE_CUDA_softmax_columns ? 0 : mode_of_rows(&p->softmax.rows);
    case REE_REPOP_NORM: return mode_of_rows(&p->norm.rows);
    case REE_REPOP_TOPK: return step->threads;
    case REE_REPOP_GATHER: return p->gather.p.elem_size;
    case REE_REPOP_SCATTER: return extra[0] > 1;
    case REE_REPOP_SCAN: return extra[0];
    case REE_REPOP_ATTENTION: return encoding->n_steps == 3 && step->extra[2] ? step->extra[2] : 0;
    default: return 0;
    }
}

static uint32_t ways_of(enum ree_repop op, const struct ree_cuda_encoding *encoding,
                        struct way out[REE_CUDA_MAX_STEPS]) {
    uint32_t n = 0;
    memset(out, 0, REE_CUDA_MAX_STEPS * sizeof *out);
    for (uint32_t s = 0; s < encoding->n_steps; s++) {
        const struct ree_cuda_step *step = &encoding->steps[s];
        if (step->grid[0] == 0 || step->grid[1] == 0) continue;
        out[n].jit = encoding->jit;
        out[n].kernel = step->kernel;
        out[n++].mode = mode_of(op, encoding, step);
    }
    return n;
}

static bool same_way(const struct way *a, const struct way *b) {
    return a->jit == b->jit && a->kernel == b->kernel && a->mode == b->mode;
}

static struct ree_twin_size size_of(const struct ree_cuda *cuda) {
    // Twins are small on the emulator, which takes a hundred nanoseconds per step of a sum.
    const bool slow = cuda->driver.emulated && !cuda->has_large_twins;
    return (struct ree_twin_size){
        .elements = 1500,
        .columns = slow ? 32 : 144,
        .length = 576,
        .few_rows = 9, // one more than REE_CUDA_MATVEC_ROWS
        .rows = 16,
        .few_queries = 31, // fewer than MIN_QUERIES of encode_attention.c
        .alignment = 64,
        .small = slow,
    };
}

// Sets the limits of one view. The views are such that in one of them the encoder should make, for
// the twin, the choices that it made for the larger dispatch.
#define N_VIEWS 6
static void set_view(struct ree_cuda *cuda, const struct ree_cuda_limits *own, enum ree_repop op,
                     uint32_t view) {
    cuda->limits = *own;
    switch (view) {
    case 1: cuda->limits.n_multiprocessors = 0; break; // every dispatch fills the device
    case 2: cuda->limits.n_multiprocessors = 1u << 20; break;
    case 3: // few stages
        cuda->limits.shared_per_multiprocessor = 0;
        cuda->limits.n_multiprocessors = 0;
        break;
    // Several rows per block. A twin of norm has fewer rows than one of softmax.
    case 4: cuda->limits.n_multiprocessors = op == REE_REPOP_NORM ? 2 : 10; break;
    case 5: cuda->limits.max_shared = 0; break; // no row fits
    default: break;
    }
}

static bool tile_of(enum ree_cuda_kernel kernel, enum ree_cuda_tile *out) {
    // kernels.def lists the kernels of each set in the order of enum ree_cuda_tile.
    static const enum ree_cuda_kernel first[] = {
        REE_CUDA_matmul_128x128,
        REE_CUDA_conv_points_128x128,
        REE_CUDA_conv_taps_128x128,
    };
    if (kernel == REE_CUDA_matmul_int8_64x64 || kernel == REE_CUDA_matmul_int8_32x64) {
        *out = kernel == REE_CUDA_matmul_int8_64x64 ? REE_CUDA_TILE_64X64 : REE_CUDA_TILE_32X64;
        return true;
    }
    _Static_assert(REE_CUDA_matmul_32x64 - REE_CUDA_matmul_128x128 == REE_CUDA_TILE_32X64,
                   "an order of tiles");
    _Static_assert(REE_CUDA_conv_taps_32x64 - REE_CUDA_conv_taps_128x128 == REE_CUDA_TILE_32X64,
                   "an order of tiles");
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        if (kernel >= first[i] && kernel < first[i] + REE_CUDA_N_TILES) {
            *out = (enum ree_cuda_tile)(kernel - first[i]);
            return true;
        }
    return false;
}

// Makes the encoder choose for the twin the tile of the dispatch's product, and the same splitting.
// Returns false if the dispatch uses no tile.
static bool force_plan(struct ree_cuda *cuda, const struct ree_cuda_encoding *encoding) {
    for (uint32_t s = 0; s < encoding->n_steps; s++)
        if (tile_of(encoding->steps[s].kernel, &cuda->limits.tile)) {
            cuda->limits.forces_plan = true;
            cuda->limits.splits = encoding->steps[s].extra[REE_CUDA_PRODUCT_N_PARTS] > 1;
            return true;
        }
    return false;
}

static bool is_matvec(const struct ree_cuda_encoding *encoding) {
    for (uint32_t s = 0; s < encoding->n_steps; s++)
        if ((encoding->steps[s].kernel >= REE_CUDA_matvec_columns_32_1 &&
             encoding->steps[s].kernel <= REE_CUDA_matvec_rows_8_8) ||
            (encoding->steps[s].kernel >= REE_CUDA_matvec_int8_4_1 &&
             encoding->steps[s].kernel <= REE_CUDA_matvec_int8_8_8))
            return true;
    return false;
}

struct test {
    struct ree_cuda_tested *entry;
    const struct ree_dispatch *dispatch;
    const struct ree_cuda_encoding *encoding; // the dispatch's own encoding
    bool passed[REE_CUDA_MAX_STEPS];          // for each of the entry's ways
    char what[REE_TWIN_TEXT_SIZE];            // first difference found; "": none so far
};

static bool all_passed(const struct test *test) {
    for (uint32_t w = 0; w < test->entry->n_ways; w++)
        if (!test->passed[w]) return false;
    return true;
}

static enum ree_status run_twin(struct ree_cuda *cuda, struct test *test, struct ree_twin *twin,
                                const struct ree_cuda_encoding *encoding, struct ree_error *err) {
    struct ree_device_program *program = NULL;
    const struct ree_dispatch *d = &twin->dispatch;
    const struct ree_program source = {
        .dispatches = d, .n_dispatches = 1, .n_slots = d->n_operands};
    REE_TRY(ree_cuda_program_assemble(cuda, &source, encoding, &program, err));
    enum ree_status status = ree_twin_run(&cuda->base, twin, program, test->what, err);
    ree_cuda_program_destroy(cuda, program);
    cuda->n_tests_run++;
    return status;
}

// Encodes the twin's dispatch d with the current limits, and runs the twin if the encoding uses a
// way of the entry that has not been tested yet. If twin is NULL, only marks such ways as passed.
static enum ree_status try_encoding(struct ree_cuda *cuda, struct test *test,
                                    const struct ree_dispatch *d, struct ree_twin *twin,
                                    struct ree_error *err) {
    struct ree_cuda_encoding encoding;
    struct way ways[REE_CUDA_MAX_STEPS];
    REE_TRY(ree_cuda_encode_form(cuda, d, test->encoding->form, &encoding, err));
    const uint32_t n_ways = ways_of(d->op, &encoding, ways);
    bool helps = false, covers[REE_CUDA_MAX_STEPS] = {false};
    for (uint32_t w = 0; w < test->entry->n_ways; w++)
        for (uint32_t i = 0; i < n_ways; i++)
            if (!test->passed[w] && same_way(&ways[i], &test->entry->ways[w]))
                helps = covers[w] = true;
    if (helps && twin) REE_TRY(run_twin(cuda, test, twin, &encoding, err));
    for (uint32_t w = 0; w < test->entry->n_ways; w++)
        test->passed[w] = test->passed[w] || covers[w];
    return REE_OK;
}

static enum ree_status try_views(struct ree_cuda *cuda, struct test *test,
                                 const struct ree_dispatch *d, struct ree_twin *twin,
                                 struct ree_error *err) {
    const struct ree_cuda_limits own = cuda->limits;
    enum ree_status status = REE_OK;
    for (uint32_t forced = 0; forced < 2; forced++)
        for (uint32_t v = 0; v < N_VIEWS; v++) {
            if (status != REE_OK || test->what[0] || all_passed(test)) break;
            // View 3 changes only matvec kernels. View 5 is only for rows: without shared memory a
            // product has no tile.
            const enum ree_repop op = test->dispatch->op;
            if ((v == 3 && !is_matvec(test->encoding)) ||
                (v == 5 && op != REE_REPOP_SOFTMAX && op != REE_REPOP_NORM))
                continue;
            set_view(cuda, &own, op, v);
            if (forced && !force_plan(cuda, test->encoding)) break;
            status = try_encoding(cuda, test, d, twin, err);
        }
    cuda->limits = own;
    return status;
}

static enum ree_status run_test(struct ree_cuda *cuda, struct test *test, struct ree_error *err) {
    struct ree_twin twin;
    const struct ree_twin_size size = size_of(cuda);
    enum ree_status status = ree_twin_init(&twin, test->dispatch, &size, err);
    if (status == REE_OK) status = try_views(cuda, test, &twin.dispatch, &twin, err);
    ree_twin_finish(&twin);
    return status;
}

bool ree_cuda_twin_reaches(struct ree_cuda *cuda, const struct ree_dispatch *dispatch) {
    struct ree_error err;
    struct ree_dispatch d;
    struct ree_cuda_encoding encoding;
    struct ree_cuda_tested entry = {0};
    struct test test = {.entry = &entry, .dispatch = dispatch, .encoding = &encoding};
    const struct ree_twin_size size = size_of(cuda);
    if (ree_cuda_encode_form(cuda, dispatch, REE_CUDA_COMPILED, &encoding, &err) != REE_OK ||
        ree_twin_dispatch(dispatch, &size, &d, &err) != REE_OK ||
        ree_dispatch_check(&d, &err) != REE_OK)
        return false;
    entry.n_ways = ways_of(dispatch->op, &encoding, entry.ways);
    return try_views(cuda, &test, &d, NULL, &err) == REE_OK && all_passed(&test);
}

// Formats "matmul_widen, matmul_64x64: operand 2, byte 0 is ..., not ...", or for a compiled
// expression "mul_f32, add_f32, compiled: ...".
static void describe(const struct ree_cuda_tested *entry, const char *what,
                     char out[REE_TWIN_TEXT_SIZE]) {
    const struct ree_expr *expr = &entry->twin.params.map.expr;
    const bool is_compiled = entry->ways[0].jit != NULL;
    const uint32_t n_names = is_compiled ? expr->n_instrs : entry->n_ways;
    size_t n = 0;
    for (uint32_t i = 0; i < n_names && n < REE_TWIN_TEXT_SIZE / 2; i++)
        n += (size_t)snprintf(out + n, REE_TWIN_TEXT_SIZE - n, "%s%s", i ? ", " : "",
                              is_compiled
                                  ? ree_map_op_infos[expr->instrs[i].op].name
                                  : ree_cuda_kernel_name(entry->ways[i].kernel) + strlen("ree_"));
    if (is_compiled)
        n += (size_t)snprintf(out + n, REE_TWIN_TEXT_SIZE - n, "%s, compiled",
                              n_names ? "" : "no operation");
    snprintf(out + n, REE_TWIN_TEXT_SIZE - n, ": %s", what);
}

static void hash_text_key(struct ree_hasher *hasher, const struct ree_dispatch *map) {
    struct ree_cuda_expr prepared;
    struct ree_cuda_ptx_key key;
    ree_cuda_expr_prepare(&map->params.map.expr, false, &prepared);
    ree_cuda_ptx_key(map, &prepared, &key);
    ree_hasher_update(hasher, &key, sizeof key);
}

// Computes the record's key. The binary's build ID in `identity` covers its kernels and the twin's
// values.
static bool key_of(const struct ree_cuda *cuda, const struct ree_cuda_tested *entry,
                   unsigned char key[REE_SHA256_SIZE]) {
    struct ree_hasher *hasher = ree_hasher_create("ree-cuda-selftest/1");
    if (!hasher) return false;
    ree_hasher_update(hasher, cuda->identity, sizeof cuda->identity);
    ree_hasher_update(hasher, &entry->twin.op, sizeof entry->twin.op);
    for (uint32_t i = 0; i < entry->twin.n_operands; i++) {
        const struct ree_operand *operand = &entry->twin.operands[i];
        ree_hasher_update(hasher, &operand->offset, sizeof operand->offset);
        ree_hasher_update(hasher, &operand->size, sizeof operand->size);
    }
    ree_hasher_update(hasher, &entry->twin.params, ree_repop_params_size(entry->twin.op));
    for (uint32_t w = 0; w < entry->n_ways; w++) {
        const struct way *way = &entry->ways[w];
        const uint32_t numbers[] = {way->jit != NULL, (uint32_t)way->kernel, way->mode};
        ree_hasher_update(hasher, numbers, sizeof numbers);
        if (way->jit) hash_text_key(hasher, &entry->twin);
    }
    ree_hasher_digest(hasher, key);
    return true;
}

// Decides the entry's state.
static enum ree_status judge(struct ree_cuda *cuda, struct test *test, struct ree_error *err) {
    struct ree_cuda_tested *entry = test->entry;
    unsigned char key[REE_SHA256_SIZE];
    char text[REE_TWIN_TEXT_SIZE];
    const bool has_key = key_of(cuda, entry, key);
    const struct ree_test_entry *found = has_key ? ree_test_record_find(&cuda->tests, key) : NULL;
    if (found && found->state == REE_TEST_PASSED) {
        entry->state = REE_TEST_PASSED;
        return REE_OK;
    }
    REE_TRY(run_test(cuda, test, err));
    if (test->what[0]) {
        entry->state = REE_TEST_FAILED;
        describe(entry, test->what, text);
        ree_facts_add(&cuda->facts, "self-test", "failed", "%s", text);
        return REE_OK;
    }
    entry->state = all_passed(test) ? REE_TEST_PASSED : REE_TEST_IMPOSSIBLE;
    if (entry->state == REE_TEST_PASSED) {
        // Failures are not recorded: the calling program's floating-point modes may be the cause.
        if (has_key) ree_test_record_add(&cuda->tests, key, REE_TEST_PASSED, NULL);
        return REE_OK;
    }
    for (uint32_t w = 0; w < entry->n_ways; w++)
        if (!test->passed[w] && cuda->n_untested++ == 0)
            ree_facts_add(&cuda->facts, "self-test", "not tested", "%s, mode %u",
                          ree_cuda_kernel_name(entry->ways[w].kernel), entry->ways[w].mode);
    return REE_OK;
}

static uint32_t bucket_of(const struct ree_dispatch *twin) {
    uint64_t hash = twin->op;
    const unsigned char *bytes = (const unsigned char *)&twin->params;
    for (size_t i = 0; i + 8 <= ree_repop_params_size(twin->op); i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, 8);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    return (uint32_t)(hash >> 32) % REE_CUDA_TEST_BUCKETS;
}

static bool is_entry_of(const struct ree_cuda_tested *entry, const struct ree_dispatch *twin,
                        const struct way *ways, uint32_t n_ways) {
    if (entry->twin.op != twin->op || entry->n_ways != n_ways ||
        entry->twin.n_operands != twin->n_operands ||
        memcmp(&entry->twin.params, &twin->params, ree_repop_params_size(twin->op)) != 0)
        return false;
    for (uint32_t i = 0; i < twin->n_operands; i++)
        if (entry->twin.operands[i].offset != twin->operands[i].offset ||
            entry->twin.operands[i].size != twin->operands[i].size)
            return false;
    for (uint32_t w = 0; w < n_ways; w++)
        if (!same_way(&entry->ways[w], &ways[w])) return false;
    return true;
}

// Sets *out_passed to whether the code that the encoding runs computes the CPU's bits.
static enum ree_status test(struct ree_cuda *cuda, const struct ree_dispatch *dispatch,
                            const struct ree_cuda_encoding *encoding, bool *out_passed,
                            struct ree_error *err) {
    struct ree_dispatch twin;
    struct way ways[REE_CUDA_MAX_STEPS];
    const struct ree_twin_size size = size_of(cuda);
    const uint32_t n_ways = ways_of(dispatch->op, encoding, ways);
    // cuBLAS products promise no bits, so they are not tested.
    *out_passed = n_ways == 0 || encoding->by_cublas;
    if (*out_passed) return REE_OK;
    enum ree_status status = ree_twin_dispatch(dispatch, &size, &twin, err);
    // There is no twin, because it would have no terms or no valid index. The host computes the
    // dispatch.
    if (status == REE_UNSUPPORTED) return REE_OK;
    REE_TRY(status);
    struct ree_cuda_tested **bucket = &cuda->tested[bucket_of(&twin)], *entry = *bucket;
    while (entry && !is_entry_of(entry, &twin, ways, n_ways))
        entry = entry->next;
    if (!entry) {
        entry = ree_alloc_zeroed(1, sizeof *entry);
        if (!entry) return ree_fail(err, REE_NO_MEMORY, "no memory for a self-test");
        entry->twin = twin;
        entry->n_ways = n_ways;
        memcpy(entry->ways, ways, sizeof ways);
        struct test test = {.entry = entry, .dispatch = dispatch, .encoding = encoding};
        status = judge(cuda, &test, err);
        if (status != REE_OK) {
            ree_free(entry);
            return ree_fail_prefix(err, "the self-test of RepOp %s", ree_repop_name(dispatch->op));
        }
        entry->next = *bucket;
        *bucket = entry;
    }
    *out_passed = entry->state == REE_TEST_PASSED;
    return REE_OK;
}

enum ree_status ree_cuda_encode_tested(struct ree_cuda *cuda, const struct ree_dispatch *dispatch,
                                       struct ree_cuda_encoding *out, struct ree_error *err) {
    for (int form = REE_CUDA_COMPILED; form < REE_CUDA_ON_HOST; form++) {
        bool passed;
        if (form == REE_CUDA_COMPILED && (dispatch->op != REE_REPOP_MAP || cuda->no_jit)) continue;
        REE_TRY(ree_cuda_encode_form(cuda, dispatch, (enum ree_cuda_form)form, out, err));
        REE_TRY(test(cuda, dispatch, out, &passed, err));
        if (passed) return REE_OK;
    }
    return ree_cuda_encode_form(cuda, dispatch, REE_CUDA_ON_HOST, out, err);
}

void ree_cuda_selftest_init(struct ree_cuda *cuda, const char *cache_dir) {
    struct ree_hasher *hasher = ree_hasher_create("ree-cuda-identity/1");
    bool is_named = hasher != NULL;
    if (hasher) {
        const uint32_t numbers[] = {(uint32_t)cuda->driver.version, cuda->capability,
                                    REE_TWIN_VERSION};
        ree_hasher_update(hasher, numbers, sizeof numbers);
        ree_hasher_update(hasher, cuda->base.name, strlen(cuda->base.name) + 1);
        is_named = ree_hash_binary(hasher, (const void *)(uintptr_t)&ree_cuda_images) &&
                   ree_hash_file_of(hasher, (const void *)(uintptr_t)cuda->driver.init);
        ree_hash_driver_environment(hasher);
        ree_hasher_digest(hasher, cuda->identity);
    }
    // The emulator's results are useless for a user's next start.
    bool keeps = is_named && (cache_dir || !cuda->driver.emulated);
    ree_test_record_init(&cuda->tests, keeps ? ree_cache_path(cache_dir, "cuda.tests") : NULL);
}

void ree_cuda_selftest_finish(struct ree_cuda *cuda) {
    ree_test_record_finish(&cuda->tests);
    for (uint32_t b = 0; b < REE_CUDA_TEST_BUCKETS; b++)
        while (cuda->tested[b]) {
            struct ree_cuda_tested *next = cuda->tested[b]->next;
            ree_free(cuda->tested[b]);
            cuda->tested[b] = next;
        }
}
