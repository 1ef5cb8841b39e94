#include "generate/pass.h"

#include "base/memory.h"
#include "base/status.h"

// Maximum number of logits that are held at a time: 64 MiB of float32, but at least MIN_ROWS rows.
#define MAX_LOGITS ((size_t)1 << 24)
#define MIN_ROWS 16

enum ree_status ree_pass_check_ids(const int32_t *ids, size_t n, int64_t vocab_size,
                                   struct ree_error *err) {
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (vocab_size && ids[i] >= vocab_size))
            return ree_fail(err, REE_INVALID,
                            "token %zu is %d, but the model's vocabulary has %lld tokens", i,
                            ids[i], (long long)vocab_size);
    return REE_OK;
}

enum ree_status ree_pass_begin(struct ree_pass *pass, struct ree_generator *g, const int32_t *ids,
                               size_t n, size_t first_row, struct ree_error *err) {
    *pass = (struct ree_pass){.g = g, .ids = ids, .n = n, .row = first_row};
    return ree_generator_begin(g, 0, 1, (int64_t)n, err);
}

void ree_pass_finish(struct ree_pass *pass) {
    ree_free(pass->rows);
    *pass = (struct ree_pass){0};
}

static size_t most_rows(const struct ree_pass *pass) {
    int64_t vocab = pass->g->info.vocab_size;
    size_t rows = vocab ? MAX_LOGITS / (size_t)vocab : 64;
    return rows > MIN_ROWS ? rows : MIN_ROWS;
}

enum ree_status ree_pass_run(struct ree_pass *pass, size_t from, size_t length, size_t row,
                             size_t n_rows, struct ree_tensor *out, struct ree_error *err) {
    int64_t start = (int64_t)from, last = (int64_t)length - 1;
    *out = (struct ree_tensor){0};
    if (n_rows > pass->capacity) {
        int64_t *grown = ree_realloc(pass->rows, n_rows * sizeof *grown);
        if (!grown) return ree_no_memory(err);
        pass->rows = grown;
        pass->capacity = n_rows;
    }
    for (size_t r = 0; r < n_rows; r++)
        pass->rows[r] = (int64_t)(row + r - from);
    // A step requests at least one row; if none is needed, it is released below.
    const struct ree_step step = {.batch = 1,
                                  .length = length,
                                  .ids = pass->ids + from,
                                  .starts = &start,
                                  .n_rows = n_rows ? n_rows : 1,
                                  .rows = n_rows ? pass->rows : &last};
    REE_TRY(ree_generator_step(pass->g, &step, out, err));
    pass->n_runs++;
    if (n_rows == 0) ree_tensor_finish(out);
    return REE_OK;
}

// With a kv cache: runs the next chunk. The chunk is limited so that its needed rows of logits can
// be held. Tokens before the first needed row do not count.
static enum ree_status next_chunk(struct ree_pass *pass, size_t *out_n_rows, struct ree_tensor *out,
                                  struct ree_error *err) {
    size_t from = pass->from, left = pass->n - from, rows = most_rows(pass);
    size_t chunk = pass->g->options.prefill_chunk, length = chunk < left ? chunk : left;
    size_t before = pass->row - from; // number of tokens before the first needed row
    if (length > before && length - before > rows) length = before + rows;
    *out_n_rows = length > before ? length - before : 0;
    REE_TRY(ree_pass_run(pass, from, length, pass->row, *out_n_rows, out, err));
    pass->from += length;
    return REE_OK;
}

// Without a kv cache, each run covers the whole text. If the model computes all logits anyway, one
// run returns all of them; otherwise a run returns as many rows as can be held.
static enum ree_status next_block(struct ree_pass *pass, size_t *out_n_rows, struct ree_tensor *out,
                                  struct ree_error *err) {
    size_t left = pass->n - pass->row,
           most = pass->g->info.computes_one_row ? most_rows(pass) : left;
    *out_n_rows = left < most ? left : most;
    return ree_pass_run(pass, 0, pass->n, pass->row, *out_n_rows, out, err);
}

enum ree_status ree_pass_next(struct ree_pass *pass, size_t *out_row, size_t *out_n_rows,
                              struct ree_tensor *out, struct ree_error *err) {
    *out_row = pass->row;
    *out_n_rows = 0;
    enum ree_status status = pass->g->info.has_cache ? next_chunk(pass, out_n_rows, out, err)
                                                     : next_block(pass, out_n_rows, out, err);
    if (status == REE_OK) pass->row += *out_n_rows;
    return status;
}
