// Generation by steps: a random schedule of adding, decoding, forking, truncating and removing
// sequences. Every row of logits must equal a reference by bytes: one run on the CPU, by the code
// of ree_generate, over all tokens of this sequence alone.
//
//     decoding DEVICE N_THREADS MODEL N_OPERATIONS [INSTRUCTION SET | unfused]
//
// With "unfused" nothing is fused, so no operator reads pages and all caches are copied.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generate/decoding.h"
#include "session/session_internal.h"
#include "tests/splitmix.h"
#include "tests/test.h"

#define MAX_SEQUENCES 12
#define MAX_TOKENS 340

static struct splitmix rng = {1};
static uint32_t below(uint32_t n) {
    return splitmix_below(&rng, n);
}

struct sequence {
    ree_sequence_id id;
    int32_t ids[MAX_TOKENS];
    size_t n;
};

struct fixture {
    struct ree_generator *generator, *reference;
    struct ree_decoding *decoding;
    size_t vocab, most;
    struct sequence sequences[MAX_SEQUENCES];
    size_t n_sequences;
    uint64_t n_rows;
};

static void fail_on(enum ree_status status, const struct ree_error *err) {
    if (status == REE_OK) return;
    fprintf(stderr, "failed: %s\n", err->message);
    exit(1);
}

// The logits after every token, by one run of the reference.
static float *run_alone(struct fixture *f, const int32_t *ids, size_t n) {
    struct ree_error err;
    struct ree_tensor logits;
    int64_t start = 0, *rows = malloc(n * sizeof *rows);
    for (size_t i = 0; i < n; i++)
        rows[i] = (int64_t)i;
    const struct ree_step step = {1, n, ids, &start, n, rows};
    fail_on(ree_generator_begin(f->reference, 0, 1, (int64_t)n, &err), &err);
    fail_on(ree_generator_step(f->reference, &step, &logits, &err), &err);
    f->vocab = (size_t)logits.dims[2];
    float *data = logits.data;
    logits.data = NULL;
    ree_tensor_finish(&logits);
    free(rows);
    return data;
}

// The caller has appended the item's ids to s already.
static void check_item(struct fixture *f, const struct sequence *s, const struct ree_decode *item) {
    if (!item->n_logits) return;
    float *alone = run_alone(f, s->ids, s->n);
    const size_t before = s->n - item->n;
    for (size_t k = 0; k < item->n_logits; k++) {
        const size_t at = before + (item->at ? item->at[k] : item->n - 1);
        const bool same = memcmp(item->logits + k * f->vocab, alone + at * f->vocab,
                                 f->vocab * sizeof *alone) == 0;
        CHECK_MSG(same, "sequence %llu: the logits after token %zu of %zu differ",
                  (unsigned long long)s->id, at, s->n);
        f->n_rows++;
    }
    free(alone);
}

static void check_lengths(const struct fixture *f) {
    struct ree_decoding_stats stats = {.size = sizeof stats};
    struct ree_error err;
    fail_on(ree_decoding_stats(f->decoding, &stats, &err), &err);
    CHECK(stats.n_sequences == f->n_sequences);
    for (size_t i = 0; i < f->n_sequences; i++) {
        struct ree_sequence_info info = {.size = sizeof info};
        fail_on(ree_decoding_sequence(f->decoding, f->sequences[i].id, &info, &err), &err);
        CHECK(info.n == f->sequences[i].n);
        CHECK(info.n_pages == (info.n + stats.page_positions - 1) / stats.page_positions);
        CHECK(info.n == 0 || memcmp(info.ids, f->sequences[i].ids, info.n * sizeof *info.ids) == 0);
    }
}

// Decodes some tokens of some of the sequences.
static void decode(struct fixture *f) {
    static int32_t ids[MAX_SEQUENCES][MAX_TOKENS];
    static size_t at[MAX_SEQUENCES][4];
    struct ree_decode items[MAX_SEQUENCES];
    struct sequence *of[MAX_SEQUENCES];
    size_t n = 0;
    struct ree_error err;
    for (size_t i = 0; i < f->n_sequences; i++) {
        struct sequence *s = &f->sequences[i];
        if (below(3) == 0 || s->n == f->most) continue;
        size_t length = below(2) ? 1 : 1 + below(below(4) == 0 ? 300 : 12);
        if (length > f->most - s->n) length = f->most - s->n;
        for (size_t t = 0; t < length; t++)
            ids[n][t] = s->ids[s->n + t] = (int32_t)below((uint32_t)f->vocab);
        s->n += length;
        size_t n_logits = below(4);
        for (size_t k = 0; k < n_logits; k++)
            at[n][k] = below((uint32_t)length);
        items[n] = (struct ree_decode){s->id, ids[n], length, at[n], n_logits, NULL};
        if (below(3) == 0) items[n].at = NULL, items[n].n_logits = 1;
        of[n++] = s;
    }
    fail_on(ree_decoding_run(f->decoding, items, n, &err), &err);
    for (size_t i = 0; i < n; i++)
        check_item(f, of[i], &items[i]);
}

