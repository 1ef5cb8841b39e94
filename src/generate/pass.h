// Runs the tokens of a text like a prompt and returns their logits, one row per token, in pieces. A
// piece has at most 64 MiB of logits, or 16 rows if these are more, unless the model computes the
// logits of all tokens of a run in any case.
//
//     struct ree_pass pass;
//     if (ree_pass_begin(&pass, g, ids, n, first_row, err)) ...
//     while (!ree_pass_is_done(&pass)) {
//         if (ree_pass_next(&pass, &row, &n_rows, &logits, err)) ...
//         ... logits of the tokens at row ... row + n_rows - 1
//         ree_tensor_finish(&logits);
//     }
//     ree_pass_finish(&pass);
#ifndef REE_GENERATE_PASS_H
#define REE_GENERATE_PASS_H

#include "generate/generator.h"

struct ree_pass {
    struct ree_generator *g;
    const int32_t *ids; // borrowed
    size_t n;           // tokens to run
    size_t from;        // number of tokens already run; stays 0 without a kv cache
    size_t row;         // position of the first token whose logits are still to come
    size_t n_runs;      // runs of the model so far
    int64_t *rows;
    size_t capacity; // capacity of `rows`, in elements
};

// Starts a pass over the text ids[n]: empties the kv caches of slot 0. first_row is the position of
// the first token whose logits are needed; it must be below n. The text may have any length: the
// model's context length is not checked. Release *pass with ree_pass_finish, also after a failure.
enum ree_status ree_pass_begin(struct ree_pass *pass, struct ree_generator *g, const int32_t *ids,
                               size_t n, size_t first_row, struct ree_error *err);
static inline bool ree_pass_is_done(const struct ree_pass *pass) {
    return pass->row >= pass->n;
}
// Runs the model once. Initialises *out_logits, float32 (1, *out_n_rows, vocab_size), which has the
// logits of the tokens from *out_row on. If the run was over tokens whose logits are not needed,
// *out_n_rows is 0 and *out_logits is zeroed. Must not be called if the pass is done.
enum ree_status ree_pass_next(struct ree_pass *pass, size_t *out_row, size_t *out_n_rows,
                              struct ree_tensor *out_logits, struct ree_error *err);
// For callers that divide the text themselves, instead of ree_pass_next: runs the tokens at
// positions `from` to from + length - 1. Initialises *out_logits like ree_pass_next, with the
// logits of n_rows of these tokens, beginning with the one at position `row`.
enum ree_status ree_pass_run(struct ree_pass *pass, size_t from, size_t length, size_t row,
                             size_t n_rows, struct ree_tensor *out_logits, struct ree_error *err);
// Fails with REE_INVALID if a token id is negative or not below vocab_size. vocab_size 0: unknown;
// some models do not declare it, so that only their logits show it.
enum ree_status ree_pass_check_ids(const int32_t *ids, size_t n, int64_t vocab_size,
                                   struct ree_error *err);
void ree_pass_finish(struct ree_pass *pass); // accepts a zeroed struct

#endif
