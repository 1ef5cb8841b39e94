// Walks the arguments in slices, in several threads. A state file lets an interrupted walk
// continue.
//
// The state file is text: lines for each finished slice, with its hard cases and mismatches:
//     slice FUNCTION FORM DIGEST INDEX INPUTS MISMATCHES SETTLED
//     hard X Y DISTANCE
//     wrong X Y EXPECTED
//     end
// A slice counts only if its `end` line is present, so a program killed while writing loses only
// the slice being written. Slices with another digest are skipped: they prove other sources.
#include "prove.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const form_names[] = {"c", "integer"};

struct walk {
    const struct prove_options *options;
    pthread_mutex_t lock;
    FILE *state;
    bool appended; // this walk has written to the state file
    bool done[PROVE_N_SLICES];
    uint32_t next, last, n_done, n_wanted;
    struct prove_counts total;
    double start;
    bool failed;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Reads the slices of this function and form. A missing file counts as empty.
static bool read_state(struct walk *walk) {
    const struct prove_options *options = walk->options;
    const struct prove_function *f = &prove_functions[options->function];
    FILE *file = fopen(options->state, "r");
    if (file == NULL) return true;
    char line[256];
    bool ours = false, first = true;
    uint32_t index = 0;
    struct prove_counts slice = {0};
    uint64_t n_wrong = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        char name[32], form[16], digest[32];
        struct prove_hard_case hard;
        uint32_t x, y, expected;
        struct prove_counts read = {0};
        if (sscanf(line, "slice %31s %15s %31s %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64, name,
                   form, digest, &index, &read.inputs, &read.mismatches,
                   &read.settled_by_mpfr) == 7) {
            ours = strcmp(name, f->name) == 0 && strcmp(form, form_names[options->form]) == 0 &&
                   strcmp(digest, f->digests[options->form]) == 0 && index < PROVE_N_SLICES;
            slice = read;
            n_wrong = 0;
        } else if (sscanf(line, "hard %" SCNx32 " %" SCNx32 " %lg", &hard.x, &hard.y,
                          &hard.distance) == 3) {
            if (slice.n_hard < PROVE_HARD) slice.hard[slice.n_hard++] = hard;
        } else if (sscanf(line, "wrong %" SCNx32 " %" SCNx32 " %" SCNx32, &x, &y, &expected) == 3) {
            if (n_wrong < sizeof slice.wrong_x / sizeof slice.wrong_x[0]) {
                slice.wrong_x[n_wrong] = x;
                slice.wrong_y[n_wrong] = y;
                slice.wrong_expected[n_wrong++] = expected;
            }
        } else if (strcmp(line, "\n") == 0) {
            ours = false;
        } else if (strcmp(line, "end\n") == 0) {
            if (ours && !walk->done[index]) {
                walk->done[index] = true;
                prove_counts_add(&walk->total, &slice);
            }
            ours = false;
        } else if (first) {
            fprintf(stderr, "ree-prove: %s is not a state file of this program: '%.60s'\n",
                    options->state, line);
            fclose(file);
            return false;
        } else {
            ours = false; // an incomplete line
        }
        first = false;
    }
    fclose(file);
    return true;
}

static void write_slice(struct walk *walk, uint32_t index, const struct prove_counts *slice) {
    const struct prove_options *options = walk->options;
    const struct prove_function *f = &prove_functions[options->function];
    FILE *file = walk->state;
    if (file == NULL) return;
    // Starts on a new line, even after an incomplete one.
    if (!walk->appended && ftell(file) > 0) fputc('\n', file);
    walk->appended = true;
    fprintf(file, "slice %s %s %s %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", f->name,
            form_names[options->form], f->digests[options->form], index, slice->inputs,
            slice->mismatches, slice->settled_by_mpfr);
    for (size_t i = 0; i < slice->n_hard; i++)
        fprintf(file, "hard %08" PRIx32 " %08" PRIx32 " %.3g\n", slice->hard[i].x, slice->hard[i].y,
                slice->hard[i].distance);
    uint64_t known = sizeof slice->wrong_x / sizeof slice->wrong_x[0];
    for (uint64_t i = 0; i < slice->mismatches && i < known; i++)
        fprintf(file, "wrong %08" PRIx32 " %08" PRIx32 " %08" PRIx32 "\n", slice->wrong_x[i],
                slice->wrong_y[i], slice->wrong_expected[i]);
    fprintf(file, "end\n");
    if (fflush(file) != 0 && !walk->failed) {
        fprintf(stderr, "ree-prove: cannot write %s\n", options->state);
        walk->failed = true;
    }
}

