// Einsum over random equations equals the explicit sum exactly, for int64 and float32.
#include "node.h"
#include "test.h"
#include "splitmix.h"

#include <math.h>
#include <string.h>

#define N_LETTERS 5
#define MAX_TERMS 3

struct problem {
    char equation[64];
    uint32_t n_terms, ranks[MAX_TERMS];
    uint8_t letters[MAX_TERMS][4], out[N_LETTERS];
    uint32_t out_rank;
    int64_t sizes[N_LETTERS];
};

static uint32_t pick(uint64_t *state, uint32_t n) {
    return (uint32_t)(splitmix_step(state) >> 33) % n;
}

static void make(struct problem *p, uint64_t *state) {
    memset(p, 0, sizeof *p);
    char *at = p->equation;
    bool used[N_LETTERS] = {false};
    for (uint32_t i = 0; i < N_LETTERS; i++)
        p->sizes[i] = 1 + pick(state, 4);
    p->n_terms = 1 + pick(state, MAX_TERMS);
    for (uint32_t k = 0; k < p->n_terms; k++) {
        p->ranks[k] = pick(state, 5);
        for (uint32_t i = 0; i < p->ranks[k]; i++) {
            uint8_t letter = (uint8_t)pick(state, N_LETTERS);
            p->letters[k][i] = letter;
            used[letter] = true;
            *at++ = "abXYz"[letter];
        }
        if (k + 1 < p->n_terms) *at++ = ',';
    }
    *at++ = '-';
    *at++ = '>';
    uint32_t start = pick(state, N_LETTERS);
    for (uint32_t i = 0; i < N_LETTERS; i++) {
        uint8_t letter = (uint8_t)((start + i * 2) % N_LETTERS);
        if (!used[letter] || pick(state, 2)) continue;
        p->out[p->out_rank++] = letter;
        *at++ = "abXYz"[letter];
    }
}

static size_t offset_of(const uint8_t *letters, uint32_t rank, const int64_t *sizes,
                        const int64_t *index) {
    size_t at = 0;
    for (uint32_t i = 0; i < rank; i++)
        at = at * (size_t)sizes[letters[i]] + (size_t)index[letters[i]];
    return at;
}

// Adds the product of the terms to out[...], for every assignment of the letters that occur.
static void reference(const struct problem *p, int64_t data[MAX_TERMS][256], int64_t *out) {
    int64_t index[N_LETTERS] = {0};
    bool used[N_LETTERS] = {false};
    for (uint32_t k = 0; k < p->n_terms; k++)
        for (uint32_t i = 0; i < p->ranks[k]; i++)
            used[p->letters[k][i]] = true;
    for (;;) {
        int64_t product = 1;
        for (uint32_t k = 0; k < p->n_terms; k++)
            product *= data[k][offset_of(p->letters[k], p->ranks[k], p->sizes, index)];
        out[offset_of(p->out, p->out_rank, p->sizes, index)] += product;
        uint32_t i = 0;
        for (; i < N_LETTERS; i++) {
            if (used[i] && ++index[i] < p->sizes[i]) break;
            index[i] = 0;
        }
        if (i == N_LETTERS) return;
    }
}

static void start(struct test_node *n, const struct problem *p, enum ree_dtype dtype,
                  int64_t data[MAX_TERMS][256]) {
    test_node_start(n, "Einsum", 12);
    for (uint32_t k = 0; k < p->n_terms; k++) {
        int64_t dims[4];
        float floats[256];
        for (uint32_t i = 0; i < p->ranks[k]; i++)
            dims[i] = p->sizes[p->letters[k][i]];
        for (int i = 0; i < 256; i++)
            floats[i] = (float)data[k][i];
        test_node_input(n, dtype, p->ranks[k], dims,
                        dtype == REE_F32 ? (const void *)floats : data[k]);
    }
    test_node_string(n, "equation", p->equation);
}

static void check(const struct problem *p, uint64_t *state) {
    static int64_t data[MAX_TERMS][256], want[1024];
    struct test_node n;
    for (uint32_t k = 0; k < MAX_TERMS; k++)
        for (int i = 0; i < 256; i++)
            data[k][i] = (int64_t)pick(state, 19) - 9;
    memset(want, 0, sizeof want);
    reference(p, data, want);
    for (int pass = 0; pass < 4; pass++) {
        enum ree_dtype dtype = pass & 1 ? REE_F32 : REE_I64;
        start(&n, p, dtype, data);
        n.fuse = !(pass & 2);
        CHECK_MSG(test_node_run(&n, 1) == REE_OK, "%s: %s", p->equation, n.err.message);
        const void *got = n.err.message[0] ? NULL : test_node_output(&n, 0);
        if (got) {
            CHECK(n.out[0]->rank == p->out_rank);
            size_t count = (size_t)ree_view_count(n.out[0]);
            for (size_t i = 0; i < count; i++) {
                // Sums of small integers are exact in float32 too.
                double value = dtype == REE_F32 ? (double)((const float *)got)[i]
                                                : (double)((const int64_t *)got)[i];
                CHECK_MSG(value == (double)want[i], "%s [%zu]: %g, expected %lld", p->equation, i,
                          value, (long long)want[i]);
            }
        }
        test_node_finish(&n);
    }
}

// The parts of the grammar that random equations do not cover.
static void check_grammar(void) {
    static const struct {
        const char *equation;
        uint32_t rank;
        int64_t dims[3];
        float first, last;
    } cases[] = {
        // a: 2 x 3 counting from 0, b: 3 x 2 counting from 0
        {"ij,jk", 2, {2, 2}, 10, 40},         {" i j , j k -> k i ", 2, {2, 2}, 10, 40},
        {"ba,ac", 2, {2, 2}, 10, 40},         {"jB,BA", 2, {2, 2}, 10, 40}, // A sorts before j
        {"...j,jk", 2, {2, 2}, 10, 40},       {"...j,jk->k...", 2, {2, 2}, 10, 40},
        {"i...,...i->...", 1, {3, 0}, 3, 33}, {"ij,kl->", 0, {0}, 225, 225},
    };
    const float counting[6] = {0, 1, 2, 3, 4, 5};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct test_node n;
        test_node_start(&n, "Einsum", 12);
        test_node_f32(&n, 2, (int64_t[]){2, 3}, counting);
        test_node_f32(&n, 2, (int64_t[]){3, 2}, counting);
        test_node_string(&n, "equation", cases[i].equation);
        CHECK_MSG(test_node_run(&n, 1) == REE_OK, "%s: %s", cases[i].equation, n.err.message);
        if (!n.err.message[0]) {
            const float *y = test_node_output(&n, 0);
            CHECK(n.out[0]->rank == cases[i].rank);
            for (uint32_t d = 0; d < cases[i].rank; d++)
                CHECK(n.out[0]->dims[d] == cases[i].dims[d]);
            int64_t count = ree_view_count(n.out[0]);
            CHECK_MSG(y[0] == cases[i].first && y[count - 1] == cases[i].last, "%s: %g ... %g",
                      cases[i].equation, y[0], y[count - 1]);
        }
        test_node_finish(&n);
    }
}

int main(void) {
    uint64_t state = 3;
    for (int i = 0; i < 3000; i++) {
        struct problem p;
        make(&p, &state);
        check(&p, &state);
    }
    check_grammar();
    return test_finish();
}
