// Twins are valid dispatches, and if results have strides, every result has its own element.
// Otherwise threads would write the same byte, and a verdict would depend on their order.
#include "device/selftest/twin.h"
#include "device_cases.h"

#include <stdlib.h>
#include <string.h>

#define N_CASES 1500

// Marks the elements that a view of up to 8 dimensions reaches. Returns whether each element is
// inside the buffer and was unmarked before.
static bool mark(uint8_t *marks, uint64_t n, uint32_t rank, const uint32_t *dims,
                 const int32_t *strides, int64_t offset) {
    uint32_t at[8] = {0};
    for (uint32_t d = 0; d < rank; d++)
        if (dims[d] == 0) return true;
    for (;;) {
        int64_t place = offset;
        for (uint32_t d = 0; d < rank; d++)
            place += (int64_t)at[d] * strides[d];
        if (place < 0 || (uint64_t)place >= n || marks[place]++) return false;
        uint32_t d = rank;
        while (d > 0 && ++at[d - 1] == dims[d - 1])
            at[--d] = 0;
        if (d == 0) return true;
    }
}

static bool has_places(const struct ree_dispatch *twin) {
    const struct ree_operand *last = &twin->operands[twin->n_operands - 1];
    uint32_t dims[8], rank = 4;
    int32_t strides[8], offset = 0;
    uint64_t n = last->size / 4;
    if (twin->op == REE_REPOP_COPY) {
        const struct ree_copy_params *p = &twin->params.copy;
        n = last->size / p->elem_size;
        rank = p->rank;
        offset = p->dst_offset;
        memcpy(dims, p->dims, rank * sizeof *dims);
        memcpy(strides, p->dst_strides, rank * sizeof *strides);
    } else {
        const struct ree_attention_params *p = &twin->params.attention;
        const uint32_t sizes[4] = {p->batch, p->n_heads, p->q_len, p->v_head_dim};
        memcpy(dims, sizes, sizeof sizes);
        memcpy(strides, p->out_strides, 3 * sizeof *strides);
        strides[3] = 1;
    }
    uint8_t *marks = calloc(n + 1, 1);
    bool ok = marks && mark(marks, n, rank, dims, strides, offset);
    free(marks);
    return ok;
}

// Strides of dimensions of size 1 have no meaning: models have 0 there.
static void zero_unit_strides(struct ree_attention_params *p) {
    const uint32_t q[4] = {p->batch, p->n_heads, p->q_len, p->head_dim};
    const uint32_t kv[4] = {p->batch, p->n_kv_heads, p->kv_len, 2};
    const uint32_t scores[4] = {p->batch, p->n_heads, p->q_len, p->kv_len};
    for (uint32_t d = 0; d < 4; d++) {
        if (q[d] == 1) p->q_strides[d] = 0;
        if (kv[d] == 1) p->k_strides[d] = p->v_strides[d] = 0;
        if (scores[d] == 1) p->allowed_strides[d] = p->bias_strides[d] = 0;
        if (scores[d] == 1 && d < 3) p->out_strides[d] = p->sink_strides[d] = 0;
    }
}

#define VULKAN                                                                                     \
    .elements = 1511, .columns = 37, .length = 603, .long_length = 1530, .long_from = 1024,        \
    .few_rows = 4, .rows = 19, .few_queries = 8, .keys = 301
#define CUDA                                                                                       \
    .elements = 1500, .length = 576, .few_rows = 9, .rows = 16, .few_queries = 31, .alignment = 64

static const struct ree_twin_size sizes[] = {
    {VULKAN},
    {VULKAN, .one_chunk = true, .keeps_ones = true}, // the weakest device
    {CUDA, .columns = 144},
    {CUDA, .columns = 32, .small = true}, // on the emulator
};

// Returns whether the case's twin, if it has one, is valid.
static bool is_right(const struct ree_dispatch *like, const struct ree_twin_size *size,
                     uint64_t *n_made, struct ree_error *err) {
    struct ree_dispatch twin;
    if (ree_twin_dispatch(like, size, &twin, err) != REE_OK) return true;
    ++*n_made;
    if (ree_dispatch_check(&twin, err) != REE_OK) return false;
    snprintf(err->message, sizeof err->message, "results share a place");
    bool strided = twin.op == REE_REPOP_COPY || twin.op == REE_REPOP_ATTENTION;
    return !strided || has_places(&twin);
}

int main(void) {
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int op = 0; op < REE_N_REPOPS; op++) {
            uint64_t first = 0, n_made = 0, n_wrong = 0;
            struct ree_error err, first_err = {0};
            for (uint64_t seed = 1; seed <= N_CASES; seed++) {
                struct rng rng = {.state = seed * 7919 + (uint64_t)op};
                struct test_case c = {0};
                if (case_generators[op](&rng, &c)) {
                    if (op == REE_REPOP_ATTENTION && seed % 2)
                        zero_unit_strides(&c.dispatch.params.attention);
                    if (!is_right(&c.dispatch, &sizes[s], &n_made, &err) && n_wrong++ == 0) {
                        first = seed;
                        first_err = err;
                    }
                }
                test_case_finish(&c);
            }
            CHECK_MSG(n_wrong == 0, "sizes %zu, %s: %llu of %llu twins, first of seed %llu: %s", s,
                      ree_repop_name((enum ree_repop)op), (unsigned long long)n_wrong,
                      (unsigned long long)n_made, (unsigned long long)first, first_err.message);
            CHECK(n_made > N_CASES / 4);
        }
    return test_finish();
}