static void print_progress(const struct walk *walk) {
    if (walk->options->quiet || !isatty(STDERR_FILENO)) return;
    fprintf(stderr, "\r%-9s %-8s %3" PRIu32 "/%" PRIu32 " slices, %" PRIu64 " mismatches, %.0f s ",
            prove_functions[walk->options->function].name, form_names[walk->options->form],
            walk->n_done, walk->n_wanted, walk->total.mismatches, now() - walk->start);
}

static void *work(void *arg) {
    struct walk *walk = arg;
    const struct prove_options *options = walk->options;
    const struct prove_function *f = &prove_functions[options->function];
    static _Thread_local uint32_t x[PROVE_BLOCK], y[PROVE_BLOCK];
    for (;;) {
        pthread_mutex_lock(&walk->lock);
        while (walk->next <= walk->last && walk->done[walk->next])
            walk->next++;
        uint32_t index = walk->next++;
        bool stop = index > walk->last || walk->failed;
        pthread_mutex_unlock(&walk->lock);
        if (stop) return NULL;
        struct prove_counts slice = {0};
        for (uint32_t at = 0; at < PROVE_SLICE; at += PROVE_BLOCK) {
            for (uint32_t i = 0; i < PROVE_BLOCK; i++)
                x[i] = index * PROVE_SLICE + at + i;
            f->forms[options->form](x, y);
            prove_check(options->function, x, y, PROVE_BLOCK, &slice);
        }
        pthread_mutex_lock(&walk->lock);
        prove_counts_add(&walk->total, &slice);
        walk->n_done++;
        write_slice(walk, index, &slice);
        print_progress(walk);
        pthread_mutex_unlock(&walk->lock);
    }
}

bool prove_walk(const struct prove_options *options, struct prove_counts *out_counts) {
    struct walk walk = {.options = options, .start = now()};
    memset(out_counts, 0, sizeof *out_counts);
    if (options->state != NULL) {
        if (!read_state(&walk)) return false;
        walk.state = fopen(options->state, "a");
        if (walk.state == NULL) {
            fprintf(stderr, "ree-prove: cannot open %s for writing\n", options->state);
            return false;
        }
    }
    walk.next = options->from / PROVE_SLICE;
    walk.last = options->to / PROVE_SLICE;
    for (uint32_t i = walk.next; i <= walk.last; i++)
        walk.n_wanted += !walk.done[i];
    pthread_mutex_init(&walk.lock, NULL);
    pthread_t threads[256];
    int n = 0;
    while (n < options->n_threads && n < 256 && pthread_create(&threads[n], NULL, work, &walk) == 0)
        n++;
    if (n == 0) work(&walk);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&walk.lock);
    if (walk.state != NULL) fclose(walk.state);
    if (!options->quiet && isatty(STDERR_FILENO)) fprintf(stderr, "\r\033[K");
    *out_counts = walk.total;
    return !walk.failed;
}

bool prove_read_state(const struct prove_options *options, struct prove_counts *out_counts) {
    struct walk walk = {.options = options};
    memset(out_counts, 0, sizeof *out_counts);
    if (options->state == NULL || !read_state(&walk)) return false;
    *out_counts = walk.total;
    for (uint32_t i = 0; i < PROVE_N_SLICES; i++)
        if (!walk.done[i]) return false;
    return true;
}
