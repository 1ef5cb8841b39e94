// Runs an exported language model as a program with the public API would: prompts in pieces, the
// present cache fed back as the past cache, then greedy tokens.
//
//     hf_decode MODEL LOGITS PIECES STEPS PROMPT...
//
// PIECES: "5,1" means a first call with five tokens, a second with one, and a third with the rest.
// PROMPT: for example "3,1,4", one for each sequence of the batch; shorter prompts are padded with
// token 0. LOGITS: output file for the logits of all positions, float32[batch, positions,
// vocabulary] without a header. The tokens of each sequence are printed on one line.
#include "ree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TOKENS 4096
#define MAX_BATCH 8
#define MAX_PORTS 1024

struct run {
    struct ree_session *session;
    struct ree_model *model;
    size_t n_inputs, n_outputs, batch, n; // n: positions run so far
    struct ree_tensor inputs[MAX_PORTS], outputs[MAX_PORTS];
    int64_t tokens[MAX_BATCH][MAX_TOKENS];
    float *logits[MAX_BATCH]; // each (n, vocabulary)
};

static void check(enum ree_status status, const struct ree_error *err) {
    if (status == REE_OK) return;
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

static void require(bool condition, const char *what) {
    if (condition) return;
    fprintf(stderr, "hf_decode: %s\n", what);
    exit(1);
}

static size_t parse_numbers(const char *text, int64_t *out, size_t max) {
    size_t n = 0;
    while (*text) {
        char *end;
        require(n < max, "too many numbers");
        out[n++] = strtoll(text, &end, 10);
        require(end != text, "that is no list of numbers");
        text = *end == ',' ? end + 1 : end;
    }
    return n;
}

static void init_input(struct run *r, size_t i, const int64_t *dims) {
    const struct ree_port *port = ree_model_input(r->model, i);
    struct ree_error err;
    ree_tensor_finish(&r->inputs[i]);
    check(ree_tensor_init(&r->inputs[i], port->name, port->dtype, port->rank, dims, &err), &err);
}

// Copies the cache outputs to the cache inputs. Both have the same order; the first cache input has
// index 2, the first cache output index 1.
static void feed_back(struct run *r) {
    for (size_t i = 2; i < r->n_inputs; i++) {
        struct ree_tensor *from = &r->outputs[i - 1];
        char name[128];
        const char *suffix = strchr(from->name, '.');
        snprintf(name, sizeof name, "past_key_values%s", suffix ? suffix : "");
        require(!strcmp(name, ree_model_input(r->model, i)->name), "the cache is in another order");
        init_input(r, i, from->dims);
        if (from->nbytes) memcpy(r->inputs[i].data, from->data, from->nbytes);
    }
}

static void start(struct run *r) {
    for (size_t i = 2; i < r->n_inputs; i++) {
        const struct ree_port *port = ree_model_input(r->model, i);
        int64_t dims[4] = {(int64_t)r->batch, port->dims[1], 0, port->dims[3]};
        init_input(r, i, dims);
    }
}

// Runs the next `count` tokens of every sequence.
static void step(struct run *r, size_t count) {
    struct ree_error err;
    const int64_t dims[2] = {(int64_t)r->batch, (int64_t)count};
    require(r->n + count <= MAX_TOKENS, "too many tokens");
    init_input(r, 0, dims);
    init_input(r, 1, dims);
    for (size_t b = 0; b < r->batch; b++)
        for (size_t i = 0; i < count; i++) {
            ((int64_t *)r->inputs[0].data)[b * count + i] = r->tokens[b][r->n + i];
            ((int64_t *)r->inputs[1].data)[b * count + i] = (int64_t)(r->n + i);
        }
    check(ree_session_run(r->session, r->inputs, r->n_inputs, r->outputs, &err), &err);
    size_t row = count * (size_t)r->outputs[0].dims[2];
    size_t before = r->n * (size_t)r->outputs[0].dims[2];
    for (size_t b = 0; b < r->batch; b++) {
        r->logits[b] = realloc(r->logits[b], (before + row) * sizeof(float));
        require(r->logits[b] != NULL, "out of memory");
        memcpy(r->logits[b] + before, (float *)r->outputs[0].data + b * row, row * sizeof(float));
    }
    r->n += count;
    feed_back(r);
}

static int64_t best(const float *logits, size_t vocabulary) {
    size_t at = 0;
    for (size_t i = 1; i < vocabulary; i++)
        if (logits[i] > logits[at]) at = i;
    return (int64_t)at;
}

static void run_all(struct run *r, const char *pieces_text, size_t steps, size_t longest) {
    int64_t pieces[64];
    size_t n_pieces = parse_numbers(pieces_text, pieces, 64), vocabulary = 0;
    for (size_t i = 0; i <= n_pieces && r->n < longest; i++) {
        size_t left = longest - r->n, count = i < n_pieces ? (size_t)pieces[i] : left;
        step(r, count < left ? count : left);
        vocabulary = (size_t)r->outputs[0].dims[2];
        for (size_t k = 0; k < r->n_outputs; k++)
            ree_tensor_finish(&r->outputs[k]);
    }
    for (size_t s = 0; s < steps; s++) {
        for (size_t b = 0; b < r->batch; b++)
            r->tokens[b][r->n] = best(r->logits[b] + (r->n - 1) * vocabulary, vocabulary);
        step(r, 1);
        for (size_t k = 0; k < r->n_outputs; k++)
            ree_tensor_finish(&r->outputs[k]);
    }
}

// Overwrites the positions of a cache (batch, heads, n, size) after position `at[b]` of sequence b
// with large numbers: 1000, or 992 in bfloat16.
static void overwrite(const struct run *r, struct ree_tensor *cache, const size_t *at) {
    size_t heads = (size_t)cache->dims[1], size = (size_t)cache->dims[3];
    const uint16_t large = cache->dtype == REE_F16 ? 0x63D0 : 0x4478;
    for (size_t row = 0; row < r->batch * heads; row++)
        for (size_t i = (at[row / heads] + 1) * size; i < r->n * size; i++)
            if (cache->dtype == REE_F32)
                ((float *)cache->data)[row * r->n * size + i] = 1e3f;
            else
                ((uint16_t *)cache->data)[row * r->n * size + i] = large;
}

static void run_again(struct run *r) {
    struct ree_error err;
    size_t at[MAX_BATCH], vocabulary = (size_t)ree_model_output(r->model, 0)->dims[2];
    const int64_t dims[2] = {(int64_t)r->batch, 1};
    init_input(r, 0, dims);
    init_input(r, 1, dims);
    for (size_t b = 0; b < r->batch; b++) {
        at[b] = (r->n / 2 + b) % r->n;
        ((int64_t *)r->inputs[0].data)[b] = r->tokens[b][at[b]];
        ((int64_t *)r->inputs[1].data)[b] = (int64_t)at[b];
    }
    for (size_t i = 2; i < r->n_inputs; i++)
        overwrite(r, &r->inputs[i], at);
    check(ree_session_run(r->session, r->inputs, r->n_inputs, r->outputs, &err), &err);
    for (size_t b = 0; b < r->batch; b++)
        require(!memcmp((float *)r->outputs[0].data + b * vocabulary,
                        r->logits[b] + at[b] * vocabulary, vocabulary * sizeof(float)),
                "what lies in the cache behind a position changes its logits");
    for (size_t k = 0; k < r->n_outputs; k++)
        ree_tensor_finish(&r->outputs[k]);
}

static void write_results(const struct run *r, const char *path, size_t vocabulary) {
    FILE *file = fopen(path, "wb");
    require(file != NULL, "the file for logits cannot be written");
    for (size_t b = 0; b < r->batch; b++) {
        size_t n = r->n * vocabulary;
        require(fwrite(r->logits[b], sizeof(float), n, file) == n, "writing failed");
        for (size_t i = 0; i < r->n; i++)
            printf("%s%lld", i ? "," : "", (long long)r->tokens[b][i]);
        printf("\n");
    }
    require(fclose(file) == 0, "writing failed");
}

int main(int argc, char **argv) {
    static struct run r;
    struct ree_error err;
    struct ree_device *device;
    const char *spec = getenv("HF_DECODE_DEVICE");
    size_t longest = 0;
    require(argc >= 6 && argc - 5 <= MAX_BATCH, "MODEL LOGITS PIECES STEPS PROMPT...");
    r.batch = (size_t)argc - 5;
    for (size_t b = 0; b < r.batch; b++) {
        size_t n = parse_numbers(argv[5 + b], r.tokens[b], MAX_TOKENS);
        if (n > longest) longest = n;
    }
    check(ree_model_load(argv[1], NULL, &r.model, &err), &err);
    check(ree_device_open(spec ? spec : "cpu", NULL, &device, &err), &err);
    check(ree_session_create(r.model, device, NULL, &r.session, &err), &err);
    r.n_inputs = ree_model_n_inputs(r.model);
    r.n_outputs = ree_model_n_outputs(r.model);
    require(r.n_inputs >= 4 && r.n_inputs <= MAX_PORTS && r.n_outputs + 1 == r.n_inputs,
            "that is no language model");
    start(&r);
    run_all(&r, argv[3], (size_t)strtoul(argv[4], NULL, 10), longest);
    run_again(&r);
    write_results(&r, argv[2], (size_t)ree_model_output(r.model, 0)->dims[2]);
    for (size_t i = 0; i < r.n_inputs; i++)
        ree_tensor_finish(&r.inputs[i]);
    for (size_t b = 0; b < r.batch; b++)
        free(r.logits[b]);
    ree_session_destroy(r.session);
    ree_device_destroy(device);
    ree_model_destroy(r.model);
    return 0;
}
