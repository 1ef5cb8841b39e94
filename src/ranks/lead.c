// Rank 0 while it generates.
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "generate/remote.h"
#include "ranks/ranks_internal.h"

static enum ree_status lead_begin(void *user, size_t set, size_t batch, int64_t most,
                                  struct ree_error *err) {
    struct ree_ranks *ranks = user;
    const int64_t numbers[2] = {(int64_t)batch, most};
    struct ree_part part = {numbers, sizeof numbers};
    ranks->sets[set].rows = 0;
    return ree_transport_send(ranks->transport, 1, REE_MESSAGE_BEGIN, ranks->n_submitted,
                              (uint32_t)set, &part, 1, err);
}

static enum ree_status lead_submit(void *user, size_t set, const struct ree_step *step,
                                   struct ree_error *err) {
    struct ree_ranks *ranks = user;
    struct ree_parcel parcel = {0};
    uint64_t number = ranks->n_submitted++;
    double start = ree_transport_clock();
    if (number == 0) ranks->first_submit = start;
    ranks->sets[set].number = number;
    size_t limit = ree_logits_limit(step, ranks->generator->info.vocab_size);
    if (limit > ranks->logits_limit) ranks->logits_limit = limit;
    REE_TRY(ree_generator_run_stages(ranks->generator, set, step, NULL, &parcel, NULL, err));
    ree_ranks_ran(ranks, step, start, number, (uint32_t)set);
    for (size_t b = 0; b < step->batch; b++)
        if (step->starts[b] + (int64_t)step->length > ranks->sets[set].rows)
            ranks->sets[set].rows = step->starts[b] + (int64_t)step->length;
    return ree_ranks_pass_on(ranks, step, &parcel, number, (uint32_t)set, err);
}

// The set's logits, which may have to wait for those of others that were submitted before.
static enum ree_status take_logits(struct ree_ranks *ranks, size_t set, struct ree_message *out,
                                   struct ree_error *err) {
    struct ree_rank_set *own = &ranks->sets[set];
    uint32_t last = ranks->n_ranks - 1;
    for (;;) {
        if (own->arrived.frame) {
            *out = own->arrived;
            memset(&own->arrived, 0, sizeof own->arrived);
            if (out->step == own->number) return REE_OK;
            ree_message_finish(out);
            return ree_fail(err, REE_INVALID, "rank %u sent the logits of another step than %llu",
                            last, (unsigned long long)own->number);
        }
        struct ree_message m;
        REE_TRY(ree_ranks_receive(ranks, last, 1u << REE_MESSAGE_LOGITS, ranks->logits_limit,
                                  own->number, &m, err));
        if (m.set >= ranks->n_sets || ranks->sets[m.set].arrived.frame) {
            ree_message_finish(&m);
            return ree_fail(err, REE_INVALID, "rank %u sent logits that nobody asked for", last);
        }
        ranks->sets[m.set].arrived = m;
    }
}

static enum ree_status lead_collect(void *user, size_t set, const struct ree_step *step,
                                    struct ree_tensor *out_logits, struct ree_error *err) {
    struct ree_ranks *ranks = user;
    struct ree_message m;
    memset(out_logits, 0, sizeof *out_logits);
    REE_TRY(take_logits(ranks, set, &m, err));
    enum ree_status status =
        ree_decode_logits(&m, step, ranks->generator->info.vocab_size, out_logits, err);
    if (status != REE_OK) ree_fail_prefix(err, "logits from rank %u are", ranks->n_ranks - 1);
    ree_message_finish(&m);
    ranks->last_collect = ree_transport_clock();
    return status;
}

static int64_t lead_rows(void *user, size_t set) {
    const struct ree_ranks *ranks = user;
    return ranks->sets[set].rows;
}

enum ree_status ree_ranks_lead(struct ree_ranks *ranks, struct ree_error *err) {
    ranks->remote = malloc(sizeof *ranks->remote);
    if (!ranks->remote) return ree_fail(err, REE_NO_MEMORY, "out of memory");
    *ranks->remote = (struct ree_remote){ranks, lead_begin, lead_submit, lead_collect, lead_rows};
    ranks->generator->remote = ranks->remote;
    return REE_OK;
}

enum ree_status ree_ranks_end(struct ree_ranks *ranks, struct ree_error *err) {
    ree_ranks_fill_report(ranks);
    ranks->reports[0] = ranks->own;
    REE_TRY(ree_transport_send(ranks->transport, 1, REE_MESSAGE_END, ranks->n_submitted, 0, NULL, 0,
                               err));
    for (uint32_t r = 1; r < ranks->n_ranks; r++)
        REE_TRY(ree_ranks_take_report(ranks, r, err));
    for (uint32_t r = 1; r < ranks->n_ranks; r++)
        REE_TRY(ree_transport_send(ranks->transport, r, REE_MESSAGE_BYE, 0, 0, NULL, 0, err));
    return REE_OK;
}
