// All ranks except rank 0, during generation: they serve the messages of the previous rank.
#include <stdlib.h>
#include <string.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "base/status.h"
#include "generate/remote.h"
#include "ranks/ranks_internal.h"

// Maximum number of positions, also if the model's context length is unknown.
#define MAX_POSITIONS ((int64_t)1 << 30)

// Returns the limits of every cache slot, which follow from the model's context and this rank's
// options. Rank 0 cannot exceed them.
static struct ree_bounds largest(const struct ree_generator *g) {
    int64_t context = g->info.context_length;
    int64_t most = context > 0 && context < MAX_POSITIONS ? context : MAX_POSITIONS;
    return (struct ree_bounds){.batch = g->roles.fixed_batch ? 1 : g->options.max_batch,
                               .length =
                                   g->info.has_cache ? g->options.prefill_chunk : (uint64_t)most,
                               .most = most};
}

static enum ree_status serve_begin(struct ree_ranks *ranks, const struct ree_message *m,
                                   struct ree_error *err) {
    const struct ree_bounds bounds = largest(ranks->generator);
    int64_t numbers[2] = {0, 0};
    if (m->slot >= ranks->n_cache_slots || m->n_parts != 1 || m->parts[0].nbytes != sizeof numbers)
        return ree_fail(err, REE_INVALID, "malformed: the beginning of an impossible cache slot");
    memcpy(numbers, m->parts[0].data, sizeof numbers);
    if (numbers[0] < 1 || (uint64_t)numbers[0] > bounds.batch || numbers[1] < 0 ||
        numbers[1] > bounds.most)
        return ree_fail(
            err, REE_INVALID,
            "malformed: a cache slot of %lld sequences of %lld tokens; the maximum is %llu of %lld",
            (long long)numbers[0], (long long)numbers[1], (unsigned long long)bounds.batch,
            (long long)bounds.most);
    struct ree_rank_cache_slot *slot = &ranks->cache_slots[m->slot];
    slot->begun = true;
    slot->bounds.batch = (uint64_t)numbers[0];
    slot->bounds.most = numbers[1] ? numbers[1] : bounds.most;
    slot->bounds.length =
        bounds.length < (uint64_t)slot->bounds.most ? bounds.length : (uint64_t)slot->bounds.most;
    REE_TRY(ree_generator_begin(ranks->generator, m->slot, (size_t)numbers[0], numbers[1], err));
    if (ranks->rank + 1 == ranks->n_ranks) return REE_OK;
    return ree_transport_send(ranks->transport, ranks->rank + 1, REE_MESSAGE_BEGIN, m->step,
                              m->slot, m->parts, m->n_parts, err);
}

static enum ree_status send_logits(struct ree_ranks *ranks, const struct ree_tensor *logits,
                                   uint64_t number, uint32_t slot, struct ree_error *err) {
    struct ree_encoded encoded;
    double start = ree_transport_clock();
    REE_TRY(ree_encode_logits(logits, &encoded, err));
    enum ree_status status = ree_transport_send(ranks->transport, 0, REE_MESSAGE_LOGITS, number,
                                                slot, encoded.parts, encoded.n_parts, err);
    ree_encoded_finish(&encoded);
    ree_ranks_note(ranks, REE_SPAN_SEND, start, number, slot);
    return status;
}

static enum ree_status run_step(struct ree_ranks *ranks, const struct ree_message *m,
                                const struct ree_step *step, struct ree_error *err) {
    bool last = ranks->rank + 1 == ranks->n_ranks;
    const struct ree_cut *cut = &ranks->partition->cuts[ranks->first - 1];
    struct ree_boundary in, out = {0};
    struct ree_tensor logits = {0};
    REE_TRY(ree_decode_boundary(m, cut, step, ranks->cache_slots[m->slot].bounds.most, &in, err));
    double start = ree_transport_clock();
    enum ree_status status = ree_generator_run_stages(
        ranks->generator, m->slot, step, &in, last ? NULL : &out, last ? &logits : NULL, err);
    ree_boundary_finish(&in);
    if (status == REE_OK) {
        ree_ranks_ran(ranks, step, start, m->step, m->slot);
        status = last ? send_logits(ranks, &logits, m->step, m->slot, err)
                      : ree_ranks_pass_on(ranks, step, &out, m->step, m->slot, err);
    }
    ree_tensor_finish(&logits);
    return status;
}

static enum ree_status serve_step(struct ree_ranks *ranks, const struct ree_message *m,
                                  struct ree_error *err) {
    struct ree_step step;
    void *block;
    if (m->slot >= ranks->n_cache_slots || !ranks->cache_slots[m->slot].begun)
        return ree_fail(err, REE_INVALID, "malformed: a step of a cache slot that has not begun");
    REE_TRY(ree_decode_step(m, &ranks->cache_slots[m->slot].bounds, &step, &block, err));
    enum ree_status status = run_step(ranks, m, &step, err);
    ree_free(block);
    return status;
}

