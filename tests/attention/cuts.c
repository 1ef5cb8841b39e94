// The result of attention does not depend on how a prompt is cut, on the other batches, or on the
// contents of a cache after the keys that take part.
#include "run_model.h"
#include "test.h"

#include <math.h>

#define SIGNATURE                                                                                  \
    "opset 24 (q:float32[b,h,t,d], k:float32[b,g,t,d], v:float32[b,g,t,e], "                       \
    "pk:float32[b,g,p,d], pv:float32[b,g,p,e]) -> (y, nk, nv) "

struct shape {
    int64_t batch, n_heads, n_kv_heads, head_dim, v_head_dim;
};

static void make_inputs(const struct shape *s, int64_t len, struct ree_tensor in[3]) {
    uint64_t seed = 7;
    in[0] = tensor_random(&seed, 4, (int64_t[]){s->batch, s->n_heads, len, s->head_dim});
    in[1] = tensor_random(&seed, 4, (int64_t[]){s->batch, s->n_kv_heads, len, s->head_dim});
    in[2] = tensor_random(&seed, 4, (int64_t[]){s->batch, s->n_kv_heads, len, s->v_head_dim});
}

// Runs tokens [from, to) with the cache past[2], which it replaces by the new one.
static struct ree_tensor advance(const char *model, const struct ree_tensor all[3], int64_t from,
                                 int64_t to, struct ree_tensor past[2]) {
    struct ree_tensor in[5], out[3];
    for (int i = 0; i < 3; i++)
        in[i] = tensor_slice(&all[i], 2, from, to);
    in[3] = past[0];
    in[4] = past[1];
    run_model(model, in, 5, out);
    tensors_finish(in, 5);
    past[0] = out[1];
    past[1] = out[2];
    return out[0];
}

// Compares a whole prompt with the same prompt cut at `cuts` (ascending; the last is its length).
static void check_cuts(const char *model, const struct shape *s, const int64_t *cuts, size_t n) {
    int64_t len = cuts[n - 1];
    struct ree_tensor all[3], past[2], whole;
    make_inputs(s, len, all);
    past[0] = tensor_slice(&all[1], 2, 0, 0);
    past[1] = tensor_slice(&all[2], 2, 0, 0);
    whole = advance(model, all, 0, len, past);
    CHECK(tensor_equal(&past[0], &all[1], "the key cache"));
    CHECK(tensor_equal(&past[1], &all[2], "the value cache"));
    tensors_finish(past, 2);

    past[0] = tensor_slice(&all[1], 2, 0, 0);
    past[1] = tensor_slice(&all[2], 2, 0, 0);
    for (size_t i = 0; i < n; i++) {
        int64_t from = i ? cuts[i - 1] : 0;
        struct ree_tensor y = advance(model, all, from, cuts[i], past);
        CHECK_MSG(slice_equal(&whole, 2, from, cuts[i], &y, "y"), "tokens %lld to %lld of %lld",
                  (long long)from, (long long)cuts[i], (long long)len);
        ree_tensor_finish(&y);
    }
    tensors_finish(past, 2);
    ree_tensor_finish(&whole);
    tensors_finish(all, 3);
}

// Near the ends of chunks of 256 keys token by token, elsewhere in longer steps.
static void test_cuts(void) {
    static const int64_t cuts[] = {1,   2,   3,   100, 253, 254, 255, 256, 257, 258,
                                   400, 511, 512, 513, 514, 600, 601, 767, 768, 769};
    const size_t n = sizeof cuts / sizeof cuts[0];
    const struct shape grouped = {2, 6, 2, 16, 24}, plain = {1, 3, 3, 32, 16},
                       shared = {1, 4, 1, 8, 8};
    check_cuts(SIGNATURE "{ y, nk, nv = Attention(q, k, v, _, pk, pv) {is_causal=1} }", &grouped,
               cuts, n);
    check_cuts(SIGNATURE "{ y, nk, nv = Attention(q, k, v, _, pk, pv) "
                         "{is_causal=1, softcap=2.5, scale=0.3} }",
               &plain, cuts, n);
    check_cuts(SIGNATURE "{ y, nk, nv = Attention(q, k, v, _, pk, pv) "
                         "{is_causal=1, left_window_size=130} }",
               &shared, cuts, n);
}

