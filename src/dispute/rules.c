#include "dispute/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispute/bind.h"
#include "dispute/given_inputs.h"
#include "trace/model_header.h"
#include "trace/recorded.h"
#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "generate/causality.h"
#include "generate/generator.h"

// Maximum number of tokens up to the end of a step if the receipt does not list them. Without this
// limit, a receipt of a few bytes could require tensors of any size.
#define MAX_UNLISTED ((size_t)1 << 20)

const char *ree_rule_name(enum ree_rule_kind kind) {
    static const char *const names[] = {"none",  "given",   "made", "tokens",
                                        "cache", "samples", "draw", "default"};
    return names[kind];
}

// The rules of a model

static enum ree_status empty_cache(const struct ree_opened *m, size_t cache, ree_digest out,
                                   struct ree_error *err) {
    const struct ree_kv_cache_spec *spec = &m->roles.kv_caches[cache];
    const struct ree_port *port = ree_model_input(m->model, spec->input);
    struct ree_tensor t = {.dtype = port->dtype, .rank = port->rank};
    memcpy(t.dims, port->dims, sizeof t.dims);
    t.dims[spec->batch_axis] = 1;
    t.dims[spec->axis] = 0;
    for (uint32_t i = 0; i < t.rank; i++)
        if (t.dims[i] < 0)
            return ree_fail(err, REE_UNSUPPORTED, "the cache '%s' has an open dimension %u",
                            port->name, i);
    ree_recorded_positions_digest(&t, spec->axis, out);
    return REE_OK;
}

static enum ree_status list_outputs(const struct ree_opened *m, struct ree_arena *arena,
                                    struct ree_rules *out, struct ree_error *err) {
    size_t n = ree_model_n_outputs(m->model);
    out->outputs = ree_arena_alloc_array(arena, n + 1, sizeof *out->outputs);
    if (!out->outputs) return ree_no_memory(err);
    out->n_outputs = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        out->outputs[i].name = ree_model_output(m->model, i)->name;
        ree_recorded_source_of_output(m, i, &out->outputs[i].source);
    }
    return REE_OK;
}

enum ree_status ree_rules_make(const struct ree_opened *m, struct ree_arena *arena,
                               struct ree_rules *out, struct ree_error *err) {
    memset(out, 0, sizeof *out);
    out->model = m;
    out->n = m->header.n_inputs;
    out->tokens = out->logits = UINT32_MAX;
    out->rules = ree_arena_alloc_array(arena, (size_t)out->n + 1, sizeof *out->rules);
    if (!out->rules) return ree_no_memory(err);
    memset(out->rules, 0, (out->n + 1) * sizeof *out->rules);
    for (uint32_t i = 0; i < out->n; i++) {
        enum ree_role role = m->is_text ? m->roles.of_input[i] : REE_ROLE_KV_CACHE;
        out->rules[i].kind = !m->is_text                 ? REE_RULE_RUN_INPUT
                             : role == REE_ROLE_TOKENS   ? REE_RULE_TOKENS
                             : role == REE_ROLE_KV_CACHE ? REE_RULE_NONE
                                                         : REE_RULE_MADE;
        if (out->rules[i].kind == REE_RULE_TOKENS) out->tokens = i;
    }
    if (!m->is_text) return list_outputs(m, arena, out, err);
    out->has_cache = m->roles.n_kv_caches > 0;
    out->logits = ree_recorded_value_of_output(m, m->roles.logits);
    for (size_t s = 0; s < m->roles.n_kv_caches; s++) {
        struct ree_rule *rule = &out->rules[m->roles.kv_caches[s].input];
        rule->value = ree_recorded_value_of_output(m, m->roles.kv_caches[s].output);
        if (rule->value == UINT32_MAX) continue; // no node computes it
        REE_TRY(empty_cache(m, s, rule->empty, err));
        rule->kind = REE_RULE_CACHE;
    }
    return REE_OK;
}

// The run of a receipt

static bool has_hash(const struct ree_receipt *r, const int32_t *ids, size_t n,
                     const char *stated) {
    char hex[65];
    struct ree_hasher *h = ree_hasher_create("ree-tokens/1");
    ree_hasher_update(h, ids, n * sizeof *ids);
    ree_hasher_finish(h, hex);
    ree_receipt_blind(r, hex);
    return strcmp(hex, stated) == 0;
}

