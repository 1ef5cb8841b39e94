// RNN, GRU and LSTM: the bits do not depend on the batch, on cutting a sequence into calls that
// pass their states on, or on fusion. Also tests error messages for invalid nodes.
#include "node.h"
#include "test.h"

#include <string.h>

#define STEPS 9
#define BATCH 11
#define N_IN 5
#define HIDDEN 21
#define MAX_GATES 4
#define MAX_STATES 2

struct net {
    const char *op;
    uint32_t gates, states;
    int64_t directions;
    const char *direction, *more; // more: an attribute set to 1, or NULL
    bool peepholes;
    float w[2 * MAX_GATES * HIDDEN * N_IN], r[2 * MAX_GATES * HIDDEN * HIDDEN];
    float b[2 * 2 * MAX_GATES * HIDDEN], p[2 * 3 * HIDDEN];
};

// Inputs and outputs of one call: dense, the batch dimension between directions and elements.
struct call {
    int64_t steps, batch;
    bool fuse;
    float x[STEPS * BATCH * N_IN];
    int32_t lengths[BATCH];
    bool has_lengths;
    float state[MAX_STATES][2 * BATCH * HIDDEN]; // input and output
    float y[STEPS * 2 * BATCH * HIDDEN];
};

static void add_states(struct test_node *n, const struct net *net, const struct call *c) {
    int64_t dims[3] = {net->directions, c->batch, HIDDEN};
    for (uint32_t i = 0; i < net->states; i++)
        test_node_f32(n, 3, dims, c->state[i]);
}

static void run(const struct net *net, struct call *c) {
    struct test_node n;
    int64_t rows = net->gates * HIDDEN;
    test_node_start(&n, net->op, 14);
    n.fuse = c->fuse;
    test_node_f32(&n, 3, (int64_t[]){c->steps, c->batch, N_IN}, c->x);
    test_node_f32(&n, 3, (int64_t[]){net->directions, rows, N_IN}, net->w);
    test_node_f32(&n, 3, (int64_t[]){net->directions, rows, HIDDEN}, net->r);
    test_node_f32(&n, 2, (int64_t[]){net->directions, 2 * rows}, net->b);
    if (c->has_lengths)
        test_node_input(&n, REE_I32, 1, &c->batch, c->lengths);
    else
        test_node_omit(&n);
    add_states(&n, net, c);
    if (net->peepholes) test_node_f32(&n, 2, (int64_t[]){net->directions, 3 * HIDDEN}, net->p);
    test_node_string(&n, "direction", net->direction);
    if (net->more) test_node_int(&n, net->more, 1);
    CHECK_MSG(test_node_run(&n, 1 + net->states) == REE_OK, "%s: %s", net->op, n.err.message);
    size_t size = (size_t)(net->directions * c->batch * HIDDEN) * sizeof(float);
    memcpy(c->y, test_node_output(&n, 0), (size_t)c->steps * size);
    for (uint32_t i = 0; i < net->states; i++)
        memcpy(c->state[i], test_node_output(&n, 1 + i), size);
    test_node_finish(&n);
}

static const struct call *draw(uint64_t *seed, struct call *c) {
    *c = (struct call){.steps = STEPS, .batch = BATCH, .fuse = true};
    test_random_fill(seed, sizeof c->x / sizeof *c->x, c->x);
    test_random_fill(seed, sizeof c->state / sizeof(float), c->state[0]);
    for (uint32_t i = 0; i < BATCH; i++)
        c->lengths[i] = (int32_t)(i * 5 % (STEPS + 1));
    return c;
}

// Extracts sequence `from` of the batch.
static void take_one(const struct net *net, const struct call *all, int64_t from,
                     struct call *one) {
    *one = (struct call){.steps = all->steps, .batch = 1, .fuse = true};
    one->has_lengths = all->has_lengths;
    one->lengths[0] = all->lengths[from];
    for (int64_t t = 0; t < all->steps; t++)
        memcpy(one->x + t * N_IN, all->x + (t * all->batch + from) * N_IN, N_IN * sizeof(float));
    for (uint32_t i = 0; i < net->states; i++)
        for (int64_t d = 0; d < net->directions; d++)
            memcpy(one->state[i] + d * HIDDEN, all->state[i] + (d * all->batch + from) * HIDDEN,
                   HIDDEN * sizeof(float));
}

