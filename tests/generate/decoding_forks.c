// Eight sequences share a prefix of N tokens, at most 2,000. The prefix is computed once. Besides
// the sequences' own tokens, the kv caches hold at most the prefix and 200 tokens, because each
// fork copies a page in part. Each sequence gets the same tokens as alone on the CPU.
//
//     decoding_forks DEVICE MODEL N
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ree.h"
#include "tests/splitmix.h"
#include "tests/test.h"

#define N_FORKS 8
#define MAX_PREFIX 2000
#define N_NEW 20

static struct ree_error err;
static size_t n_prefix;

static void must(enum ree_status status) {
    if (status == REE_OK) return;
    fprintf(stderr, "failed: %s\n", err.message);
    exit(1);
}

static struct ree_decoding_stats stats_of(const struct ree_decoding *decoding) {
    struct ree_decoding_stats stats = {.size = sizeof stats};
    must(ree_decoding_stats(decoding, &stats, &err));
    return stats;
}

// Runs one token per sequence and chooses the next ones.
static void step(struct ree_decoding *decoding, const ree_sequence_id *sequences, size_t n,
                 int32_t *next) {
    struct ree_decode items[N_FORKS];
    for (size_t i = 0; i < n; i++)
        items[i] = (struct ree_decode){sequences[i], &next[i], 1, NULL, 1, NULL};
    must(ree_decoding_run(decoding, items, n, &err));
    for (size_t i = 0; i < n; i++)
        must(ree_decoding_choose(decoding, sequences[i], items[i].logits, &ree_greedy, &next[i],
                                 &err));
}

static void hash(const struct ree_decoding *decoding, ree_sequence_id sequence, char hex[65]) {
    struct ree_sequence_info info = {.size = sizeof info};
    must(ree_decoding_sequence(decoding, sequence, &info, &err));
    ree_tokens_sha256(info.ids, info.n, hex);
}

// The first token of fork i is i + 2.
static void run_alone(struct ree_generator *generator, const int32_t *prefix, size_t i,
                      char hex[65]) {
    struct ree_decoding *decoding;
    ree_sequence_id sequence;
    int32_t next = (int32_t)i + 2;
    must(ree_decoding_create(generator, NULL, &decoding, &err));
    must(ree_decoding_add(decoding, &sequence, &err));
    struct ree_decode item = {sequence, prefix, n_prefix, NULL, 0, NULL};
    must(ree_decoding_run(decoding, &item, 1, &err));
    for (size_t k = 0; k < N_NEW; k++)
        step(decoding, &sequence, 1, &next);
    hash(decoding, sequence, hex);
    ree_decoding_destroy(decoding);
}

int main(int argc, char **argv) {
    struct ree_device *device, *cpu;
    struct ree_generator *generator, *reference;
    struct ree_decoding *decoding;
    ree_sequence_id sequences[N_FORKS];
    int32_t prefix[MAX_PREFIX], next[N_FORKS];
    struct splitmix rng = {7};
    if (argc != 4) return 2;
    n_prefix = (size_t)atoi(argv[3]);
    if (n_prefix < 1 || n_prefix > MAX_PREFIX) return 2;
    if (ree_device_open(argv[1], NULL, &device, &err)) {
        printf("skipped: %s\n", err.message);
        return err.status == REE_UNAVAILABLE ? TEST_SKIPPED : 1;
    }
    const struct ree_generator_options options = {
        .size = sizeof options, .prefill_chunk = 256, .max_batch = N_FORKS};
    must(ree_generator_create(argv[2], device, &options, &generator, &err));
    must(ree_device_open("cpu", NULL, &cpu, &err));
    must(ree_generator_create(argv[2], cpu, NULL, &reference, &err));
    for (size_t i = 0; i < n_prefix; i++)
        prefix[i] = (int32_t)(2 + splitmix_below(&rng, 500));

    must(ree_decoding_create(generator, NULL, &decoding, &err));
    must(ree_decoding_add(decoding, &sequences[0], &err));
    struct ree_decode item = {sequences[0], prefix, n_prefix, NULL, 0, NULL};
    must(ree_decoding_run(decoding, &item, 1, &err));
    const struct ree_decoding_stats one = stats_of(decoding);
    CHECK(one.n_tokens == n_prefix);
    for (size_t i = 1; i < N_FORKS; i++)
        must(ree_decoding_fork(decoding, sequences[0], &sequences[i], &err));
    CHECK(stats_of(decoding).cache_bytes == one.cache_bytes);
    for (size_t i = 0; i < N_FORKS; i++)
        next[i] = (int32_t)i + 2;

    const double position = (double)one.page_bytes / (double)one.page_positions;
    double most = 0;
    for (size_t k = 1; k <= N_NEW; k++) {
        step(decoding, sequences, N_FORKS, next);
        const struct ree_decoding_stats now = stats_of(decoding);
        const double own = (double)(N_FORKS * k) * position;
        const double ratio = ((double)now.cache_bytes - own) / ((double)n_prefix * position);
        if (ratio > most) most = ratio;
        CHECK(now.n_tokens == n_prefix + N_FORKS * k);
    }
    CHECK_MSG(most <= 1 + 200 / (double)n_prefix, "the kv caches take %.3f times a prefix's bytes",
              most);
    printf(
        "%d forks of %zu tokens: %llu tokens run; kv caches at most %.3f times one prefix's bytes, "
        "and the forks' own tokens\n",
        N_FORKS, n_prefix, (unsigned long long)stats_of(decoding).n_tokens, most);
    for (size_t i = 0; i < N_FORKS; i++) {
        char alone[65], shared[65];
        hash(decoding, sequences[i], shared);
        run_alone(reference, prefix, i, alone);
        CHECK_MSG(strcmp(alone, shared) == 0, "fork %zu has other tokens than alone", i);
    }
    ree_decoding_destroy(decoding);
    ree_generator_destroy(generator);
    ree_generator_destroy(reference);
    ree_device_destroy(cpu);
    ree_device_destroy(device);
    return test_finish();
}