static enum ree_status check_tokens(const struct ree_receipt *r,
                                    const struct ree_stated_tokens *tokens, struct ree_error *err) {
    size_t n_prompt = r->prompt.n_tokens, n_output = r->output.n_tokens;
    if (tokens->n < n_prompt || tokens->n - n_prompt != n_output)
        return ree_fail(err, REE_INVALID, "%zu tokens were passed, but the receipt has %zu and %zu",
                        tokens->n, n_prompt, n_output);
    if (ree_bind_lacks_salt(r))
        return ree_fail(err, REE_INVALID,
                        "comparing the tokens of a private receipt requires its salt");
    if (!has_hash(r, tokens->ids, n_prompt, r->prompt.tokens_sha256) ||
        !has_hash(r, tokens->ids + n_prompt, n_output, r->output.tokens_sha256))
        return ree_fail(err, REE_INVALID, "the passed tokens are not the receipt's");
    return REE_OK;
}

static enum ree_status state_text_run(const struct ree_receipt *r,
                                      const struct ree_stated_tokens *tokens,
                                      struct ree_arena *arena, struct ree_stated_run *t,
                                      struct ree_error *err) {
    t->n_prompt = r->prompt.n_tokens;
    t->n_output = r->output.n_tokens;
    bool is_given = tokens && tokens->ids;
    bool is_listed = r->prompt.tokens && (r->output.tokens || !t->n_output);
    if (t->n_prompt == 0)
        return ree_fail(err, REE_INVALID, "a prompt without tokens cannot be run");
    if (is_given) REE_TRY(check_tokens(r, tokens, err));
    if (is_listed || is_given) {
        size_t n = t->n_prompt + t->n_output;
        t->ids = ree_arena_alloc_array(arena, n + 1, sizeof *t->ids);
        if (!t->ids) return ree_no_memory(err);
    }
    if (is_given) memcpy(t->ids, tokens->ids, tokens->n * sizeof *t->ids);
    if (is_listed && !is_given) {
        memcpy(t->ids, r->prompt.tokens, t->n_prompt * sizeof *t->ids);
        if (t->n_output)
            memcpy(t->ids + t->n_prompt, r->output.tokens, t->n_output * sizeof *t->ids);
    }
    // The prompt is cut as in generate/group.c.
    t->chunk = t->n_prompt;
    if (t->has_cache && r->trace_chunk < t->chunk) t->chunk = r->trace_chunk;
    if (t->chunk == 0)
        return ree_fail(err, REE_INVALID, "the prompt is divided into chunks of 0 tokens");
    t->n_prompt_steps = (t->n_prompt + t->chunk - 1) / t->chunk;
    t->may_end_early = t->n_output == 0;
    t->n_steps = t->n_prompt_steps + (t->n_output ? t->n_output - 1 : 0);
    return REE_OK;
}

enum ree_status ree_stated_run_make(const struct ree_receipt *r, const struct ree_rules *rules,
                                    const struct ree_stated_tokens *tokens, struct ree_arena *arena,
                                    struct ree_stated_run *out, struct ree_error *err) {
    memset(out, 0, sizeof *out);
    out->receipt = r;
    out->has_cache = rules->has_cache;
    if (!r->has_trace)
        return ree_fail(err, REE_INVALID, "the receipt has no trace, so it commits to no root");
    if (r->kind == REE_RECEIPT_TEXT) {
        if (r->trace_chunk) return state_text_run(r, tokens, arena, out, err);
        return ree_fail(err, REE_INVALID, "a receipt of a text, but its trace has no prompt");
    }
    if (r->trace_chunk)
        return ree_fail(err, REE_INVALID, "a receipt of tensors, but its trace has a prompt");
    out->n_steps = 1;
    return REE_OK;
}

bool ree_stated_run_has_steps(const struct ree_stated_run *t, uint64_t n_steps) {
    return n_steps == t->n_steps || (t->may_end_early && n_steps < t->n_steps);
}

// At temperature 0 most parameters have no effect, and ree-receipt/1 allows any value for them.
static bool same_sampling(const struct ree_sampling *a, const struct ree_sampling *b) {
    if (a->temperature == 0 && b->temperature == 0)
        return a->repetition_penalty == b->repetition_penalty;
    return a->temperature == b->temperature && a->top_k == b->top_k && a->top_p == b->top_p &&
           a->min_p == b->min_p && a->repetition_penalty == b->repetition_penalty &&
           a->seed == b->seed;
}

