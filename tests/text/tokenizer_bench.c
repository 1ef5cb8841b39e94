// Measures how fast a tokenizer loads, encodes and decodes: medians of several runs as one line of
// JSON.
//
//     tokenizer_bench PATH TEXT [RUNS]
//
// bench.py compares it with PyPI's tokenizers.
#include "base/file.h"
#include "ree.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *times, int n) {
    qsort(times, (size_t)n, sizeof *times, by_value);
    return times[n / 2];
}

static void must(enum ree_status status, const struct ree_error *err) {
    if (status == REE_OK) return;
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

#define MAX_RUNS 101

int main(int argc, char **argv) {
    int runs = argc > 3 ? atoi(argv[3]) : 5;
    if (argc < 3 || runs < 1 || runs > MAX_RUNS) {
        fprintf(stderr, "usage: tokenizer_bench PATH TEXT [RUNS up to %d]\n", MAX_RUNS);
        return 2;
    }
    struct ree_error err;
    struct ree_tokenizer *tokenizer = NULL;
    void *text;
    size_t n_text, n_ids = 0, n_out;
    must(ree_file_read(argv[2], &text, &n_text, &err), &err);
    double load[MAX_RUNS], encode[MAX_RUNS], decode[MAX_RUNS];
    for (int i = 0; i < runs; i++) {
        int32_t *ids;
        char *out;
        ree_tokenizer_destroy(tokenizer);
        double start = now();
        must(ree_tokenizer_load(argv[1], &tokenizer, &err), &err);
        load[i] = now() - start;
        start = now();
        must(ree_tokenizer_encode(tokenizer, text, n_text, 0, &ids, &n_ids, &err), &err);
        encode[i] = now() - start;
        start = now();
        must(ree_tokenizer_decode(tokenizer, ids, n_ids, 0, &out, &n_out, &err), &err);
        decode[i] = now() - start;
        free(out);
        free(ids);
    }
    printf(
        "{\"bytes\": %zu, \"tokens\": %zu, \"load\": %.6f, \"encode\": %.6f, \"decode\": %.6f}\n",
        n_text, n_ids, median(load, runs), median(encode, runs), median(decode, runs));
    ree_tokenizer_destroy(tokenizer);
    free(text);
    return 0;
}
