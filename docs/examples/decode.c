// Decodes step by step with a sampling of its own. A text is computed once; two forks continue it,
// one with the most likely next token, one with the second, and share its kv caches.
//
//     decode MODEL_FOLDER "Once upon a time" [DEVICE]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ree.h"

#define N_NEW 30

static struct ree_error err;

static void check(enum ree_status status) {
    if (status == REE_OK) return;
    fprintf(stderr, "decode: %s\n", err.message);
    exit(1);
}

// The largest logit, but not that of `except`: this program's sampling.
static int32_t largest(const float *logits, size_t n, int32_t except) {
    size_t best = except == 0;
    for (size_t i = 0; i < n; i++)
        if (logits[i] > logits[best] && i != (size_t)except) best = i;
    return (int32_t)best;
}

int main(int argc, char **argv) {
    struct ree_device *device;
    struct ree_generator *generator;
    struct ree_tokenizer *tokenizer;
    struct ree_decoding *decoding;
    if (argc < 3) return fprintf(stderr, "usage: decode MODEL_FOLDER TEXT [DEVICE]\n"), 2;
    check(ree_device_open(argc > 3 ? argv[3] : "cpu", NULL, &device, &err));
    check(ree_generator_create(argv[1], device, NULL, &generator, &err));
    check(ree_tokenizer_load(argv[1], &tokenizer, &err));
    check(ree_decoding_create(generator, NULL, &decoding, &err));

    int32_t *prompt, answers[2][N_NEW];
    size_t n_prompt, n_bytes;
    check(ree_tokenizer_encode(tokenizer, argv[2], strlen(argv[2]), REE_ADD_SPECIAL, &prompt,
                               &n_prompt, &err));
    ree_sequence_id sequences[2];
    check(ree_decoding_add(decoding, &sequences[0], &err));
    struct ree_decode first = {sequences[0], prompt, n_prompt, NULL, 1, NULL};
    check(ree_decoding_run(decoding, &first, 1, &err)); // the prompt, once
    check(ree_decoding_fork(decoding, sequences[0], &sequences[1], &err));
    struct ree_decoding_stats stats = {.size = sizeof stats};
    check(ree_decoding_stats(decoding, &stats, &err));

    answers[0][0] = largest(first.logits, stats.vocab_size, -1);
    answers[1][0] = largest(first.logits, stats.vocab_size, answers[0][0]);
    for (size_t step = 0; step + 1 < N_NEW; step++) {
        struct ree_decode items[2]; // one token of each sequence, in one run
        for (size_t i = 0; i < 2; i++)
            items[i] = (struct ree_decode){sequences[i], &answers[i][step], 1, NULL, 1, NULL};
        check(ree_decoding_run(decoding, items, 2, &err));
        for (size_t i = 0; i < 2; i++)
            answers[i][step + 1] = largest(items[i].logits, stats.vocab_size, -1);
    }
    check(ree_decoding_stats(decoding, &stats, &err));
    for (size_t i = 0; i < 2; i++) {
        char *text;
        check(ree_tokenizer_decode(tokenizer, answers[i], N_NEW, 0, &text, &n_bytes, &err));
        printf("%s ...%s\n", argv[2], text);
        ree_free(text);
    }
    printf("%llu tokens were run, %zu of them for both\n", (unsigned long long)stats.n_tokens,
           n_prompt);
    ree_free(prompt);
    ree_decoding_destroy(decoding);
    ree_tokenizer_destroy(tokenizer);
    ree_generator_destroy(generator);
    ree_device_destroy(device);
    return 0;
}