static void operate(struct fixture *f) {
    struct ree_error err;
    struct sequence *s = f->n_sequences ? &f->sequences[below((uint32_t)f->n_sequences)] : NULL;
    uint32_t what = below(12);
    if (!s || (what == 0 && f->n_sequences < MAX_SEQUENCES)) {
        struct sequence *added = &f->sequences[f->n_sequences++];
        added->n = 0;
        fail_on(ree_decoding_add(f->decoding, &added->id, &err), &err);
    } else if (what < 3 && f->n_sequences < MAX_SEQUENCES) {
        struct sequence *fork = &f->sequences[f->n_sequences++];
        *fork = *s;
        fail_on(ree_decoding_fork(f->decoding, s->id, &fork->id, &err), &err);
        CHECK(fork->id != s->id);
    } else if (what < 5) {
        // Within a page, at its end, or at the beginning.
        size_t n = below(8) == 0 ? 0 : below((uint32_t)s->n + 1);
        if (below(3) == 0) n = n / 16 * 16;
        fail_on(ree_decoding_truncate(f->decoding, s->id, n, &err), &err);
        s->n = n;
    } else if (what == 5 && f->n_sequences > 2) {
        const ree_sequence_id id = s->id;
        fail_on(ree_decoding_remove(f->decoding, id, &err), &err);
        *s = f->sequences[--f->n_sequences];
        CHECK(ree_decoding_remove(f->decoding, id, &err) == REE_NOT_FOUND);
    } else {
        decode(f);
    }
    check_lengths(f);
}

static void open_decoding(struct fixture *f, const struct ree_decoding_options *options) {
    struct ree_error err;
    fail_on(ree_decoding_create(f->generator, options, &f->decoding, &err), &err);
    f->n_sequences = 0;
}

static struct sequence *add(struct fixture *f, size_t n) {
    struct ree_error err;
    struct sequence *s = &f->sequences[f->n_sequences++];
    fail_on(ree_decoding_add(f->decoding, &s->id, &err), &err);
    for (s->n = 0; s->n < n; s->n++)
        s->ids[s->n] = (int32_t)below((uint32_t)f->vocab);
    struct ree_decode item = {s->id, s->ids, n, NULL, 1, NULL};
    if (n == 0) return s;
    fail_on(ree_decoding_run(f->decoding, &item, 1, &err), &err);
    check_item(f, s, &item);
    return s;
}

static void append(struct fixture *f, struct sequence *s, size_t n) {
    struct ree_error err;
    for (size_t i = 0; i < n; i++) {
        s->ids[s->n++] = (int32_t)below((uint32_t)f->vocab);
        struct ree_decode item = {s->id, &s->ids[s->n - 1], 1, NULL, 1, NULL};
        fail_on(ree_decoding_run(f->decoding, &item, 1, &err), &err);
        check_item(f, s, &item);
    }
}

static struct ree_decoding_stats stats_of(const struct fixture *f) {
    struct ree_decoding_stats stats = {.size = sizeof stats};
    struct ree_error err;
    fail_on(ree_decoding_stats(f->decoding, &stats, &err), &err);
    return stats;
}