static void batch_does_not_matter(const struct net *net, const struct call *drawn) {
    static struct call all, one;
    all = *drawn;
    run(net, &all);
    for (int64_t i = 0; i < BATCH; i++) {
        take_one(net, drawn, i, &one);
        run(net, &one);
        bool same = true;
        for (int64_t k = 0; k < STEPS * net->directions; k++)
            same = same && !memcmp(one.y + k * HIDDEN, all.y + (k * BATCH + i) * HIDDEN,
                                   HIDDEN * sizeof(float));
        for (int64_t d = 0; d < net->directions; d++)
            for (uint32_t s = 0; s < net->states; s++)
                same = same &&
                       !memcmp(one.state[s] + d * HIDDEN, all.state[s] + (d * BATCH + i) * HIDDEN,
                               HIDDEN * sizeof(float));
        CHECK_MSG(same, "%s %s: sequence %lld alone differs", net->op, net->direction,
                  (long long)i);
    }
}

static void fusion_does_not_matter(const struct net *net, const struct call *drawn) {
    static struct call fused, steps;
    fused = steps = *drawn;
    steps.fuse = false;
    run(net, &fused);
    run(net, &steps);
    CHECK_MSG(!memcmp(fused.y, steps.y, sizeof fused.y) &&
                  !memcmp(fused.state, steps.state, sizeof fused.state),
              "%s %s: fusion changes bits", net->op, net->direction);
}

// Runs a forward network over [0, cut) and then, from the resulting states, over the rest.
static void cuts_do_not_matter(const struct net *net, const struct call *drawn) {
    static struct call whole, part;
    whole = *drawn;
    run(net, &whole);
    for (int64_t cut = 0; cut <= STEPS; cut++) {
        part = *drawn;
        part.steps = cut;
        run(net, &part);
        size_t in = BATCH * N_IN, out = BATCH * HIDDEN;
        bool same = !memcmp(part.y, whole.y, (size_t)cut * out * sizeof(float));
        part.steps = STEPS - cut;
        memcpy(part.x, drawn->x + (size_t)cut * in, (STEPS - (size_t)cut) * in * sizeof(float));
        run(net, &part);
        same = same && !memcmp(part.y, whole.y + (size_t)cut * out,
                               (STEPS - (size_t)cut) * out * sizeof(float));
        same = same && !memcmp(part.state, whole.state, sizeof part.state);
        CHECK_MSG(same, "%s: a cut at step %lld changes bits", net->op, (long long)cut);
    }
}

// A sequence with length n ends where a call with n steps would; from there the output is zeros.
static void lengths_end_sequences(const struct net *net, const struct call *drawn) {
    static struct call all, one;
    all = *drawn;
    all.has_lengths = true;
    // A length out of range acts as the nearest one in range.
    all.lengths[0] = STEPS + 5;
    all.lengths[1] = -1;
    run(net, &all);
    for (int64_t i = 0; i < BATCH; i++) {
        take_one(net, drawn, i, &one);
        one.steps = i == 0 ? STEPS : i == 1 ? 0 : drawn->lengths[i];
        run(net, &one);
        bool same = true;
        for (int64_t d = 0; d < net->directions; d++) {
            for (int64_t t = 0; t < STEPS; t++) {
                static const float zeros[HIDDEN];
                const float *want =
                    t < one.steps ? one.y + (t * net->directions + d) * HIDDEN : zeros;
                const float *got = all.y + ((t * net->directions + d) * BATCH + i) * HIDDEN;
                same = same && !memcmp(got, want, HIDDEN * sizeof(float));
            }
            for (uint32_t s = 0; s < net->states; s++)
                same = same &&
                       !memcmp(one.state[s] + d * HIDDEN, all.state[s] + (d * BATCH + i) * HIDDEN,
                               HIDDEN * sizeof(float));
        }
        CHECK_MSG(same, "%s %s: length %lld differs from a sequence of that length", net->op,
                  net->direction, (long long)one.steps);
    }
}

