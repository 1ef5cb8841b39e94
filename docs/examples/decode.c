// Decodes step by step and chooses the tokens itself. The prompt runs once. A sequence and its fork
// share it; one continues with the most likely next token, the other with the second.
//
//     decode MODEL_FOLDER TEXT [DEVICE]
#include <ree.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_NEW 30 // tokens of each continuation

static struct ree_error err;

static void check(enum ree_status status) {
    if (status == REE_OK) return;
    fprintf(stderr, "decode: %s\n", err.message);
    exit(1);
}

// How this program chooses a token: the id with the largest logit, except the id `except`.
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

    int32_t *prompt, next[2];
    size_t n_prompt, n;
    check(ree_tokenizer_encode(tokenizer, argv[2], strlen(argv[2]), REE_ADD_SPECIAL, &prompt,
                               &n_prompt, &err));
    ree_sequence_id sequences[2];
    check(ree_decoding_add(decoding, &sequences[0], &err));
    struct ree_decode first = {sequences[0], prompt, n_prompt, NULL, 1, NULL};
    check(ree_decoding_run(decoding, &first, 1, &err)); // the prompt, once
    check(ree_decoding_fork(decoding, sequences[0], &sequences[1], &err));
    struct ree_decoding_stats stats = {.size = sizeof stats};
    check(ree_decoding_stats(decoding, &stats, &err));

    next[0] = largest(first.logits, stats.vocab_size, -1);
    next[1] = largest(first.logits, stats.vocab_size, next[0]);
    for (size_t step = 0; step < N_NEW; step++) {
        struct ree_decode items[2]; // one token of each sequence, in one run
        for (size_t i = 0; i < 2; i++)
            items[i] = (struct ree_decode){sequences[i], &next[i], 1, NULL, 1, NULL};
        check(ree_decoding_run(decoding, items, 2, &err));
        for (size_t i = 0; i < 2; i++)
            next[i] = largest(items[i].logits, stats.vocab_size, -1);
    }
    for (size_t i = 0; i < 2; i++) {
        char *text, hex[65];
        struct ree_sequence_info info = {.size = sizeof info};
        check(ree_decoding_sequence(decoding, sequences[i], &info, &err));
        check(ree_tokenizer_decode(tokenizer, info.ids, info.n, REE_SKIP_SPECIAL, &text, &n, &err));
        ree_tokens_sha256(info.ids, info.n, hex);
        printf("%s\ntokens  %zu  SHA-256 %s\n\n", text, info.n, hex);
        ree_free(text);
    }
    check(ree_decoding_stats(decoding, &stats, &err));
    printf("%u tokens were run, %zu of them for both\n", (unsigned)stats.n_tokens, n_prompt);
    ree_free(prompt);
    ree_decoding_destroy(decoding);
    ree_tokenizer_destroy(tokenizer);
    ree_generator_destroy(generator);
    ree_device_destroy(device);
    return 0;
}