// Forks share a prefix until they write, and copy only the page that they write into. 200 tokens
// are 12 pages and a half.
static void check_forks(struct fixture *f) {
    struct ree_error err;
    open_decoding(f, NULL);
    struct sequence *prefix = add(f, 200);
    const struct ree_decoding_stats before = stats_of(f);
    CHECK(before.n_pages == 13 && before.n_tokens == 200 && before.n_shared_pages == 0);
    for (size_t i = 0; i < 8; i++) {
        struct sequence *fork = &f->sequences[f->n_sequences++];
        *fork = *prefix;
        fail_on(ree_decoding_fork(f->decoding, prefix->id, &fork->id, &err), &err);
    }
    struct ree_decoding_stats after = stats_of(f);
    if (!after.copies_forks) {
        CHECK(after.n_pages == 13 && after.n_shared_pages == 13);
        CHECK(after.cache_bytes == before.cache_bytes && after.n_tokens == 200);
    }
    fail_on(ree_decoding_remove(f->decoding, prefix->id, &err), &err);
    *prefix = f->sequences[--f->n_sequences];
    for (size_t i = 0; i < f->n_sequences; i++)
        append(f, &f->sequences[i], 2);
    after = stats_of(f);
    CHECK(after.n_tokens == 216);
    // The last of the eight keeps the page that the others copied.
    if (!after.copies_forks)
        CHECK(after.n_pages == 12 + 8 && after.n_shared_pages == 12 && after.n_copied_pages == 7);
    while (f->n_sequences)
        fail_on(ree_decoding_remove(f->decoding, f->sequences[--f->n_sequences].id, &err), &err);
    CHECK(stats_of(f).n_pages == 0);
    ree_decoding_destroy(f->decoding);
}

// Writes NaN to a position of kv caches: what an overflow in a layer would leave there.
static void poison(const struct ree_session *session, const struct ree_kv_cache *caches,
                   size_t position) {
    struct ree_error err;
    struct ree_device *device = session->device;
    const uint32_t nan = 0x7FC00000;
    for (size_t i = 0; i < session->n_kv_caches; i++) {
        const struct ree_kv_cache *cache = &caches[i];
        size_t inner = 1, outer = 1;
        for (uint32_t d = 0; d < session->model->inputs[cache->spec.input].rank; d++)
            if (d != cache->spec.axis)
                *(d < cache->spec.axis ? &outer : &inner) *= (size_t)cache->dims[d];
        for (size_t e = 0; e < outer * inner; e++) {
            const size_t row = e / inner * (size_t)cache->capacity + position;
            fail_on(device->vtable->buffer_write(device, cache->buffer,
                                                 4 * (row * inner + e % inner), &nan, 4, &err),
                    &err);
        }
    }
}

// NaN in truncated positions has no effect: not in the sequence, and not in a fork that copies the
// page.
static void check_leftovers(struct fixture *f) {
    struct ree_error err;
    open_decoding(f, NULL);
    struct sequence *s = add(f, 78);
    if (!stats_of(f).copies_forks) {
        const struct ree_decoding_sequence *own = ree_decoding_find(f->decoding, s->id, &err);
        for (size_t at = 67; at < s->n; at++)
            poison(f->decoding->pool->session, f->decoding->pool->kv_caches,
                   (size_t)own->pages[at >> REE_PAGE_BITS] << REE_PAGE_BITS |
                       at % REE_PAGE_POSITIONS);
        struct sequence *fork = &f->sequences[f->n_sequences++];
        *fork = *s;
        fail_on(ree_decoding_fork(f->decoding, s->id, &fork->id, &err), &err);
        for (size_t i = 0; i < 2; i++) {
            fail_on(ree_decoding_truncate(f->decoding, f->sequences[i].id, 67 - i, &err), &err);
            f->sequences[i].n = 67 - i;
        }
        append(f, s, 1);
        append(f, fork, 2);
        append(f, s, 3);
    }
    ree_decoding_destroy(f->decoding);
}

// NaN in the positions of an earlier call of ree_generate has no effect on the next text.
static void check_earlier_text(struct fixture *f) {
    struct ree_error err;
    const struct ree_session *session = ree_pipeline_session(f->generator->pipeline);
    struct ree_generation out[3];
    int32_t ids[40];
    for (size_t i = 0; i < 40; i++)
        ids[i] = (int32_t)below((uint32_t)f->vocab);
    const struct ree_prompt prompts[2] = {{ids + 20, 9}, {ids, 40}};
    const struct ree_generate_options options = {
        .size = sizeof options, .sampling = ree_greedy, .max_new_tokens = 6};
    for (size_t i = 0; i < 3; i++) { // the short text, the long one, the short one again
        fail_on(ree_generate(f->generator, &prompts[i % 2], 1, &options, &out[i], NULL, &err),
                &err);
        for (size_t at = 15; i == 1 && at < 45; at++)
            poison(session, session->cache_slots[0], at);
    }
    CHECK(strcmp(out[0].tokens_sha256, out[2].tokens_sha256) == 0);
    for (size_t i = 0; i < 3; i++)
        ree_generation_finish(&out[i]);
}

