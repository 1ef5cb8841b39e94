// Every kernel for a matmul, conv, attention, softmax, norm or topk with the shapes of real models
// has a twin, on small and on large GPUs. The test only encodes dispatches and twins and runs
// nothing, so it needs no GPU. Without a twin, a dispatch would run on the host instead
// (cuda/README.md, "Self-tests").
//
// Usage: cuda_cover [N]: N dispatches of each RepOp and GPU.
#include "device/cuda/cuda.h"
#include "device_cases.h"

static const struct gpu {
    const char *name;
    uint32_t n_multiprocessors, max_shared, shared_per_multiprocessor;
} gpus[] = {
    {"T4", 40, 64u << 10, 64u << 10},
    {"RTX 3060", 28, 99u << 10, 100u << 10},
    {"A100", 108, 163u << 10, 164u << 10},
    {"H100", 132, 227u << 10, 228u << 10},
};

// Returns a typical length in models (hidden sizes, heads, vocabularies) or any length.
static uint32_t length(struct rng *rng) {
    static const uint32_t usual[] = {
        1,   3,   7,   8,   14,  16,  28,  32,  48,   56,   64,   77,   96,   100,   112,   128,
        197, 224, 256, 288, 320, 512, 576, 768, 1024, 1500, 2048, 2880, 4096, 11008, 28672, 50257};
    return rng_one_in(rng, 3) ? 1 + rng_below(rng, 3000)
                              : rng_of(rng, sizeof usual / sizeof *usual, usual);
}

static void make_matmul(struct rng *rng, struct ree_dispatch *d) {
    static const uint32_t types[] = {REE_F32, REE_F16, REE_BF16, REE_I8, REE_U8};
    struct ree_matmul_params *p = &d->params.matmul;
    p->m = 1 + (rng_one_in(rng, 2) ? rng_below(rng, 12) : length(rng) % 4096);
    p->n = length(rng);
    p->k = length(rng);
    const bool turned = rng_one_in(rng, 2);
    p->a_dtype = rng_one_in(rng, 2) ? REE_F32 : rng_of(rng, 5, types);
    p->b_dtype = rng_of(rng, 5, types);
    const bool bytes =
        ree_dtype_size((enum ree_dtype)p->a_dtype) + ree_dtype_size((enum ree_dtype)p->b_dtype) ==
        2;
    p->dtype = bytes ? REE_I32 : REE_F32;
    p->n_batch = 1;
    p->a_stride_m = (int32_t)p->k, p->a_stride_k = 1;
    p->b_stride_k = turned ? 1 : (int32_t)p->n, p->b_stride_n = turned ? (int32_t)p->k : 1;
    d->n_operands = 3;
    if (!bytes && rng_one_in(rng, 3)) { // blocks of weights
        p->b_dtype = REE_U8;
        p->b_block = 16u << rng_below(rng, 5);
        p->b_bits = rng_one_in(rng, 2) ? 4 : 8;
        p->has_zero_points = rng_one_in(rng, 2);
        p->b_stride_k = p->b_stride_n = 0;
        d->n_operands = 4 + p->has_zero_points;
        if (rng_one_in(rng, 2)) { // and of activations
            p->a_dtype = REE_I8;
            p->a_block = 16u << rng_below(rng, 5);
            d->n_operands++;
        }
    }
}

static void make_conv(struct rng *rng, struct ree_dispatch *d) {
    struct ree_conv_params *p = &d->params.conv;
    const uint32_t size = 1 + length(rng) % 224, kernel = 1 + 2 * rng_below(rng, 4);
    p->n = 1 + rng_below(rng, 3);
    p->groups = rng_one_in(rng, 4) ? 32 : 1;
    p->c = 1 + length(rng) % 512;
    p->m = 1 + length(rng) % 512;
    p->x_dtype = p->w_dtype = REE_F32;
    for (uint32_t a = 0; a < 3; a++) {
        p->kernel[a] = a == 0 ? 1 : kernel;
        p->stride[a] = a == 0 ? 1 : 1 + rng_below(rng, 2);
        p->dilation[a] = 1;
        p->pad[a] = (int32_t)p->kernel[a] / 2;
        p->in[a] = a == 0 ? 1 : size;
        p->out[a] = (p->in[a] - 1) / p->stride[a] + 1;
    }
    d->n_operands = 3;
}