// Without the tokens of both, one's tokens are compared with the other's hash, or both hashes with
// each other. What a missing salt hides may be the same.
static bool same_prompt(const struct ree_stated_run *a, const struct ree_stated_run *b) {
    const struct ree_receipt *x = a->receipt, *y = b->receipt;
    if (a->n_prompt != b->n_prompt) return false;
    if (a->ids && b->ids) return memcmp(a->ids, b->ids, a->n_prompt * sizeof *a->ids) == 0;
    if (ree_bind_lacks_salt(a->ids ? y : x) || (!a->ids && ree_bind_lacks_salt(y))) return true;
    if (a->ids) return has_hash(y, a->ids, a->n_prompt, y->prompt.tokens_sha256);
    if (b->ids) return has_hash(x, b->ids, b->n_prompt, x->prompt.tokens_sha256);
    if (x->has_salt && y->has_salt) return true; // blinded differently
    char hashes[2][65];
    memcpy(hashes[0], x->prompt.tokens_sha256, sizeof hashes[0]);
    memcpy(hashes[1], y->prompt.tokens_sha256, sizeof hashes[1]);
    ree_receipt_blind(x, hashes[1]);
    ree_receipt_blind(y, hashes[0]);
    return strcmp(hashes[0], hashes[1]) == 0;
}

static enum ree_status other_runs(const char *what, struct ree_error *err) {
    return ree_fail(err, REE_INVALID,
                    "the receipts are of different runs: %s differs ('ree-run verify --request' "
                    "shows which of them answers a request)",
                    what);
}

enum ree_status ree_stated_chunk_lie(const struct ree_receipt *r, const struct ree_opened *m,
                                     char out[REE_CHUNK_LIE], struct ree_error *err) {
    struct ree_causality causality;
    out[0] = 0;
    if (r->kind != REE_RECEIPT_TEXT || r->version == 1 || !r->has_trace || !m->is_text ||
        !ree_chunk_needs_causality(&m->roles, r->trace_chunk))
        return REE_OK;
    REE_TRY(ree_causality_of_model(m->model, &m->roles, false, &causality, err));
    if (causality.is_proved) return REE_OK;
    snprintf(out, REE_CHUNK_LIE,
             "its prompt ran in chunks of %u tokens, but the model is not proved to be causal, so "
             "they must have %u",
             r->trace_chunk, REE_UNPROVED_CHUNK);
    return REE_OK;
}

enum ree_status ree_stated_run_compare_inputs(const struct ree_stated_run *a,
                                              const struct ree_stated_run *b,
                                              const struct ree_opened *m, struct ree_error *err) {
    bool same;
    REE_TRY(ree_given_inputs_compare(a->receipt, b->receipt, m, &same, err));
    return same ? REE_OK : other_runs("inputs", err);
}

enum ree_status ree_stated_run_compare(const struct ree_stated_run *a,
                                       const struct ree_stated_run *b, struct ree_error *err) {
    const struct ree_receipt *x = a->receipt, *y = b->receipt;
    const struct {
        const char *what;
        bool same;
    } parts[] = {
        {"graph", strcmp(x->graph_sha256, y->graph_sha256) == 0},
        {"weights", strcmp(x->weights_sha256, y->weights_sha256) == 0},
        {"numerics", strcmp(x->numerics, y->numerics) == 0},
        {"operation set", strcmp(x->operation_set, y->operation_set) == 0},
        {"kind", x->kind == y->kind},
        {"prompt", same_prompt(a, b)},
        {"sampling", same_sampling(&x->sampling, &y->sampling)},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!parts[i].same) return other_runs(parts[i].what, err);
    // The hash of the logits changes no token, nor does the prefill chunk if the model is causal,
    // so the other party can record a trace that is cut in the same way. With other models only
    // receipts of version 1 get here with another chunk (ree_stated_chunk_lie).
    bool is_cut = x->trace_chunk == y->trace_chunk;
    if (is_cut && !x->logits_sha256[0] == !y->logits_sha256[0]) return REE_OK;
    return ree_fail(err, REE_INVALID,
                    "the traces of the receipts are divided differently: %s differs; a run with "
                    "the other's %s can be compared, and has the same tokens if the model is "
                    "causal",
                    is_cut ? "hash of the logits" : "prefill chunk",
                    is_cut ? "--logits-hash" : "--prefill-chunk");
}

