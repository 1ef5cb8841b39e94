#include "ranks/ranks.h"

#include <stdlib.h>
#include <string.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/status.h"
#include "generate/remote.h"
#include "ranks/ranks_internal.h"
#include "ree/testing.h"

bool ree_ranks_progress(void *user, const char *what, uint64_t done, uint64_t total) {
    (void)what;
    (void)done;
    (void)total;
    ree_transport_working(user);
    return true;
}

enum ree_status ree_ranks_receive(struct ree_ranks *ranks, uint32_t from, uint32_t kinds,
                                  size_t limit, uint64_t step, struct ree_message *out,
                                  struct ree_error *err) {
    const struct ree_expected expected = {kinds, limit, step};
    double start = ree_transport_clock();
    REE_TRY(ree_transport_receive(ranks->transport, from, &expected, out, err));
    if (out->kind == REE_MESSAGE_STEP || out->kind == REE_MESSAGE_LOGITS)
        ree_ranks_note(ranks, REE_SPAN_WAIT, start, out->step, out->slot);
    return REE_OK;
}

static enum ree_status init(struct ree_ranks *ranks, struct ree_error *err) {
    struct ree_generator *g = ranks->generator;
    ranks->rank = ree_transport_rank(ranks->transport);
    ranks->n_ranks = ree_transport_n_ranks(ranks->transport);
    ranks->partition = ree_pipeline_partition(g->pipeline);
    ranks->n_stages = ree_pipeline_n_stages(g->pipeline);
    if (!ranks->partition || ranks->n_stages < ranks->n_ranks)
        return ree_fail(err, REE_INVALID, "%zu stages are too few for %u ranks", ranks->n_stages,
                        ranks->n_ranks);
    ree_partition_share(ranks->n_stages, ranks->n_ranks, ranks->rank, &ranks->first,
                        &ranks->n_local);
    ranks->n_cache_slots = g->options.n_cache_slots ? g->options.n_cache_slots : 1;
    ranks->cache_slots = ree_alloc_zeroed(ranks->n_cache_slots, sizeof *ranks->cache_slots);
    ranks->offsets = ree_alloc_zeroed(ranks->n_ranks, sizeof *ranks->offsets);
    ranks->round_trips = ree_alloc_zeroed(ranks->n_ranks, sizeof *ranks->round_trips);
    ranks->reports = ree_alloc_zeroed(ranks->n_ranks, sizeof *ranks->reports);
    ranks->all_spans = ree_alloc_zeroed(ranks->n_ranks, sizeof *ranks->all_spans);
    if (!ranks->cache_slots || !ranks->offsets || !ranks->round_trips || !ranks->reports ||
        !ranks->all_spans)
        return ree_no_memory(err);
    return REE_OK;
}

enum ree_status ree_ranks_join(struct ree_transport *transport, struct ree_generator *generator,
                               const struct ree_ranks_options *options, struct ree_ranks **out,
                               struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    struct ree_ranks_options o;
    struct ree_ranks_testing testing;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    *out = NULL;
    REE_TRY(ree_options_read(&o, sizeof o, options, "ree_ranks_options", err));
    REE_TRY(ree_options_read(&testing, sizeof testing, o.testing, "ree_ranks_testing", err));
    o.testing = &testing;
    struct ree_ranks *ranks = ree_alloc_zeroed(1, sizeof *ranks);
    if (!ranks) return ree_no_memory(err);
    ranks->transport = transport;
    ranks->generator = generator;
    ranks->timeline = o.timeline;
    enum ree_status status = init(ranks, err);
    if (status == REE_OK)
        status = ranks->rank == 0 ? ree_ranks_check_all(ranks, &o, err)
                                  : ree_ranks_introduce(ranks, &o, err);
    if (status == REE_OK && ranks->rank == 0) status = ree_ranks_leader(ranks, err);
    if (status != REE_OK) {
        ree_ranks_destroy(ranks);
        return status;
    }
    *out = ranks;
    return REE_OK;
}

void ree_ranks_destroy(struct ree_ranks *ranks) {
    REE_FLOAT_ENV_API();
    if (!ranks) return;
    if (ranks->remote) ranks->generator->remote = NULL;
    ree_free(ranks->remote);
    for (size_t i = 0; ranks->cache_slots && i < ranks->n_cache_slots; i++)
        ree_message_finish(&ranks->cache_slots[i].arrived);
    for (uint32_t r = 0; ranks->all_spans && r < ranks->n_ranks; r++)
        ree_free(ranks->all_spans[r].list);
    ree_free(ranks->spans.list);
    ree_free(ranks->cache_slots);
    ree_free(ranks->offsets);
    ree_free(ranks->round_trips);
    ree_free(ranks->reports);
    ree_free(ranks->all_spans);
    ree_free(ranks);
}