static void independences(void) {
    static struct net nets[] = {
        {.op = "RNN", .gates = 1, .states = 1, .directions = 1, .direction = "forward"},
        {.op = "GRU", .gates = 3, .states = 1, .directions = 1, .direction = "forward"},
        {.op = "GRU",
         .gates = 3,
         .states = 1,
         .directions = 1,
         .direction = "forward",
         .more = "linear_before_reset"},
        {.op = "LSTM", .gates = 4, .states = 2, .directions = 1, .direction = "forward"},
        {.op = "LSTM",
         .gates = 4,
         .states = 2,
         .directions = 1,
         .direction = "forward",
         .peepholes = true},
        {.op = "LSTM",
         .gates = 4,
         .states = 2,
         .directions = 1,
         .direction = "forward",
         .more = "input_forget"},
    };
    static struct call drawn;
    uint64_t seed = 5;
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        struct net *net = &nets[i];
        test_random_fill(&seed, sizeof net->w / sizeof(float), net->w);
        test_random_fill(&seed, sizeof net->r / sizeof(float), net->r);
        test_random_fill(&seed, sizeof net->b / sizeof(float), net->b);
        test_random_fill(&seed, sizeof net->p / sizeof(float), net->p);
        draw(&seed, &drawn);
        cuts_do_not_matter(net, &drawn);
        for (uint32_t way = 0; way < 3; way++) {
            net->direction = (const char *[]){"forward", "reverse", "bidirectional"}[way];
            net->directions = way == 2 ? 2 : 1;
            for (uint32_t lengths = 0; lengths < 2; lengths++) {
                drawn.has_lengths = lengths;
                batch_does_not_matter(net, &drawn);
                fusion_does_not_matter(net, &drawn);
            }
            drawn.has_lengths = false;
            lengths_end_sequences(net, &drawn);
        }
    }
}

// Messages

static void expect(struct test_node *n, enum ree_status status, const char *message) {
    n->err.message[0] = 0;
    enum ree_status got = test_node_run(n, 1);
    CHECK_MSG(got == status && strstr(n->err.message, message), "got %s: '%s', expected '%s'",
              ree_status_name(got), n->err.message, message);
    test_node_finish(n);
}

static const float zeros[256];

// An LSTM of 2 steps, batch 3, 4 inputs, 2 hidden units, valid except for what the test changes.
static void start(struct test_node *n, int64_t w_rows, int64_t r_columns) {
    test_node_start(n, "LSTM", 14);
    test_node_f32(n, 3, (int64_t[]){2, 3, 4}, zeros);
    test_node_f32(n, 3, (int64_t[]){1, w_rows, 4}, zeros);
    test_node_f32(n, 3, (int64_t[]){1, 8, r_columns}, zeros);
}

static void messages(void) {
    struct test_node n;
    test_node_start(&n, "GRU", 14);
    test_node_f32(&n, 2, (int64_t[]){2, 3}, zeros);
    test_node_f32(&n, 3, (int64_t[]){1, 6, 3}, zeros);
    test_node_f32(&n, 3, (int64_t[]){1, 6, 2}, zeros);
    expect(&n, REE_INVALID, "input X has rank 2, expected 3");
    start(&n, 7, 2);
    expect(&n, REE_INVALID, "input W is float32[1,7,4], expected float32[1,8,4]");
    start(&n, 8, 3);
    expect(&n, REE_INVALID, "input W is float32[1,8,4], expected float32[1,12,4]");
    start(&n, 8, 2);
    test_node_int(&n, "hidden_size", 5);
    expect(&n, REE_INVALID, "hidden_size is 5, but R has 2 columns");
    start(&n, 8, 2);
    test_node_string(&n, "direction", "backward");
    expect(&n, REE_INVALID, "direction is 'backward', expected forward, reverse or bidirectional");
    start(&n, 8, 2);
    test_node_string(&n, "direction", "bidirectional");
    expect(&n, REE_INVALID, "input W is float32[1,8,4], expected float32[2,8,4]");
    start(&n, 8, 2);
    test_node_int(&n, "layout", 2);
    expect(&n, REE_INVALID, "layout is 2, expected 0 or 1");
    start(&n, 8, 2);
    test_node_float(&n, "clip", -1);
    expect(&n, REE_INVALID, "clip is -1, expected more than 0");
    start(&n, 8, 2);
    test_node_f32(&n, 2, (int64_t[]){1, 8}, zeros);
    expect(&n, REE_INVALID, "input B is float32[1,8], expected float32[1,16]");
    start(&n, 8, 2);
    test_node_omit(&n);
    test_node_input(&n, REE_I64, 1, (int64_t[]){3}, zeros);
    expect(&n, REE_INVALID, "input sequence_lens is int64[3], expected int32[3]");
    start(&n, 8, 2);
    for (int i = 0; i < 3; i++)
        test_node_omit(&n);
    test_node_f32(&n, 3, (int64_t[]){1, 2, 2}, zeros);
    expect(&n, REE_INVALID, "input initial_c is float32[1,2,2], expected float32[1,3,2]");
    start(&n, 8, 2);
    for (int i = 0; i < 4; i++)
        test_node_omit(&n);
    test_node_f32(&n, 2, (int64_t[]){1, 4}, zeros);
    expect(&n, REE_INVALID, "input P is float32[1,4], expected float32[1,6]");
    start(&n, 8, 2);
    test_node_strings(&n, "activations", 2, (const char *[]){"Tanh", "Tanh"});
    expect(&n, REE_INVALID, "activations has 2 entries, expected 3");
    start(&n, 8, 2);
    test_node_strings(&n, "activations", 3, (const char *[]){"Tanh", "Tan", "Tanh"});
    expect(&n, REE_INVALID, "the activation 'Tan' is unknown, expected Relu, Tanh");
}

