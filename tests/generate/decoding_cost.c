// What a step costs through the interface of decode.h, compared with ree_generate's decode steps,
// in alternating runs. On demand, because times depend on the machine:
//
//     decoding_cost DEVICE N_THREADS MODEL PROMPT_TOKENS STEPS ROUNDS
//
// Fails if the median ratio of a batch is more than 1.1.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "ree.h"
#include "tests/test.h"

#define MAX_BATCH 8

static void fail_on(enum ree_status status, const struct ree_error *err) {
    if (status == REE_OK) return;
    fprintf(stderr, "failed: %s\n", err->message);
    exit(1);
}

static bool one_thread;

static double now(void) {
    struct timespec t;
    if (!one_thread) return ree_clock();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// The prompts are done when each sequence has a token.
struct first_tokens {
    size_t n;
    double end;
};

static bool count_first(void *user, const struct ree_token *token) {
    struct first_tokens *first = user;
    (void)token;
    if (first->n && --first->n == 0) first->end = now();
    return true;
}

// Seconds per step, and the sequences' tokens.
static double generate(struct ree_generator *g, const struct ree_prompt *prompts, size_t n,
                       size_t steps, int32_t *out_ids) {
    struct ree_generation out[MAX_BATCH];
    struct ree_error err;
    struct first_tokens first = {n, 0};
    const struct ree_generate_options options = {.size = sizeof options,
                                                 .sampling = ree_greedy,
                                                 .max_new_tokens = steps + 1,
                                                 .on_token = count_first,
                                                 .user = &first};
    fail_on(ree_generate(g, prompts, n, &options, out, NULL, &err), &err);
    const double seconds = now() - first.end;
    for (size_t i = 0; i < n; i++) {
        memcpy(out_ids + i * (steps + 1), out[i].ids + prompts[i].n, (steps + 1) * sizeof *out_ids);
        ree_generation_finish(&out[i]);
    }
    return seconds / (double)steps;
}

static double decode(struct ree_generator *g, const struct ree_prompt *prompts, size_t n,
                     size_t steps, int32_t *out_ids) {
    struct ree_decoding *decoding;
    struct ree_decode items[MAX_BATCH];
    struct ree_error err;
    int32_t next[MAX_BATCH];
    double seconds = 0;
    fail_on(ree_decoding_create(g, NULL, &decoding, &err), &err);
    for (size_t i = 0; i < n; i++) {
        ree_sequence_id id;
        fail_on(ree_decoding_add(decoding, &id, &err), &err);
        items[i] = (struct ree_decode){id, prompts[i].ids, prompts[i].n, NULL, 1, NULL};
    }
    for (size_t step = 0; step <= steps; step++) {
        const double start = now();
        fail_on(ree_decoding_run(decoding, items, n, &err), &err);
        for (size_t i = 0; i < n; i++) {
            fail_on(ree_decoding_choose(decoding, items[i].sequence, items[i].logits, &ree_greedy,
                                        &next[i], &err),
                    &err);
            out_ids[i * (steps + 1) + step] = next[i];
            items[i] = (struct ree_decode){items[i].sequence, &next[i], 1, NULL, 1, NULL};
        }
        if (step > 0) seconds += now() - start; // the first run has the prompts
    }
    ree_decoding_destroy(decoding);
    return seconds / (double)steps;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void measure(struct ree_generator *g, size_t n, size_t prompt, size_t steps, size_t rounds) {
    struct ree_prompt prompts[MAX_BATCH];
    int32_t *ids = malloc(n * prompt * sizeof *ids);
    int32_t *out[2] = {malloc(n * (steps + 1) * sizeof **out),
                       malloc(n * (steps + 1) * sizeof **out)};
    double *ratios = malloc(rounds * sizeof *ratios), *times = malloc(rounds * sizeof *times);
    REQUIRE(ids && out[0] && out[1] && ratios && times);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < prompt; k++)
            ids[i * prompt + k] = (int32_t)((7 * k + 3 * i + 5) % 100);
        prompts[i] = (struct ree_prompt){ids + i * prompt, prompt};
    }
    generate(g, prompts, n, steps, out[0]); // binds, loads the weights
    for (size_t r = 0; r < rounds; r++) {
        double by[2];
        for (size_t k = 0; k < 2; k++) // alternates which one is first
            by[(r + k) % 2] =
                ((r + k) % 2 ? decode : generate)(g, prompts, n, steps, out[(r + k) % 2]);
        ratios[r] = by[1] / by[0];
        times[r] = by[0];
        CHECK(memcmp(out[0], out[1], n * (steps + 1) * sizeof **out) == 0);
    }
    qsort(ratios, rounds, sizeof *ratios, compare);
    qsort(times, rounds, sizeof *times, compare);
    printf("batch %zu, prompt %zu: ree_generate %.3f ms a step; decode.h %.3f times that (%.3f to "
           "%.3f)\n",
           n, prompt, 1000 * times[rounds / 2], ratios[rounds / 2], ratios[0], ratios[rounds - 1]);
    CHECK(ratios[rounds / 2] <= 1.1);
    free(ids);
    free(out[0]);
    free(out[1]);
    free(ratios);
    free(times);
}

int main(int argc, char **argv) {
    if (argc != 7) return 2;
    struct ree_device *device;
    struct ree_generator *g;
    struct ree_error err;
    const struct ree_device_options options = {.size = sizeof options,
                                               .n_threads = (uint32_t)atoi(argv[2])};
    one_thread = options.n_threads == 1;
    fail_on(ree_device_open(argv[1], &options, &device, &err), &err);
    fail_on(ree_generator_create(argv[3], device, NULL, &g, &err), &err);
    for (size_t n = 1; n <= MAX_BATCH; n *= 8)
        measure(g, n, (size_t)atoi(argv[4]), (size_t)atoi(argv[5]), (size_t)atoi(argv[6]));
    ree_generator_destroy(g);
    ree_device_destroy(device);
    return test_finish();
}