// Truncation within a page, and then other tokens.
static void check_truncation(struct fixture *f) {
    struct ree_error err;
    open_decoding(f, NULL);
    struct sequence *s = add(f, 150);
    fail_on(ree_decoding_truncate(f->decoding, s->id, 70, &err), &err);
    s->n = 70;
    append(f, s, 2);
    CHECK(stats_of(f).n_pages == 5);
    // A fork that is truncated within a shared page leaves the original as it was.
    struct sequence *fork = &f->sequences[f->n_sequences++];
    *fork = *s;
    fail_on(ree_decoding_fork(f->decoding, s->id, &fork->id, &err), &err);
    fail_on(ree_decoding_truncate(f->decoding, fork->id, 30, &err), &err);
    fork->n = 30;
    append(f, fork, 2);
    append(f, s, 2);
    CHECK(ree_decoding_truncate(f->decoding, s->id, s->n + 1, &err) == REE_INVALID);
    ree_decoding_destroy(f->decoding);
}

// An exhausted pool is an error; afterwards all sequences can still be used.
static void check_exhaustion(struct fixture *f) {
    struct ree_error err;
    open_decoding(f, NULL);
    const uint64_t page_bytes = stats_of(f).page_bytes;
    ree_decoding_destroy(f->decoding);
    const struct ree_decoding_options options = {.size = sizeof options,
                                                 .max_cache_bytes = 17 * page_bytes};
    open_decoding(f, &options);
    struct sequence *a = add(f, 64), *b = add(f, 100);
    int32_t ids[MAX_TOKENS] = {0};
    struct ree_decode both[2] = {{a->id, ids, 64, NULL, 1, NULL}, {b->id, ids, 64, NULL, 1, NULL}};
    CHECK(ree_decoding_run(f->decoding, both, 2, &err) == REE_NO_MEMORY);
    CHECK(strstr(err.message, "max_cache_bytes") != NULL);
    CHECK(!both[0].logits);
    check_lengths(f);
    append(f, a, 1);
    append(f, b, 2);
    CHECK(stats_of(f).n_pages == 5 + 7);
    CHECK(ree_decoding_run(f->decoding, both, 2, &err) == REE_NO_MEMORY);
    fail_on(ree_decoding_truncate(f->decoding, b->id, 60, &err), &err);
    b->n = 60;
    append(f, a, 20);
    append(f, b, 6);
    CHECK(stats_of(f).pool_bytes <= options.max_cache_bytes);
    ree_decoding_destroy(f->decoding);
}

static void only_token_3(void *user, ree_sequence_id sequence, size_t position, float *logits,
                         size_t vocab_size) {
    (void)sequence;
    *(size_t *)user = position;
    for (size_t i = 0; i < vocab_size; i++)
        if (i != 3) logits[i] = -INFINITY;
}

static bool is_changed(const struct fixture *f, ree_sequence_id id) {
    struct ree_sequence_info info = {.size = sizeof info};
    struct ree_error err;
    fail_on(ree_decoding_sequence(f->decoding, id, &info, &err), &err);
    return info.logits_changed;
}

static void only_token_7(void *user, size_t sequence, size_t position, float *logits,
                         size_t vocab_size) {
    only_token_3(user, sequence, position, logits, vocab_size);
    if (position > 3) {
        logits[3] = -INFINITY;
        logits[7] = 0;
    }
}

// The same hook of ree_generate.
static void check_generate_hook(struct fixture *f) {
    struct ree_error err;
    size_t position = 0;
    int32_t ids[3] = {5, 6, 9};
    const struct ree_prompt prompt = {ids, 3};
    struct ree_generation out;
    struct ree_generate_options options = {.size = sizeof options,
                                           .sampling = ree_greedy,
                                           .max_new_tokens = 3,
                                           .on_logits = only_token_7,
                                           .user = &position};
    fail_on(ree_generate(f->generator, &prompt, 1, &options, &out, NULL, &err), &err);
    CHECK(out.n == 6 && out.ids[3] == 3 && out.ids[4] == 7 && out.ids[5] == 7);
    CHECK(position == 5 && out.logits_changed);
    ree_generation_finish(&out);
    const struct ree_snapshot snapshot = {.ids = ids, .n_prompt = 3, .n = 3};
    options.resume = &snapshot;
    CHECK(ree_generate(f->generator, &prompt, 1, &options, &out, NULL, &err) == REE_UNSUPPORTED);
    ree_generation_finish(&out);
}

