#include "dispute/diff_receipts.h"

#include "base/float_env.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct list {
    struct ree_receipt_difference *out;
    size_t max, n;
};

__attribute__((format(printf, 3, 4))) static void add(struct list *list, const char *what,
                                                      const char *format, ...) {
    if (list->n++ >= list->max) return;
    struct ree_receipt_difference *d = &list->out[list->n - 1];
    va_list args;
    va_start(args, format);
    snprintf(d->what, sizeof d->what, "%s", what);
    vsnprintf(d->detail, sizeof d->detail, format, args);
    va_end(args);
}

static const char *or_none(const char *text) {
    return text && text[0] ? text : "none";
}

static void words(struct list *list, const char *what, const char *a, const char *b) {
    if (strcmp(or_none(a), or_none(b)) != 0)
        add(list, what, "%.100s and %.100s", or_none(a), or_none(b));
}

// Nine significant digits distinguish all binary32 numbers.
static void number(struct list *list, const char *what, double a, double b) {
    if (a != b) add(list, what, "%.9g and %.9g", a, b);
}

static void whole(struct list *list, const char *what, uint64_t a, uint64_t b) {
    if (a != b) add(list, what, "%llu and %llu", (unsigned long long)a, (unsigned long long)b);
}

static bool same_tokens(const struct ree_receipt_text *a, const struct ree_receipt_text *b) {
    return strcmp(a->tokens_sha256, b->tokens_sha256) == 0 && a->n_tokens == b->n_tokens;
}

// If both receipts list their tokens, reports the first token that differs; otherwise their hashes.
static void tokens(struct list *list, const char *what, const struct ree_receipt_text *a,
                   const struct ree_receipt_text *b) {
    if (same_tokens(a, b)) return;
    size_t n = a->n_tokens < b->n_tokens ? a->n_tokens : b->n_tokens, i = 0;
    if ((!a->tokens && a->n_tokens) || (!b->tokens && b->n_tokens)) {
        add(list, what, "SHA-256 %s and %s", a->tokens_sha256, b->tokens_sha256);
        return;
    }
    while (i < n && a->tokens[i] == b->tokens[i])
        i++;
    if (i < n)
        add(list, what, "token %zu is %d and %d; the numbers of tokens are %zu and %zu", i,
            a->tokens[i], b->tokens[i], a->n_tokens, b->n_tokens);
    else
        add(list, what, "one is the beginning of the other; the numbers of tokens are %zu and %zu",
            a->n_tokens, b->n_tokens);
}

static void text(struct list *list, const char *what, const struct ree_receipt_text *a,
                 const struct ree_receipt_text *b) {
    if (strcmp(a->text_sha256, b->text_sha256) == 0) return;
    if (!a->text || !b->text) {
        words(list, what, a->text_sha256, b->text_sha256);
        return;
    }
    size_t i = 0;
    while (a->text[i] && a->text[i] == b->text[i])
        i++;
    // Move back to the first byte of a character.
    while (i > 0 && ((unsigned char)a->text[i] & 0xC0) == 0x80)
        i--;
    add(list, what, "from byte %zu on: \"%.60s\" and \"%.60s\"", i, a->text + i, b->text + i);
}

static void sampling(struct list *list, const struct ree_receipt *a, const struct ree_receipt *b) {
    const struct ree_sampling *x = &a->sampling, *y = &b->sampling;
    number(list, "temperature", (double)x->temperature, (double)y->temperature);
    whole(list, "top_k", x->top_k, y->top_k);
    number(list, "top_p", (double)x->top_p, (double)y->top_p);
    number(list, "min_p", (double)x->min_p, (double)y->min_p);
    number(list, "repetition_penalty", (double)x->repetition_penalty,
           (double)y->repetition_penalty);
    whole(list, "seed", x->seed, y->seed);
    whole(list, "max_new_tokens", a->max_new_tokens, b->max_new_tokens);
    bool stops = a->n_stops == b->n_stops, eos = a->n_eos == b->n_eos;
    for (size_t i = 0; stops && i < a->n_stops; i++)
        stops = strcmp(a->stops[i], b->stops[i]) == 0;
    for (size_t i = 0; eos && i < a->n_eos; i++)
        eos = a->eos[i] == b->eos[i];
    if (!stops)
        add(list, "stop", "the lists of stop texts differ (%zu and %zu texts)", a->n_stops,
            b->n_stops);
    if (!eos)
        add(list, "eos", "the lists of eos tokens differ (%zu and %zu tokens)", a->n_eos, b->n_eos);
    number(list, "context_length", (double)a->context_length, (double)b->context_length);
}

