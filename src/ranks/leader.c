// Rank 0, the leader, during generation: the callbacks with which its generator runs steps on all
// ranks.
#include <stdlib.h>
#include <string.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "base/status.h"
#include "generate/remote.h"
#include "ranks/ranks_internal.h"
#include "session/model.h"

// Maximum size in bytes of a message in which a rank sends positions of its kv caches: 256
// positions of one sequence.
#define REE_POSITIONS_LIMIT ((size_t)1 << 30)

static enum ree_status leader_begin(void *user, size_t slot, size_t batch, int64_t most,
                                    struct ree_error *err) {
    struct ree_ranks *ranks = user;
    const int64_t numbers[2] = {(int64_t)batch, most};
    struct ree_part part = {numbers, sizeof numbers};
    return ree_transport_send(ranks->transport, 1, REE_MESSAGE_BEGIN, ranks->n_submitted,
                              (uint32_t)slot, &part, 1, err);
}

static enum ree_status leader_submit(void *user, size_t slot, const struct ree_step *step,
                                     struct ree_error *err) {
    struct ree_ranks *ranks = user;
    struct ree_boundary boundary = {0};
    uint64_t number = ranks->n_submitted++;
    double start = ree_transport_clock();
    if (number == 0) ranks->first_submit = start;
    ranks->cache_slots[slot].number = number;
    size_t limit = ree_logits_limit(step, ranks->generator->info.vocab_size);
    if (limit > ranks->logits_limit) ranks->logits_limit = limit;
    REE_TRY(ree_generator_run_stages(ranks->generator, slot, step, NULL, &boundary, NULL, err));
    ree_ranks_ran(ranks, step, start, number, (uint32_t)slot);
    return ree_ranks_pass_on(ranks, step, &boundary, number, (uint32_t)slot, err);
}

// Receives the slot's logits. Logits of other slots, whose steps were submitted earlier, may arrive
// first; they are stored.
static enum ree_status receive_logits(struct ree_ranks *ranks, size_t slot, struct ree_message *out,
                                      struct ree_error *err) {
    struct ree_rank_cache_slot *own = &ranks->cache_slots[slot];
    uint32_t last = ranks->n_ranks - 1;
    for (;;) {
        if (own->arrived.frame) {
            *out = own->arrived;
            memset(&own->arrived, 0, sizeof own->arrived);
            if (out->step == own->number) return REE_OK;
            ree_message_finish(out);
            return ree_fail(err, REE_INVALID, "rank %u sent logits, but not of step %llu", last,
                            (unsigned long long)own->number);
        }
        struct ree_message m;
        REE_TRY(ree_ranks_receive(ranks, last, 1u << REE_MESSAGE_LOGITS, ranks->logits_limit,
                                  own->number, &m, err));
        if (m.slot >= ranks->n_cache_slots || ranks->cache_slots[m.slot].arrived.frame) {
            ree_message_finish(&m);
            return ree_fail(err, REE_INVALID, "rank %u sent logits that were not requested", last);
        }
        ranks->cache_slots[m.slot].arrived = m;
    }
}

static enum ree_status leader_collect(void *user, size_t slot, const struct ree_step *step,
                                      struct ree_tensor *out_logits, struct ree_error *err) {
    struct ree_ranks *ranks = user;
    struct ree_message m;
    memset(out_logits, 0, sizeof *out_logits);
    REE_TRY(receive_logits(ranks, slot, &m, err));
    enum ree_status status =
        ree_decode_logits(&m, step, ranks->generator->info.vocab_size, out_logits, err);
    if (status != REE_OK) ree_fail_prefix(err, "logits from rank %u are", ranks->n_ranks - 1);
    ree_message_finish(&m);
    ranks->last_collect = ree_transport_clock();
    return status;
}

// Receives positions of the kv caches that a rank keeps.
static enum ree_status receive_positions(struct ree_ranks *ranks, size_t slot, uint32_t rank,
                                         const struct ree_value *const *values, size_t n,
                                         struct ree_tensor *out, struct ree_error *err) {
    struct ree_message m;
    REE_TRY(ree_ranks_receive(ranks, rank, 1u << REE_MESSAGE_POSITIONS, REE_POSITIONS_LIMIT,
                              ranks->n_submitted, &m, err));
    enum ree_status status =
        m.slot == slot && m.step == ranks->n_submitted
            ? ree_decode_positions(&m, values, n, out, err)
            : ree_fail(err, REE_INVALID, "of another cache slot or step than requested");
    if (status != REE_OK) ree_fail_prefix(err, "cache positions from rank %u are", rank);
    ree_message_finish(&m);
    return status;
}

