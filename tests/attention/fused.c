// The RepOp attention gives the bits of its separate steps also if queries, keys, values and masks
// contain infinities and NaN, if queries are located before or after all keys, and for narrow
// types. (run_model runs every model fused and step by step.)
#include "run_model.h"
#include "test.h"
#include "splitmix.h"

#include <math.h>
#include <stdio.h>

static struct splitmix rng = {11};

static uint32_t below(uint32_t n) {
    return splitmix_below(&rng, n);
}

// On average, one element in `one_in` is an infinity or NaN; 0 means none.
static struct ree_tensor numbers(enum ree_dtype dtype, const int64_t *dims, uint32_t one_in) {
    static const float specials[] = {INFINITY, -INFINITY, NAN};
    static const uint16_t narrow_specials[] = {0x7C00, 0xFC00, 0x7E00};
    if (dtype == REE_F32) {
        struct ree_tensor t = tensor_random(&rng.state, 4, dims);
        for (size_t i = 0; one_in && i < t.nbytes / 4; i++)
            if (below(one_in) == 0) ((float *)t.data)[i] = specials[below(3)];
        return t;
    }
    struct ree_tensor t = tensor_new(dtype, 4, dims);
    for (size_t i = 0; i < t.nbytes / 2; i++) { // float16, 2^-5 to 2
        uint32_t bits = (below(2) << 15) | ((10 + below(6)) << 10) | below(1024);
        bool special = one_in && below(one_in) == 0;
        ((uint16_t *)t.data)[i] = special ? narrow_specials[below(3)] : (uint16_t)bits;
    }
    return t;
}

struct sizes {
    int64_t batch, n_heads, n_kv_heads, q_len, kv_len, head_dim, v_head_dim;
};

// Checks (y) = call, a call of Attention(q, k, v, ...). `signature` declares the `extra` tensors,
// which follow q, k and v.
static void check(const struct sizes *s, enum ree_dtype dtype, const char *signature,
                  const char *call, struct ree_tensor *extra, size_t n_extra) {
    static const uint32_t rates[] = {0, 3000, 400, 40};
    char model[512];
    const char *type = dtype == REE_F32 ? "float32" : "float16";
    snprintf(model, sizeof model,
             "opset 24 (q:%s[b,h,t,d], k:%s[b,g,s,d], v:%s[b,g,s,e]%s) -> (y) { y = %s }", type,
             type, type, signature, call);
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        // Special values in the values only, then in all tensors.
        for (int all = 0; all < 2; all++) {
            uint32_t others = all ? rates[i] : 0;
            struct ree_tensor in[4], y;
            in[0] =
                numbers(dtype, (int64_t[]){s->batch, s->n_heads, s->q_len, s->head_dim}, others);
            in[1] = numbers(dtype, (int64_t[]){s->batch, s->n_kv_heads, s->kv_len, s->head_dim},
                            others);
            in[2] = numbers(dtype, (int64_t[]){s->batch, s->n_kv_heads, s->kv_len, s->v_head_dim},
                            rates[i]);
            if (n_extra) in[3] = extra[0];
            run_model(model, in, 3 + n_extra, &y);
            ree_tensor_finish(&y);
            tensors_finish(in, 3);
        }
    }
}

static void check_all(const struct sizes *s) {
    static const char *const calls[] = {
        "Attention(q, k, v)",
        "Attention(q, k, v) {is_causal=1}",
        "Attention(q, k, v) {is_causal=1, scale=1.0, softcap=1.5}",
        "Attention(q, k, v) {is_causal=1, left_window_size=70}",
        "Attention(q, k, v) {left_window_size=5, right_window_size=3}",
        "Attention(q, k, v) {right_window_size=300}",
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        check(s, REE_F32, "", calls[i], NULL, 0);
        check(s, REE_F16, "", calls[i], NULL, 0);
    }
    struct ree_tensor bias = numbers(REE_F32, (int64_t[]){1, s->n_heads, s->q_len, s->kv_len}, 9);
    check(s, REE_F32, ", m:float32[o,h,t,s]", "Attention(q, k, v, m) {is_causal=1}", &bias, 1);
    ree_tensor_finish(&bias);
    struct ree_tensor mask = tensor_new(REE_BOOL, 2, (int64_t[]){s->q_len, s->kv_len});
    for (size_t i = 0; i < mask.nbytes; i++)
        ((uint8_t *)mask.data)[i] = below(3) > 0;
    check(s, REE_F16, ", m:bool[t,s]", "Attention(q, k, v, m) {left_window_size=40}", &mask, 1);
    ree_tensor_finish(&mask);
    int64_t n_keys[4];
    for (int64_t i = 0; i < s->batch; i++)
        n_keys[i] = below((uint32_t)s->kv_len + 1);
    struct ree_tensor valid = tensor_ints((size_t)s->batch, n_keys);
    check(s, REE_F32, ", n:int64[b]", "Attention(q, k, v, _, _, _, n) {is_causal=1}", &valid, 1);
    check(s, REE_F16, ", n:int64[b]", "Attention(q, k, v, _, _, _, n)", &valid, 1);
    ree_tensor_finish(&valid);
}

int main(int argc, char **argv) {
    static const struct sizes sizes[] = {
        {2, 4, 2, 1, 530, 16, 24}, {1, 6, 2, 40, 300, 33, 8}, {1, 2, 2, 600, 270, 4, 5},
        {1, 20, 1, 3, 700, 8, 8},  {2, 2, 1, 5, 1, 300, 3},
    };
    if (!run_start(argc, argv)) return 77;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check_all(&sizes[i]);
    CHECK(run_finish());
    return test_finish();
}