// Each batch run separately gives its part of the whole result.
static void test_batch(void) {
    static const char model[] =
        "opset 24 (q:float32[b,h,t,d], k:float32[b,g,s,d], v:float32[b,g,s,e], "
        "m:float32[b,1,t,s]) -> (y) { y = Attention(q, k, v, m) {is_causal=1} }";
    const int64_t batch = 3, len = 300;
    uint64_t seed = 3;
    struct ree_tensor in[4] = {tensor_random(&seed, 4, (int64_t[]){batch, 8, len, 16}),
                               tensor_random(&seed, 4, (int64_t[]){batch, 2, len, 16}),
                               tensor_random(&seed, 4, (int64_t[]){batch, 2, len, 8}),
                               tensor_random(&seed, 4, (int64_t[]){batch, 1, len, len})};
    struct ree_tensor whole, part[4], y;
    run_model(model, in, 4, &whole);
    for (int64_t b = 0; b < batch; b++) {
        for (int i = 0; i < 4; i++)
            part[i] = tensor_slice(&in[i], 0, b, b + 1);
        run_model(model, part, 4, &y);
        CHECK_MSG(slice_equal(&whole, 0, b, b + 1, &y, "y"), "batch %lld", (long long)b);
        ree_tensor_finish(&y);
        tensors_finish(part, 4);
    }
    ree_tensor_finish(&whole);
    tensors_finish(in, 4);
}

// Each batch uses the first positions of a cache of 700 positions. The result equals that of a
// cache with only those positions, whatever the other keys are; the other values must be finite.
static void test_padded_cache(void) {
    static const char padded[] =
        "opset 24 (q:float32[b,h,t,d], k:float32[b,g,s,d], v:float32[b,g,s,e], n:int64[b]) -> (y) "
        "{ y = Attention(q, k, v, _, _, _, n) {is_causal=1} }";
    static const char exact[] =
        "opset 24 (q:float32[b,h,t,d], k:float32[b,g,t,d], v:float32[b,g,t,e], "
        "pk:float32[b,g,p,d], pv:float32[b,g,p,e]) -> (y) "
        "{ y = Attention(q, k, v, _, pk, pv) {is_causal=1} }";
    static const int64_t used[3] = {5, 256, 513};
    const int64_t places = 700, t = 3;
    uint64_t seed = 5;
    struct ree_tensor in[4] = {tensor_random(&seed, 4, (int64_t[]){3, 4, t, 16}),
                               tensor_random(&seed, 4, (int64_t[]){3, 2, places, 16}),
                               tensor_random(&seed, 4, (int64_t[]){3, 2, places, 8}),
                               tensor_ints(3, used)};
    float *k = in[1].data, *v = in[2].data;
    for (int64_t row = 0; row < 3 * 2 * places; row++) {
        if (row % places < used[row / places / 2]) continue;
        k[row * 16] = row % 3 ? INFINITY : NAN;
        v[row * 8] = 3e38f;
    }
    struct ree_tensor whole, y, part[5];
    run_model(padded, in, 4, &whole);
    for (int64_t b = 0; b < 3; b++) {
        struct ree_tensor batch[3];
        for (int i = 0; i < 3; i++)
            batch[i] = tensor_slice(&in[i], 0, b, b + 1);
        part[0] = tensor_slice(&batch[0], 2, 0, t);
        for (int i = 1; i < 3; i++) {
            part[i] = tensor_slice(&batch[i], 2, used[b] - t, used[b]);
            part[i + 2] = tensor_slice(&batch[i], 2, 0, used[b] - t);
        }
        run_model(exact, part, 5, &y);
        CHECK_MSG(slice_equal(&whole, 0, b, b + 1, &y, "y"), "%lld keys", (long long)used[b]);
        ree_tensor_finish(&y);
        tensors_finish(part, 5);
        tensors_finish(batch, 3);
    }
    ree_tensor_finish(&whole);
    tensors_finish(in, 4);
}

