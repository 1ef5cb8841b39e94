// Chooses and reports a sequence's next token, and decides whether it is the last.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "base/status.h"
#include "device/device.h"
#include "generate/group.h"

size_t ree_sequence_limit(const struct ree_generate_call *call, const struct ree_sequence *s) {
    return ree_token_limit(call->g, s->out->n_prompt, call->options->max_new_tokens);
}

bool ree_sequence_is_eos(const struct ree_generate_call *call, int32_t id) {
    for (size_t i = 0; i < call->options->n_eos; i++)
        if (id == call->options->eos[i]) return true;
    return false;
}

static void end_sequence(struct ree_sequence *s, enum ree_finish finish) {
    if (s->is_done) return;
    s->is_done = true;
    s->out->finish = finish;
    if (s->logits) ree_hasher_finish(s->logits, s->out->logits_sha256);
    s->logits = NULL;
}

// Computes log softmax with the RepOp of the CPU. logprobs receives `vocab` values, `top` the n
// most likely tokens in descending order; if there are fewer, the id of the others is -1.
static enum ree_status find_logprobs(const float *logits, size_t vocab, uint32_t n, float *logprobs,
                                     struct ree_logprob *top, struct ree_error *err) {
    struct ree_dispatch d = {.op = REE_REPOP_SOFTMAX, .n_operands = 2, .n_outputs = 1};
    d.params.softmax =
        (struct ree_softmax_params){.log = 1, .outer = 1, .k = (uint32_t)vocab, .inner = 1};
    d.operands[0] = d.operands[1] = (struct ree_operand){0, 0, vocab * sizeof *logits};
    void *operands[2] = {(float *)(uintptr_t)logits, logprobs};
    REE_TRY(ree_cpu_execute(&d, operands, err));
    uint32_t kept = 0;
    for (size_t i = 0; i < vocab; i++) {
        uint32_t at = kept;
        while (at > 0 && top[at - 1].logprob < logprobs[i])
            at--;
        if (at == n) continue;
        if (kept < n) kept++;
        memmove(top + at + 1, top + at, (kept - at - 1) * sizeof *top);
        top[at] = (struct ree_logprob){(int32_t)i, logprobs[i]};
    }
    for (; kept < n; kept++)
        top[kept] = (struct ree_logprob){-1, -INFINITY};
    return REE_OK;
}

static enum ree_status report_token(const struct ree_generate_call *call, struct ree_sequence *s,
                                    const float *logits, size_t vocab, struct ree_error *err) {
    const struct ree_generate_options *o = call->options;
    struct ree_generation *out = s->out;
    struct ree_token token = {s->number, out->n - 1, out->ids[out->n - 1], 0, NULL};
    struct ree_logprob *top = NULL;
    if (o->n_logprobs) {
        float *logprobs = ree_alloc(vocab * sizeof *logprobs);
        top = ree_alloc((o->n_logprobs + 1) * sizeof *top);
        enum ree_status status = logprobs && top ? REE_OK : ree_no_memory(err);
        if (status == REE_OK)
            status = find_logprobs(logits, vocab, o->n_logprobs, logprobs, top, err);
        if (status == REE_OK) token.logprob = logprobs[token.id];
        token.top = top;
        ree_free(logprobs);
        if (status != REE_OK) {
            ree_free(top);
            return status;
        }
    }
    bool goes_on = true;
    if (o->on_token) {
        REE_FLOAT_ENV_CALLBACK();
        goes_on = o->on_token(o->user, &token);
    }
    ree_free(top);
    if (ree_sequence_is_eos(call, token.id)) end_sequence(s, REE_FINISH_EOS);
    if (!goes_on) end_sequence(s, REE_FINISH_STOP);
    if (out->n >= ree_sequence_limit(call, s)) end_sequence(s, REE_FINISH_LENGTH);
    return REE_OK;
}

// Chooses the token at position n. If there is a callback on_logits, it changes a copy of the
// logits first.
static enum ree_status choose(const struct ree_generate_call *call, struct ree_sequence *s,
                              const float *logits, size_t vocab, size_t n, int32_t *out_id,
                              struct ree_error *err) {
    const struct ree_generate_options *o = call->options;
    const int32_t *ids = s->out->ids;
    if (!o->on_logits)
        return ree_sampling_choose(&o->sampling, logits, vocab, ids, n, n, out_id, err);
    float *copy = ree_alloc(vocab * sizeof *copy);
    if (!copy) return ree_no_memory(err);
    memcpy(copy, logits, vocab * sizeof *copy);
    s->out->logits_changed = true;
    {
        REE_FLOAT_ENV_CALLBACK();
        o->on_logits(o->user, s->number, n, copy, vocab);
    }
    enum ree_status status = ree_sampling_choose(&o->sampling, copy, vocab, ids, n, n, out_id, err);
    ree_free(copy);
    return status;
}

enum ree_status ree_sequence_add(struct ree_generate_call *call, struct ree_sequence *s,
                                 const float *logits, size_t vocab, struct ree_error *err) {
    struct ree_generation *out = s->out;
    int32_t id;
    size_t n = s->expects_last ? out->n - 1 : out->n;
    enum ree_status status = choose(call, s, logits, vocab, n, &id, err);
    if (status != REE_OK) {
        ree_fail_prefix(err, "position %zu of sequence %zu", n, s->number);
        return status;
    }
    if (s->expects_last) {
        s->expects_last = false;
        if (id == out->ids[n]) return REE_OK;
        return ree_fail(err, REE_INVALID,
                        "position %zu of sequence %zu: the answer so far has token %d, but the "
                        "model chooses %d",
                        n, s->number, out->ids[n], id);
    }
    int32_t *ids = ree_realloc(out->ids, (out->n + 1) * sizeof *ids);
    if (!ids) return ree_no_memory(err);
    out->ids = ids;
    ids[out->n++] = id;
    if (call->stats->new_tokens++ == 0)
        call->stats->first_token_seconds = ree_clock() - call->start;
    return report_token(call, s, logits, vocab, err);
}
