#include "receipt/read_answer.h"

#include "base/status.h"
#include "generate/id_set.h"

// Returns whether the answer has the maximum number of tokens, which ree_sequence_limit defines.
static bool is_full(const struct ree_answer_question *q, size_t n_answer) {
    uint64_t most = q->receipt->max_new_tokens, context = q->context_length;
    return (most && n_answer >= most) || (context && q->n_prompt + n_answer >= context);
}

enum ree_status ree_answer_read(const struct ree_answer_question *q, struct ree_answer_read *out,
                                struct ree_error *err) {
    const struct ree_receipt *r = q->receipt;
    struct ree_id_set eos;
    *out = (struct ree_answer_read){.n_until_end = SIZE_MAX};
    REE_TRY(ree_id_set_make(r->eos, r->n_eos, &eos, err));
    enum ree_status status =
        q->tokenizer
            ? ree_answer_begin(&out->answer, q->tokenizer, r->stops, r->n_stops, q->ids,
                               q->n_prompt,
                               r->version == 1 ? REE_BOUNDARY_JOINED : REE_BOUNDARY_SETTLED, err)
            : REE_OK;
    for (size_t i = 0; i < q->n_answer && status == REE_OK && !out->reason; i++) {
        int32_t id = q->ids[q->n_prompt + i];
        if (q->tokenizer) status = ree_answer_push(&out->answer, id, err);
        if (status != REE_OK) break;
        if (ree_id_set_has(&eos, id))
            out->reason = ree_finish_name(REE_FINISH_EOS);
        else if (out->answer.stopped)
            out->reason = ree_finish_name(REE_FINISH_STOP);
        else if (is_full(q, i + 1))
            out->reason = ree_finish_name(REE_FINISH_LENGTH);
        if (out->reason) out->n_until_end = i + 1;
    }
    out->is_whole = out->n_until_end >= q->n_answer;
    if (q->tokenizer && status == REE_OK) status = ree_answer_end(&out->answer, err);
    ree_id_set_finish(&eos);
    return status;
}

void ree_answer_read_finish(struct ree_answer_read *read) {
    ree_answer_finish(&read->answer);
}