static enum ree_status check_rows(const struct ree_ranks *ranks, int64_t n,
                                  const struct ree_tensor *out, struct ree_error *err) {
    const struct ree_roles *roles = &ranks->generator->roles;
    for (size_t i = 0; i < roles->n_kv_caches; i++) {
        const struct ree_kv_cache_spec *spec = &roles->kv_caches[i];
        const char *name = ree_model_input(ranks->generator->model, spec->input)->name;
        if (!out[i].name)
            return ree_fail(err, REE_INVALID, "no rank has sent positions of the cache '%s'", name);
        if (out[i].rank <= spec->axis || out[i].rank <= spec->batch_axis ||
            out[i].dims[spec->axis] != n || out[i].dims[spec->batch_axis] != 1)
            return ree_fail(err, REE_INVALID,
                            "the positions of the cache '%s' are not the requested ones", name);
    }
    return REE_OK;
}

static enum ree_status leader_read(void *user, size_t slot, int64_t sequence, int64_t first,
                                   int64_t n, struct ree_tensor *out, struct ree_error *err) {
    struct ree_ranks *ranks = user;
    const struct ree_generator *g = ranks->generator;
    const int64_t numbers[3] = {sequence, first, n};
    struct ree_part part = {numbers, sizeof numbers};
    memset(out, 0, g->roles.n_kv_caches * sizeof *out);
    const struct ree_value **values =
        ree_alloc_zeroed(g->roles.n_kv_caches + 1, sizeof(struct ree_value *));
    if (!values) return ree_no_memory(err);
    for (size_t i = 0; i < g->roles.n_kv_caches; i++)
        values[i] = g->model->input_values[g->roles.kv_caches[i].input];
    enum ree_status status = ree_transport_send(ranks->transport, 1, REE_MESSAGE_READ,
                                                ranks->n_submitted, (uint32_t)slot, &part, 1, err);
    if (status == REE_OK)
        status = ree_pipeline_read_kv_caches(g->pipeline, slot, sequence, first, n, out, err);
    for (uint32_t r = 1; status == REE_OK && r < ranks->n_ranks; r++)
        status = receive_positions(ranks, slot, r, values, g->roles.n_kv_caches, out, err);
    if (status == REE_OK) status = check_rows(ranks, n, out, err);
    for (size_t i = 0; status != REE_OK && i < g->roles.n_kv_caches; i++)
        ree_tensor_finish(&out[i]);
    ree_free(values);
    return status;
}

enum ree_status ree_ranks_leader(struct ree_ranks *ranks, struct ree_error *err) {
    ranks->remote = ree_alloc(sizeof *ranks->remote);
    if (!ranks->remote) return ree_no_memory(err);
    *ranks->remote =
        (struct ree_remote){ranks, leader_begin, leader_submit, leader_collect, leader_read};
    ranks->generator->remote = ranks->remote;
    return REE_OK;
}

enum ree_status ree_ranks_end(struct ree_ranks *ranks, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    ree_ranks_fill_report(ranks);
    ranks->reports[0] = ranks->own;
    REE_TRY(ree_transport_send(ranks->transport, 1, REE_MESSAGE_END, ranks->n_submitted, 0, NULL, 0,
                               err));
    for (uint32_t r = 1; r < ranks->n_ranks; r++)
        REE_TRY(ree_ranks_take_report(ranks, r, err));
    ranks->has_ended = true;
    return REE_OK;
}

enum ree_status ree_ranks_release(struct ree_ranks *ranks, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    if (!ranks || !ranks->has_ended) return REE_OK;
    for (uint32_t r = 1; r < ranks->n_ranks; r++)
        REE_TRY(ree_transport_send(ranks->transport, r, REE_MESSAGE_BYE, 0, 0, NULL, 0, err));
    return REE_OK;
}