// The hook changes which token is chosen, and logits_changed is set for the sequence and its forks.
static void check_hook(struct fixture *f) {
    struct ree_error err;
    size_t position = 0;
    const struct ree_decoding_options options = {
        .size = sizeof options, .on_logits = only_token_3, .user = &position};
    ree_sequence_id other, fork;
    int32_t ids[2] = {5, 6}, chosen;
    open_decoding(f, &options);
    struct sequence *s = add(f, 0);
    fail_on(ree_decoding_add(f->decoding, &other, &err), &err);
    struct ree_decode item = {s->id, ids, 2, NULL, 1, NULL};
    fail_on(ree_decoding_run(f->decoding, &item, 1, &err), &err);
    float *before = malloc(f->vocab * sizeof *before);
    memcpy(before, item.logits, f->vocab * sizeof *before);
    CHECK(!is_changed(f, s->id));
    fail_on(ree_decoding_choose(f->decoding, s->id, item.logits, &ree_greedy, &chosen, &err), &err);
    CHECK(chosen == 3 && position == 2 && is_changed(f, s->id) && !is_changed(f, other));
    CHECK(memcmp(before, item.logits, f->vocab * sizeof *before) == 0);
    fail_on(ree_decoding_fork(f->decoding, s->id, &fork, &err), &err);
    CHECK(is_changed(f, fork));
    free(before);
    ree_decoding_destroy(f->decoding);
}

// A prompt that fills a whole number of chunks of the reduction scheme, in one run.
static void check_whole_chunk(struct fixture *f) {
    open_decoding(f, NULL);
    if (f->most > 258) append(f, add(f, 256), 2);
    ree_decoding_destroy(f->decoding);
}

static void check_errors(struct fixture *f) {
    struct ree_error err;
    int32_t ids[2] = {1, (int32_t)f->vocab};
    size_t at = 2;
    open_decoding(f, NULL);
    struct sequence *s = add(f, 3);
    struct ree_decode items[2] = {{s->id + 77, ids, 1, NULL, 1, NULL},
                                  {s->id, ids, 1, NULL, 1, NULL}};
    CHECK(ree_decoding_run(f->decoding, items, 1, &err) == REE_NOT_FOUND);
    CHECK(strstr(err.message, "there is no sequence") != NULL);
    items[0].sequence = s->id;
    CHECK(ree_decoding_run(f->decoding, items, 2, &err) == REE_INVALID);
    items[0].n = 2;
    CHECK(ree_decoding_run(f->decoding, items, 1, &err) == REE_INVALID);
    CHECK(strstr(err.message, "vocabulary") != NULL);
    items[1].at = &at;
    CHECK(ree_decoding_run(f->decoding, items + 1, 1, &err) == REE_INVALID);
    items[1].n = 0;
    CHECK(ree_decoding_run(f->decoding, items + 1, 1, &err) == REE_INVALID);
    const int64_t context = ree_generator_info(f->generator)->context_length;
    if (context > 0) {
        int32_t *many = calloc((size_t)context, sizeof *many);
        struct ree_decode item = {s->id, many, (size_t)context, NULL, 0, NULL};
        CHECK(ree_decoding_run(f->decoding, &item, 1, &err) == REE_INVALID);
        CHECK(strstr(err.message, "context") != NULL);
        free(many);
    }
    check_lengths(f);
    const struct ree_decoding_options no_size = {0};
    struct ree_decoding *none;
    CHECK(ree_decoding_create(f->generator, &no_size, &none, &err) == REE_INVALID && !none);
    append(f, s, 2);
    ree_decoding_destroy(f->decoding);
}

// Several stages are refused with a reason.
static void check_stages(const char *path, struct ree_device *device) {
    const struct ree_generator_options options = {.size = sizeof options, .n_partitions = 2};
    struct ree_generator *generator;
    struct ree_decoding *decoding;
    struct ree_error err;
    fail_on(ree_generator_create(path, device, &options, &generator, &err), &err);
    CHECK(ree_decoding_create(generator, NULL, &decoding, &err) == REE_UNSUPPORTED && !decoding);
    CHECK(strstr(err.message, "stages") != NULL);
    ree_generator_destroy(generator);
}

