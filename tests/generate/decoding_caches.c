// Generation by steps with a model that is not proved to be causal, and that replaces its kv caches
// or appends to them in place; or with one that is proved to be causal and writes whole kv caches.
// decoding_caches.py writes such models.
//
//     decoding_caches replaces|appends|proved MODEL
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generate/generator.h"
#include "tests/test.h"

#define MOST 24

static struct ree_error err;
static struct ree_generator *generator;
static struct ree_decoding *decoding;
static size_t vocab;
static const int32_t ids[MOST] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5,  8,
                                  9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 10, 11};

static void must(enum ree_status status) {
    if (status == REE_OK) return;
    fprintf(stderr, "failed: %s\n", err.message);
    exit(1);
}

static void open_decoding(uint64_t n_pages) {
    struct ree_decoding_stats stats = {.size = sizeof stats};
    must(ree_decoding_create(generator, NULL, &decoding, &err));
    must(ree_decoding_stats(decoding, &stats, &err));
    if (n_pages == 0) return;
    ree_decoding_destroy(decoding);
    const struct ree_decoding_options options = {.size = sizeof options,
                                                 .max_cache_bytes = n_pages * stats.page_bytes};
    must(ree_decoding_create(generator, &options, &decoding, &err));
}

static ree_sequence_id add(void) {
    ree_sequence_id id;
    must(ree_decoding_add(decoding, &id, &err));
    return id;
}

static ree_sequence_id fork_of(ree_sequence_id sequence) {
    ree_sequence_id id;
    must(ree_decoding_fork(decoding, sequence, &id, &err));
    return id;
}

static size_t length(ree_sequence_id sequence) {
    struct ree_sequence_info info = {.size = sizeof info};
    must(ree_decoding_sequence(decoding, sequence, &info, &err));
    return info.n;
}

// The logits after the last of n tokens, by the code of ree_generate: the first n_first tokens in
// one run, then the others one by one. The caller frees them.
static float *alone(size_t n_first, size_t n) {
    struct ree_tensor logits = {0};
    must(ree_generator_begin(generator, 0, 1, MOST, &err));
    for (size_t at = 0; at < n;) {
        const int64_t start = (int64_t)at, row = at ? 0 : (int64_t)n_first - 1;
        const struct ree_step step = {1, at ? 1 : n_first, ids + at, &start, 1, &row};
        ree_tensor_finish(&logits);
        must(ree_generator_step(generator, &step, &logits, &err));
        at += step.length;
    }
    vocab = (size_t)logits.dims[2];
    float *data = logits.data;
    logits.data = NULL;
    ree_tensor_finish(&logits);
    return data;
}

// Appends tokens from the sequence's end to n - 1 in one call. Its first call had n_first tokens,
// and each later one had one.
static void append(ree_sequence_id sequence, size_t n_first, size_t n) {
    const size_t before = length(sequence);
    struct ree_decode item = {sequence, ids + before, n - before, NULL, 1, NULL};
    must(ree_decoding_run(decoding, &item, 1, &err));
    float *expected = alone(n_first, n);
    CHECK_MSG(memcmp(item.logits, expected, vocab * sizeof *expected) == 0,
              "the logits after %zu tokens are %g ..., not %g ...", n, (double)item.logits[0],
              (double)expected[0]);
    free(expected);
}

static void check_steps(void) {
    open_decoding(0);
    ree_sequence_id s = add();
    append(s, 5, 5);
    append(s, 5, 6);
    append(s, 5, 7);
    ree_sequence_id fork = fork_of(s);
    append(s, 5, 8);
    append(fork, 5, 8);
    append(s, 5, 9);
    ree_decoding_destroy(decoding);
}

static void check_refused(ree_sequence_id s, size_t n) {
    const size_t before = length(s);
    CHECK(ree_decoding_truncate(decoding, s, n, &err) == REE_UNSUPPORTED);
    CHECK(strstr(err.message, "replaces its kv caches"));
    CHECK(length(s) == before);
}

static void check_replaced(void) {
    struct ree_decoding_stats stats = {.size = sizeof stats};
    open_decoding(0);
    ree_sequence_id s = add();
    append(s, 5, 5);
    check_refused(s, 3); // also after a single run, which may have exchanged positions
    append(s, 5, 6);
    must(ree_decoding_stats(decoding, &stats, &err));
    CHECK(stats.copies_forks);
    ree_sequence_id fork = fork_of(s);
    check_refused(s, 5);
    check_refused(fork, 5);
    must(ree_decoding_truncate(decoding, s, 6, &err));
    append(s, 5, 7);
    CHECK(ree_decoding_truncate(decoding, s, 8, &err) == REE_INVALID);
    must(ree_decoding_truncate(decoding, s, 0, &err));
    append(s, 4, 4);
    append(s, 4, 5);
    append(fork, 5, 7);
    ree_decoding_destroy(decoding);
}

// A call of three forks fails after the first has run, because there is one page too few.
static void check_failure(void) {
    open_decoding(6);
    ree_sequence_id s[3] = {add()};
    append(s[0], 16, 16);
    s[1] = fork_of(s[0]);
    s[2] = fork_of(s[0]);
    struct ree_decode items[3];
    for (size_t i = 0; i < 3; i++)
        items[i] = (struct ree_decode){s[i], ids + 16, 1, NULL, 0, NULL};
    CHECK(ree_decoding_run(decoding, items, 3, &err) == REE_NO_MEMORY);
    for (size_t i = 0; i < 3; i++)
        CHECK(length(s[i]) == 16);
    must(ree_decoding_truncate(decoding, s[0], 16, &err));
    ree_sequence_id fork = fork_of(s[0]);
    items[1].sequence = fork;
    for (size_t i = 0; i < 2; i++) {
        CHECK(ree_decoding_run(decoding, &items[i], 1, &err) == REE_UNSUPPORTED);
        CHECK(strstr(err.message, "in a call that failed"));
        check_refused(items[i].sequence, 15);
    }
    must(ree_decoding_truncate(decoding, s[0], 0, &err));
    must(ree_decoding_remove(decoding, fork, &err));
    append(s[1], 16, 17); // had not run yet
    must(ree_decoding_remove(decoding, s[1], &err));
    append(s[2], 16, 17);
    append(s[0], 16, 16);
    append(s[0], 16, 17);
    ree_decoding_destroy(decoding);
}

static void check_truncated(bool copies_forks) {
    struct ree_decoding_stats stats = {.size = sizeof stats};
    open_decoding(0);
    ree_sequence_id s = add();
    append(s, 5, 5);
    append(s, 5, 6);
    append(s, 5, 7);
    must(ree_decoding_stats(decoding, &stats, &err));
    CHECK(stats.copies_forks == copies_forks);
    must(ree_decoding_truncate(decoding, s, 5, &err));
    append(s, 5, 6);
    ree_decoding_destroy(decoding);
}

int main(int argc, char **argv) {
    struct ree_device *device;
    if (argc != 3) return 2;
    must(ree_device_open("cpu", NULL, &device, &err));
    const struct ree_generator_options options = {.size = sizeof options, .max_batch = 1};
    must(ree_generator_create(argv[2], device, &options, &generator, &err));
    const bool is_proved = strcmp(argv[1], "proved") == 0;
    CHECK_MSG(generator->causality.is_proved == is_proved, "%s", generator->causality.why_not);
    check_steps();
    if (is_proved || strcmp(argv[1], "appends") == 0) {
        check_truncated(is_proved);
    } else {
        check_replaced();
        check_failure();
    }
    ree_generator_destroy(generator);
    ree_device_destroy(device);
    return test_finish();
}