static void make_attention(struct rng *rng, struct ree_dispatch *d) {
    static const uint32_t types[] = {REE_F32, REE_F16, REE_BF16}, sizes[] = {32, 64, 80, 128, 256};
    struct ree_attention_params *p = &d->params.attention;
    p->batch = 1 + rng_below(rng, 2);
    p->n_kv_heads = 1 + rng_below(rng, 8);
    p->n_heads = p->n_kv_heads * (1 + rng_below(rng, 4));
    p->q_len = rng_one_in(rng, 2) ? 1 + rng_below(rng, 3) : 1 + length(rng) % 2048;
    p->kv_len = p->q_len + length(rng) % 4096;
    p->head_dim = p->v_head_dim = rng_of(rng, 5, sizes);
    p->k_dtype = p->v_dtype = rng_of(rng, 3, types);
    p->scale = 0.125f;
    p->left = -1, p->right = rng_one_in(rng, 2) ? 0 : -1;
    p->start = (int32_t)(p->kv_len - p->q_len);
    const int32_t row = (int32_t)p->head_dim, rows = (int32_t)p->n_heads * row;
    const int32_t kv = (int32_t)p->kv_len * row, kv_all = (int32_t)p->n_kv_heads * kv;
    const int32_t q[4] = {(int32_t)p->q_len * rows, row, rows, 1}, k[4] = {kv_all, kv, row, 1};
    memcpy(p->q_strides, q, sizeof q);
    memcpy(p->k_strides, k, sizeof k);
    memcpy(p->v_strides, k, sizeof k);
    memcpy(p->out_strides, q, 3 * sizeof *q);
    d->n_operands = 4;
}

static void make_rows(struct rng *rng, struct ree_dispatch *d) {
    const uint32_t n_rows = length(rng), n = length(rng) * (rng_one_in(rng, 4) ? 5 : 1);
    if (d->op == REE_REPOP_SOFTMAX) {
        d->params.softmax.outer = n_rows;
        d->params.softmax.k = n;
        d->params.softmax.inner = rng_one_in(rng, 4) ? 77 : 1;
        d->n_operands = 2;
        return;
    }
    struct ree_norm_params *p = &d->params.norm;
    p->rows = n_rows;
    p->cols = n;
    p->epsilon = 1e-5f;
    p->has_scale = p->has_bias = p->scale_col_stride = 1;
    p->scale_row_div = p->scale_row_mod = 1;
    d->n_operands = 4;
}

static void make_topk(struct rng *rng, struct ree_dispatch *d) {
    struct ree_topk_params *p = &d->params.topk;
    p->dtype = REE_F32;
    p->outer = 1 + rng_below(rng, 20);
    p->n = length(rng);
    p->inner = rng_one_in(rng, 3) ? 1 + rng_below(rng, 50) : 1;
    p->k = 1 + rng_below(rng, p->n < 3000 ? p->n : 3000);
    p->largest = 1;
    d->n_operands = 3;
    d->n_outputs = 2;
}

static const struct maker {
    enum ree_repop op;
    void (*make)(struct rng *rng, struct ree_dispatch *d);
} makers[] = {
    {REE_REPOP_MATMUL, make_matmul},       {REE_REPOP_CONV, make_conv},
    {REE_REPOP_ATTENTION, make_attention}, {REE_REPOP_SOFTMAX, make_rows},
    {REE_REPOP_NORM, make_rows},           {REE_REPOP_TOPK, make_topk},
};

int main(int argc, char **argv) {
    const uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : 1000;
    struct ree_device_options options = {.size = sizeof options, .cache_dir = ""};
    struct ree_device *device;
    struct ree_error err;
    enum ree_status status = ree_cuda_device_open("", &options, &device, &err);
    if (status == REE_UNAVAILABLE) return test_skip(err.message);
    REQUIRE(status == REE_OK);
    struct ree_cuda *cuda = ree_cuda_of(device);
    cuda->has_large_twins = true;
    for (size_t g = 0; g < sizeof gpus / sizeof *gpus; g++) {
        cuda->limits.n_multiprocessors = gpus[g].n_multiprocessors;
        cuda->limits.max_shared = gpus[g].max_shared;
        cuda->limits.shared_per_multiprocessor = gpus[g].shared_per_multiprocessor;
        for (size_t m = 0; m < sizeof makers / sizeof *makers; m++) {
            uint32_t n_missed = 0;
            for (uint32_t i = 0; i < n; i++) {
                struct rng rng = {.state = i * 7919 + makers[m].op};
                struct ree_dispatch d;
                memset(&d, 0, sizeof d);
                d.op = makers[m].op;
                d.n_outputs = 1;
                makers[m].make(&rng, &d);
                for (uint32_t o = 0; o < d.n_operands; o++)
                    d.operands[o].slot = o;
                if (ree_cuda_twin_reaches(cuda, &d)) continue;
                struct ree_strbuf text;
                ree_strbuf_init(&text);
                ree_dispatch_print(&d, &text);
                if (n_missed++ < 2) fprintf(stderr, "no twin: %s\n", text.data ? text.data : "");
                ree_strbuf_finish(&text);
            }
            CHECK_MSG(n_missed == 0, "%s: %u of %u dispatches of %s have no twin", gpus[g].name,
                      n_missed, n, ree_repop_name(makers[m].op));
        }
    }
    ree_device_destroy(device);
    return test_finish();
}