size_t ree_stated_run_differ(const struct ree_stated_run *a, const struct ree_stated_run *b) {
    size_t x = a->n_prompt + a->n_output, y = b->n_prompt + b->n_output, n = x < y ? x : y;
    if (!a->ids || !b->ids) return SIZE_MAX;
    for (size_t i = 0; i < n; i++)
        if (a->ids[i] != b->ids[i]) return i;
    return SIZE_MAX;
}

uint64_t ree_stated_run_step_of(const struct ree_stated_run *t, size_t index) {
    return index < t->n_prompt ? index / t->chunk : t->n_prompt_steps + (index - t->n_prompt);
}

// Inputs

// What a step reads. `ids`, `start` and `rows` belong to its single sequence.
struct plan {
    struct ree_step step;
    int64_t start, one_row;
    int64_t *rows;
    int32_t *ids; // allocated for this plan; NULL: the receipt's are used
};

static enum ree_status plan_step(const struct ree_stated_run *t, uint64_t number, struct plan *p,
                                 struct ree_error *err) {
    bool all = t->receipt->logits_sha256[0];
    size_t first, length, last;
    memset(p, 0, sizeof *p);
    if (number >= t->n_steps)
        return ree_fail(err, REE_INVALID, "the receipt's run has no step %llu",
                        (unsigned long long)number);
    if (number < t->n_prompt_steps) {
        first = (size_t)number * t->chunk;
        length = t->n_prompt - first < t->chunk ? t->n_prompt - first : t->chunk;
        last = t->n_prompt - 1;
        p->one_row = last < first + length ? (int64_t)(last - first) : 0;
    } else {
        last = t->n_prompt + (size_t)(number - t->n_prompt_steps);
        first = t->has_cache ? last : 0;
        length = last + 1 - first;
        p->one_row = t->has_cache ? 0 : (int64_t)last;
        all = false;
    }
    if (!t->ids && first + length > MAX_UNLISTED)
        return ree_fail(err, REE_UNSUPPORTED,
                        "step %llu has more than %zu tokens, which the receipt does not list",
                        (unsigned long long)number, MAX_UNLISTED);
    p->start = (int64_t)first;
    size_t n_rows = all ? length : 1;
    p->rows = ree_alloc(n_rows * sizeof *p->rows);
    if (!t->ids) p->ids = ree_alloc_zeroed(length, sizeof *p->ids);
    if (!p->rows || (!t->ids && !p->ids)) return ree_no_memory(err);
    for (size_t r = 0; r < n_rows; r++)
        p->rows[r] = all ? (int64_t)r : p->one_row;
    p->step =
        (struct ree_step){1, length, t->ids ? t->ids + first : p->ids, &p->start, n_rows, p->rows};
    return REE_OK;
}

static enum ree_status made_input(const struct ree_stated_run *t, const struct ree_opened *m,
                                  uint64_t step, uint32_t input, ree_digest out,
                                  struct ree_error *err) {
    struct plan p;
    struct ree_tensor tensor = {0};
    enum ree_status status = plan_step(t, step, &p, err);
    if (status == REE_OK)
        status = ree_step_input(m->model, &m->roles, &p.step, p.start + (int64_t)p.step.length,
                                input, &tensor, err);
    if (status == REE_OK) ree_trace_tensor_digest(&tensor, out);
    ree_tensor_finish(&tensor);
    ree_free(p.rows);
    ree_free(p.ids);
    return status;
}

enum ree_status ree_stated_run_input(const struct ree_stated_run *t, const struct ree_opened *m,
                                     const struct ree_rules *rules, uint64_t step, uint32_t input,
                                     ree_digest out, struct ree_error *err) {
    enum ree_rule_kind kind = input < rules->n ? rules->rules[input].kind : REE_RULE_NONE;
    memset(out, 0, sizeof(ree_digest));
    if (kind == REE_RULE_RUN_INPUT) return ree_given_input_digest(t->receipt, m, input, out, err);
    if (kind == REE_RULE_TOKENS && !t->ids)
        return ree_fail(err, REE_UNSUPPORTED, "a private receipt does not contain its tokens");
    if (kind == REE_RULE_MADE || kind == REE_RULE_TOKENS)
        return made_input(t, m, step, input, out, err);
    return ree_fail(err, REE_INTERNAL, "input %u does not follow from a receipt", input);
}