// Time steps are lowered one by one, so their number is limited before they take memory. Without
// elements there is nothing to compute, and the number of steps does not matter.
static void limits(void) {
    static const float line[131073];
    static const int64_t many = 200000000;
    struct test_node n;
    for (uint32_t empty = 0; empty < 2; empty++) {
        const int64_t batch = empty ? 1 : 0, hidden = empty ? 0 : 3;
        test_node_start(&n, "GRU", 14);
        test_node_f32(&n, 3, (int64_t[]){many, batch, 0}, zeros);
        test_node_f32(&n, 3, (int64_t[]){1, 3 * hidden, 0}, zeros);
        test_node_f32(&n, 3, (int64_t[]){1, 3 * hidden, hidden}, zeros);
        CHECK_MSG(test_node_run(&n, 2) == REE_OK, "%s", n.err.message);
        CHECK(n.out[0]->dims[0] == many && ree_view_count(n.out[0]) == 0);
        CHECK(ree_view_count(n.out[1]) == 0);
        test_node_finish(&n);
    }
    test_node_start(&n, "RNN", 14);
    test_node_f32(&n, 3, (int64_t[]){many, 1, 0}, zeros);
    test_node_f32(&n, 3, (int64_t[]){1, 1, 0}, zeros);
    test_node_f32(&n, 3, (int64_t[]){1, 1, 1}, zeros);
    expect(&n, REE_UNSUPPORTED, "200000000 time steps; at most 131072 are supported");
    // Both directions count.
    test_node_start(&n, "RNN", 14);
    test_node_string(&n, "direction", "bidirectional");
    test_node_f32(&n, 3, (int64_t[]){100000, 1, 0}, zeros);
    test_node_f32(&n, 3, (int64_t[]){2, 1, 0}, zeros);
    test_node_f32(&n, 3, (int64_t[]){2, 1, 1}, zeros);
    n.lower.n_time_steps = 100000;
    expect(&n, REE_UNSUPPORTED,
           "200000 time steps after 100000 of other nodes; at most 262144 in total");
    test_node_start(&n, "LinearAttention", 27);
    test_node_string(&n, "update_rule", "linear");
    test_node_int(&n, "q_num_heads", 1);
    test_node_int(&n, "kv_num_heads", 1);
    for (uint32_t i = 0; i < 3; i++)
        test_node_f32(&n, 3, (int64_t[]){0, many, 2}, zeros);
    CHECK_MSG(test_node_run(&n, 2) == REE_OK, "%s", n.err.message);
    CHECK(n.out[0]->dims[1] == many && n.out[1]->dims[2] == 2);
    test_node_finish(&n);
    test_node_start(&n, "LinearAttention", 27);
    test_node_string(&n, "update_rule", "linear");
    test_node_int(&n, "q_num_heads", 1);
    test_node_int(&n, "kv_num_heads", 1);
    for (uint32_t i = 0; i < 3; i++)
        test_node_f32(&n, 3, (int64_t[]){1, 131073, 1}, line);
    expect(&n, REE_UNSUPPORTED, "131073 time steps; at most 131072 are supported");
}

int main(void) {
    independences();
    limits();
    messages();
    return test_finish();
}