static void tensors(struct list *list, const char *kind, const struct ree_receipt_tensor *a,
                    size_t n_a, const struct ree_receipt_tensor *b, size_t n_b) {
    char what[64];
    for (size_t i = 0; i < n_a && i < n_b; i++) {
        snprintf(what, sizeof what, "%s %s", kind, a[i].name);
        if (strcmp(a[i].name, b[i].name) != 0)
            add(list, what, "the other receipt's is named %.60s", b[i].name);
        else if (strcmp(a[i].sha256, b[i].sha256) != 0)
            add(list, what, "SHA-256 %s and %s", a[i].sha256, b[i].sha256);
    }
    snprintf(what, sizeof what, "%ss", kind);
    whole(list, what, n_a, n_b);
}

// Blinds the hashes of an open receipt with the salt of a private one, and removes the open
// receipt's tokens and texts.
static void blind(const struct ree_receipt *salted, struct ree_receipt *open) {
    char *const hashes[] = {open->prompt.tokens_sha256, open->prompt.text_sha256,
                            open->output.tokens_sha256, open->output.text_sha256,
                            open->logits_sha256,        open->trace_root};
    for (size_t i = 0; i < sizeof hashes / sizeof *hashes; i++)
        ree_receipt_blind(salted, hashes[i]);
    open->prompt.tokens = open->output.tokens = NULL;
    open->prompt.text = open->output.text = NULL;
}

// Makes the hashes of two copies comparable. Returns false if they are blinded with different
// salts, or if a private receipt is compared with an open one and its salt is missing.
static bool make_comparable(struct ree_receipt *a, struct ree_receipt *b) {
    if (a->is_private && b->is_private) return strcmp(a->salt_sha256, b->salt_sha256) == 0;
    if (a->is_private && a->has_salt) blind(a, b);
    if (b->is_private && b->has_salt) blind(b, a);
    return (!a->is_private || a->has_salt) && (!b->is_private || b->has_salt);
}

static void contents(struct list *list, const struct ree_receipt *a, const struct ree_receipt *b) {
    tokens(list, "prompt tokens", &a->prompt, &b->prompt);
    text(list, "prompt text", &a->prompt, &b->prompt);
    sampling(list, a, b);
    tokens(list, "output tokens", &a->output, &b->output);
    text(list, "output text", &a->output, &b->output);
    words(list, "finish reason", a->finish_reason, b->finish_reason);
    words(list, "logits", a->logits_sha256, b->logits_sha256);
}

size_t ree_receipt_diff(const struct ree_receipt *first, const struct ree_receipt *second,
                        struct ree_receipt_difference *out, size_t max) {
    REE_FLOAT_ENV_API();
    struct list list = {out, max, 0};
    struct ree_receipt copies[] = {*first, *second}; // the copies borrow everything
    const struct ree_receipt *a = &copies[0], *b = &copies[1];
    bool can_compare = make_comparable(&copies[0], &copies[1]);
    static const char *const kinds[] = {"text", "tensors"};
    words(&list, "kind", kinds[a->kind], kinds[b->kind]);
    whole(&list, "schema's version", a->version, b->version);
    words(&list, "numerics", a->numerics, b->numerics);
    words(&list, "operation set", a->operation_set, b->operation_set);
    words(&list, "graph", a->graph_sha256, b->graph_sha256);
    words(&list, "weights", a->weights_sha256, b->weights_sha256);
    if (a->kind == b->kind && a->kind == REE_RECEIPT_TEXT) {
        words(&list, "tokenizer", a->tokenizer_sha256, b->tokenizer_sha256);
        words(&list, "request", a->request_sha256, b->request_sha256);
        if (can_compare)
            contents(&list, a, b);
        else
            sampling(&list, a, b);
    } else if (a->kind == b->kind) {
        tensors(&list, "input", a->inputs, a->n_inputs, b->inputs, b->n_inputs);
        tensors(&list, "output", a->outputs, a->n_outputs, b->outputs, b->n_outputs);
    }
    if (can_compare)
        words(&list, "trace", a->trace_root, b->trace_root);
    else
        add(&list, "private", "hashes are blinded, and the salts to compare them are missing");
    whole(&list, "steps of the trace", a->trace_steps, b->trace_steps);
    whole(&list, "prefill chunk of the trace", a->trace_chunk, b->trace_chunk);
    if (!ree_receipt_same_extensions(a, b)) add(&list, "extensions", "not the same");
    // Differences that the checks above do not find. The hash of a private receipt always differs
    // from the hash of an open one.
    if (list.n == 0 && a->is_private == b->is_private)
        words(&list, "hash of the receipt", a->receipt_hash, b->receipt_hash);
    return list.n;
}