static enum ree_status serve_read(struct ree_ranks *ranks, const struct ree_message *m,
                                  struct ree_error *err) {
    struct ree_generator *g = ranks->generator;
    int64_t numbers[3];
    struct ree_encoded encoded;
    if (m->slot >= ranks->n_cache_slots || !ranks->cache_slots[m->slot].begun || m->n_parts != 1 ||
        m->parts[0].nbytes != sizeof numbers)
        return ree_fail(err, REE_INVALID, "malformed: cache positions without a name");
    memcpy(numbers, m->parts[0].data, sizeof numbers);
    const struct ree_bounds *bounds = &ranks->cache_slots[m->slot].bounds;
    if (numbers[0] < 0 || numbers[0] >= (int64_t)bounds->batch || numbers[1] < 0 ||
        numbers[1] > bounds->most || numbers[2] < 1 || numbers[2] > bounds->most - numbers[1])
        return ree_fail(err, REE_INVALID, "malformed: positions beyond the end of a cache slot");
    if (ranks->rank + 1 < ranks->n_ranks)
        REE_TRY(ree_transport_send(ranks->transport, ranks->rank + 1, REE_MESSAGE_READ, m->step,
                                   m->slot, m->parts, 1, err));
    struct ree_tensor *positions = ree_alloc_zeroed(g->roles.n_kv_caches + 1, sizeof *positions);
    if (!positions) return ree_no_memory(err);
    enum ree_status status = ree_pipeline_read_kv_caches(g->pipeline, m->slot, numbers[0],
                                                         numbers[1], numbers[2], positions, err);
    if (status == REE_OK) {
        status = ree_encode_positions(positions, g->roles.n_kv_caches, &encoded, err);
        if (status == REE_OK) {
            status = ree_transport_send(ranks->transport, 0, REE_MESSAGE_POSITIONS, m->step,
                                        m->slot, encoded.parts, encoded.n_parts, err);
            ree_encoded_finish(&encoded);
        }
        for (size_t i = 0; i < g->roles.n_kv_caches; i++)
            ree_tensor_finish(&positions[i]);
    }
    ree_free(positions);
    return status;
}

static enum ree_status serve_end(struct ree_ranks *ranks, uint64_t number, struct ree_error *err) {
    struct ree_message m;
    if (ranks->rank + 1 < ranks->n_ranks)
        REE_TRY(ree_transport_send(ranks->transport, ranks->rank + 1, REE_MESSAGE_END, number, 0,
                                   NULL, 0, err));
    REE_TRY(ree_ranks_send_report(ranks, err));
    REE_TRY(ree_ranks_receive(ranks, 0, 1u << REE_MESSAGE_BYE, 4096, number, &m, err));
    ree_message_finish(&m);
    return REE_OK;
}

static size_t limit_now(const struct ree_ranks *ranks) {
    size_t limit = 4096;
    for (size_t i = 0; i < ranks->n_cache_slots; i++) {
        if (!ranks->cache_slots[i].begun) continue;
        size_t n = ree_step_limit(&ranks->cache_slots[i].bounds,
                                  &ranks->partition->cuts[ranks->first - 1]);
        if (n > limit) limit = n;
    }
    return limit;
}

enum ree_status ree_ranks_serve(struct ree_ranks *ranks, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    const uint32_t kinds = 1u << REE_MESSAGE_BEGIN | 1u << REE_MESSAGE_STEP |
                           1u << REE_MESSAGE_READ | 1u << REE_MESSAGE_END;
    uint64_t next = 0; // number of the next step
    for (;;) {
        struct ree_message m;
        REE_TRY(ree_ranks_receive(ranks, ranks->rank - 1, kinds, limit_now(ranks), next, &m, err));
        uint32_t kind = m.kind;
        enum ree_status status = REE_OK;
        if (kind != REE_MESSAGE_END && m.step != next)
            status = ree_fail(err, REE_INVALID, "malformed: step %llu, expected step %llu",
                              (unsigned long long)m.step, (unsigned long long)next);
        else if (kind == REE_MESSAGE_BEGIN)
            status = serve_begin(ranks, &m, err);
        else if (kind == REE_MESSAGE_STEP)
            status = serve_step(ranks, &m, err);
        else if (kind == REE_MESSAGE_READ)
            status = serve_read(ranks, &m, err);
        if (status != REE_OK)
            ree_fail_prefix(err, "step %llu, from rank %u", (unsigned long long)next,
                            ranks->rank - 1);
        next += kind == REE_MESSAGE_STEP;
        ree_message_finish(&m);
        if (status != REE_OK) return status;
        if (kind == REE_MESSAGE_END) return serve_end(ranks, next, err);
    }
}