// Values in chunks that causality excludes are not read; values within an included chunk must be
// finite.
static void test_excluded_chunks(void) {
    static const char model[] =
        "opset 24 (q:float32[b,h,t,d], k:float32[b,h,t,d], v:float32[b,h,t,d], s:float32[t,t]) "
        "-> (y, w) { y, _, _, w = Attention(q, k, v, s) {is_causal=1, qk_matmul_output_mode=3} }";
    uint64_t seed = 13;
    struct ree_tensor in[4], y[4];
    for (int i = 0; i < 3; i++)
        in[i] = tensor_random(&seed, 4, (int64_t[]){1, 2, 600, 8});
    in[3] = tensor_random(&seed, 2, (int64_t[]){600, 600});
    run_model(model, in, 4, y);
    ((float *)in[2].data)[520 * 8] = INFINITY; // head 0, key 520
    run_model(model, in, 4, y + 2);
    struct ree_tensor before = tensor_slice(&y[2], 2, 0, 512);
    CHECK(slice_equal(&y[0], 2, 0, 512, &before, "queries of earlier chunks"));
    CHECK(tensor_equal(&y[1], &y[3], "weights"));
    const float *head = y[2].data;
    CHECK(isnan(head[513 * 8]) && head[520 * 8] == INFINITY && head[599 * 8] == INFINITY);
    ree_tensor_finish(&before);
    tensors_finish(y, 4);
    tensors_finish(in, 4);
}

// A boolean mask, a float mask of 0 and -inf, and a shorter cache are equivalent.
static void test_masks_agree(void) {
    static const char by_bool[] =
        "opset 23 (q:float32[b,h,t,d], k:float32[b,h,s,d], v:float32[b,h,s,d], m:bool[t,s]) -> (y) "
        "{ y = Attention(q, k, v, m) }";
    static const char by_float[] =
        "opset 23 (q:float32[b,h,t,d], k:float32[b,h,s,d], v:float32[b,h,s,d], m:float32[t,s]) "
        "-> (y) { y = Attention(q, k, v, m) }";
    static const char plain[] =
        "opset 23 (q:float32[b,h,t,d], k:float32[b,h,s,d], v:float32[b,h,s,d]) "
        "-> (y) { y = Attention(q, k, v) }";
    const int64_t t = 4, s = 300, kept = 261;
    uint64_t seed = 11;
    struct ree_tensor in[4] = {tensor_random(&seed, 4, (int64_t[]){1, 2, t, 16}),
                               tensor_random(&seed, 4, (int64_t[]){1, 2, s, 16}),
                               tensor_random(&seed, 4, (int64_t[]){1, 2, s, 16}),
                               tensor_new(REE_BOOL, 2, (int64_t[]){t, s})};
    struct ree_tensor bias = tensor_new(REE_F32, 2, (int64_t[]){t, s}), y[3], part[3];
    for (int64_t i = 0; i < t * s; i++) {
        bool allowed = i % s < kept && i / s != 2; // the third query attends to no key
        ((uint8_t *)in[3].data)[i] = allowed;
        ((float *)bias.data)[i] = allowed ? 0 : -INFINITY;
    }
    run_model(by_bool, in, 4, &y[0]);
    ree_tensor_finish(&in[3]);
    in[3] = bias;
    run_model(by_float, in, 4, &y[1]);
    CHECK(tensor_equal(&y[0], &y[1], "bool and float masks"));
    part[0] = tensor_slice(&in[0], 2, 0, t);
    part[1] = tensor_slice(&in[1], 2, 0, kept);
    part[2] = tensor_slice(&in[2], 2, 0, kept);
    run_model(plain, part, 3, &y[2]);
    // Queries that attend to no key get zeros.
    for (int64_t i = 0; i < 2 * t * 16; i++)
        if (i / 16 % t == 2) {
            CHECK(((uint32_t *)y[0].data)[i] == 0);
            ((float *)y[2].data)[i] = 0;
        }
    CHECK(tensor_equal(&y[0], &y[2], "masked keys and keys that are not there"));
    tensors_finish(part, 3);
    tensors_finish(y, 3);
    tensors_finish(in, 4);
}

int main(int argc, char **argv) {
    if (!run_start(argc, argv)) return 77;
    test_cuts();
    test_batch();
    test_padded_cache();
    test_excluded_chunks();
    test_masks_agree();
    CHECK(run_finish());
    return test_finish();
}