// Greedy decoding by steps gives the tokens of ree_generate, for several prompts at once.
static void check_generate(struct fixture *f) {
    enum { N = 3, NEW = 24 };
    int32_t prompts[N][40], next[N];
    struct ree_prompt prompt[N];
    struct ree_generation out[N];
    struct ree_decode items[N];
    struct ree_error err;
    const struct ree_generate_options options = {
        .size = sizeof options, .sampling = ree_greedy, .max_new_tokens = NEW};
    open_decoding(f, NULL);
    for (size_t i = 0; i < N; i++) {
        prompt[i] = (struct ree_prompt){prompts[i], 7 + 11 * i};
        for (size_t k = 0; k < prompt[i].n; k++)
            prompts[i][k] = (int32_t)below((uint32_t)f->vocab);
        struct sequence *s = &f->sequences[i];
        fail_on(ree_decoding_add(f->decoding, &s->id, &err), &err);
        items[i] = (struct ree_decode){s->id, prompts[i], prompt[i].n, NULL, 1, NULL};
    }
    fail_on(ree_generate(f->generator, prompt, N, &options, out, NULL, &err), &err);
    for (size_t step = 0; step < NEW; step++) {
        fail_on(ree_decoding_run(f->decoding, items, N, &err), &err);
        for (size_t i = 0; i < N; i++) {
            fail_on(ree_decoding_choose(f->decoding, items[i].sequence, items[i].logits,
                                        &ree_greedy, &next[i], &err),
                    &err);
            CHECK(next[i] == out[i].ids[prompt[i].n + step]);
            items[i] = (struct ree_decode){items[i].sequence, &next[i], 1, NULL, 1, NULL};
        }
    }
    for (size_t i = 0; i < N; i++)
        ree_generation_finish(&out[i]);
    ree_decoding_destroy(f->decoding);
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    const char *isa = argc > 5 ? argv[5] : NULL;
    const bool unfused = isa && strcmp(isa, "unfused") == 0;
    static struct fixture f;
    struct ree_device *device, *cpu;
    struct ree_error err;
    const struct ree_device_options device_options = {.size = sizeof device_options,
                                                      .n_threads = (uint32_t)atoi(argv[2]),
                                                      .cpu_isa = unfused ? NULL : isa};
    if (ree_device_open(argv[1], &device_options, &device, &err)) {
        printf("skipped: %s\n", err.message);
        return err.status == REE_UNAVAILABLE ? TEST_SKIPPED : 1;
    }
    const struct ree_device_options one_thread = {.size = sizeof one_thread, .n_threads = 1};
    fail_on(ree_device_open("cpu", &one_thread, &cpu, &err), &err);
    const struct ree_session_options session = {.size = sizeof session, .no_fuse = unfused};
    const struct ree_generator_options options = {
        .size = sizeof options, .session = &session, .prefill_chunk = 256, .max_batch = 5};
    fail_on(ree_generator_create(argv[3], device, &options, &f.generator, &err), &err);
    fail_on(ree_generator_create(argv[3], cpu, NULL, &f.reference, &err), &err);
    const int64_t context = ree_generator_info(f.generator)->context_length;
    f.most = context > 0 && context < MAX_TOKENS ? (size_t)context : MAX_TOKENS;
    free(run_alone(&f, (int32_t[]){1}, 1)); // finds the vocabulary's size

    check_forks(&f);
    check_truncation(&f);
    check_leftovers(&f);
    check_earlier_text(&f);
    check_whole_chunk(&f);
    check_exhaustion(&f);
    check_hook(&f);
    check_generate_hook(&f);
    check_stages(argv[3], device);
    check_errors(&f);
    check_generate(&f);
    open_decoding(&f, NULL);
    f.n_rows = 0;
    const int n_operations = atoi(argv[4]);
    for (int i = 0; i < n_operations; i++)
        operate(&f);
    struct ree_decoding_stats stats = stats_of(&f);
    // The first operations compare few rows, because there are few sequences: 4 after 8 operations,
    // 109 after 40, 372 after 120.
    CHECK_MSG((int64_t)f.n_rows >= 2 * n_operations - 15, "%llu rows in %d operations",
              (unsigned long long)f.n_rows, n_operations);
    CHECK(!unfused || stats.n_page_copies > 0);
    printf("%s: %llu rows compared; %u copies of pages per run; %llu pages copied before a write\n",
           argv[3], (unsigned long long)f.n_rows, stats.n_page_copies,
           (unsigned long long)stats.n_copied_pages);
    ree_decoding_destroy(f.decoding);
    ree_generator_destroy(f.generator);
    ree_generator_destroy(f.reference);
    ree_device_destroy(cpu);
    ree_device_destroy(device);
    return test_finish();
}
