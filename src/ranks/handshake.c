// The handshake: each rank describes itself, and rank 0 compares the descriptions with its own.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/strbuf.h"
#include "ranks/ranks_internal.h"
#include "ranks/stage_weights.h"
#include "session/model.h"
#include "transport/agreement.h"

#define HANDSHAKE_LIMIT ((size_t)64 << 20)
#define CLOCK_ROUNDS 8

// Writes lines "name\tvalue\n". The names are phrased for messages such as "rank 1 has NAME VALUE".
static enum ree_status describe(const struct ree_ranks *ranks,
                                const struct ree_ranks_options *options, struct ree_strbuf *out,
                                struct ree_error *err) {
    const struct ree_model *model = ranks->generator->model;
    const struct ree_generator_options *bounds = &ranks->generator->options;
    char graph[65], plan[65];
    ree_digest digest;
    REE_TRY(ree_model_graph_sha256(model, graph, err));
    ree_plan_digest(model->graph, ranks->partition, digest);
    ree_hex(digest, plan);
    ree_strbuf_printf(out, "ree version\t%s\n", ree_version());
    ree_strbuf_printf(out, "numerics version\t%s\n",
                      options->testing->numerics ? options->testing->numerics
                                                 : ree_numerics_version());
    ree_strbuf_printf(out, "the graph SHA-256\t%s\n", graph);
    ree_strbuf_printf(out, "the number of stages\t%zu\n", ranks->n_stages);
    ree_strbuf_printf(out, "the plan SHA-256\t%s\n", plan);
    // Each rank limits rank 0's requests by its own values of these options.
    ree_strbuf_printf(out, "--batch-size\t%u\n--prefill-chunk\t%u\n", bounds->max_batch,
                      bounds->prefill_chunk);
    if (options->agreed) ree_strbuf_append(out, options->agreed, strlen(options->agreed));
    return out->failed ? ree_no_memory(err) : REE_OK;
}

// Writes for each constant the u32 length of its name, the name, and the constant's leaf.
static enum ree_status list_weights(const struct ree_stage_weights *weights, struct ree_strbuf *out,
                                    struct ree_error *err) {
    for (size_t i = 0; i < weights->n; i++) {
        uint32_t n = (uint32_t)strlen(weights->constants[i].name);
        ree_strbuf_append(out, (const char *)&n, sizeof n);
        ree_strbuf_append(out, weights->constants[i].name, n);
        ree_strbuf_append(out, (const char *)weights->leaves[i], sizeof weights->leaves[i]);
    }
    return out->failed ? ree_no_memory(err) : REE_OK;
}

static enum ree_status make_weights(const struct ree_ranks *ranks, size_t first, size_t n,
                                    struct ree_stage_weights *out, struct ree_error *err) {
    const struct ree_progress progress = {ree_ranks_progress, ranks->transport};
    return ree_stage_weights_make(ranks->generator->model->graph, ranks->partition, first, n,
                                  &progress, out, err);
}

// Other ranks

static enum ree_status send_handshake(struct ree_ranks *ranks,
                                      const struct ree_ranks_options *options,
                                      struct ree_error *err) {
    struct ree_strbuf text, list;
    struct ree_stage_weights weights;
    ree_strbuf_init(&text);
    ree_strbuf_init(&list);
    enum ree_status status = make_weights(ranks, ranks->first, ranks->n_local, &weights, err);
    if (status == REE_OK) {
        status = describe(ranks, options, &text, err);
        if (status == REE_OK) status = list_weights(&weights, &list, err);
        ree_stage_weights_finish(&weights);
    }
    if (status == REE_OK) {
        struct ree_part parts[2] = {{text.data, text.size}, {list.data, list.size}};
        status =
            ree_transport_send(ranks->transport, 0, REE_MESSAGE_HANDSHAKE, 0, 0, parts, 2, err);
    }
    ree_strbuf_finish(&text);
    ree_strbuf_finish(&list);
    return status;
}

enum ree_status ree_ranks_introduce(struct ree_ranks *ranks,
                                    const struct ree_ranks_options *options,
                                    struct ree_error *err) {
    REE_TRY(send_handshake(ranks, options, err));
    for (;;) {
        struct ree_message m;
        REE_TRY(ree_ranks_receive(ranks, 0, 1u << REE_MESSAGE_CLOCK | 1u << REE_MESSAGE_WELCOME,
                                  4096, 0, &m, err));
        uint32_t kind = m.kind;
        uint64_t round = m.step;
        ree_message_finish(&m);
        if (kind == REE_MESSAGE_WELCOME) return REE_OK;
        double now = ree_transport_clock();
        struct ree_part part = {&now, sizeof now};
        REE_TRY(
            ree_transport_send(ranks->transport, 0, REE_MESSAGE_CLOCK, round, 0, &part, 1, err));
    }
}

// Rank 0

static enum ree_status compare_weights(uint32_t rank, const struct ree_stage_weights *own,
                                       const struct ree_part *other, struct ree_error *err) {
    const unsigned char *at = other->data;
    size_t left = other->nbytes;
    for (size_t i = 0; i < own->n; i++) {
        const char *name = own->constants[i].name;
        uint32_t n = 0, expected = (uint32_t)strlen(name);
        if (left >= sizeof n) memcpy(&n, at, sizeof n);
        if (left < sizeof n + REE_SHA256_SIZE || n != expected ||
            left - sizeof n - REE_SHA256_SIZE < n || memcmp(at + sizeof n, name, n) != 0)
            return ree_fail(
                err, REE_INVALID,
                "rank %u has other weights: it has another tensor in place of '%s' of rank 0", rank,
                name);
        if (memcmp(at + sizeof n + n, own->leaves[i], REE_SHA256_SIZE) != 0)
            return ree_fail(err, REE_INVALID,
                            "rank %u has other weights: the bytes of '%s' differ from rank 0", rank,
                            name);
        at += sizeof n + n + REE_SHA256_SIZE;
        left -= sizeof n + n + REE_SHA256_SIZE;
    }
    if (left)
        return ree_fail(err, REE_INVALID, "rank %u has other weights: more than rank 0", rank);
    return REE_OK;
}

static enum ree_status check_rank(struct ree_ranks *ranks, uint32_t rank,
                                  const struct ree_strbuf *text, struct ree_error *err) {
    struct ree_message m;
    struct ree_stage_weights weights;
    size_t first, n;
    REE_TRY(
        ree_ranks_receive(ranks, rank, 1u << REE_MESSAGE_HANDSHAKE, HANDSHAKE_LIMIT, 0, &m, err));
    enum ree_status status =
        m.n_parts == 2 ? ree_agreement_compare(rank, text, &m.parts[0], err)
                       : ree_fail(err, REE_INVALID, "rank %u does not send its description", rank);
    ree_partition_share(ranks->n_stages, ranks->n_ranks, rank, &first, &n);
    if (status == REE_OK) {
        status = make_weights(ranks, first, n, &weights, err);
        if (status == REE_OK) {
            status = compare_weights(rank, &weights, &m.parts[1], err);
            ree_stage_weights_finish(&weights);
        }
    }
    ree_message_finish(&m);
    return status;
}

// Estimates how far the rank's clock is ahead, from the message with the shortest round trip.
static enum ree_status compare_clocks(struct ree_ranks *ranks, uint32_t rank,
                                      struct ree_error *err) {
    double shortest = 1e9;
    for (uint64_t round = 0; round < CLOCK_ROUNDS; round++) {
        struct ree_message m;
        double start = ree_transport_clock(), theirs = 0;
        REE_TRY(
            ree_transport_send(ranks->transport, rank, REE_MESSAGE_CLOCK, round, 0, NULL, 0, err));
        REE_TRY(ree_ranks_receive(ranks, rank, 1u << REE_MESSAGE_CLOCK, 4096, 0, &m, err));
        double end = ree_transport_clock();
        bool fits = m.n_parts == 1 && m.parts[0].nbytes == sizeof theirs && m.step == round;
        if (fits) memcpy(&theirs, m.parts[0].data, sizeof theirs);
        ree_message_finish(&m);
        if (!fits || !isfinite(theirs))
            return ree_fail(err, REE_INVALID, "rank %u does not send its clock", rank);
        if (end - start >= shortest) continue;
        shortest = end - start;
        ranks->offsets[rank] = theirs - (start + end) / 2;
        ranks->round_trips[rank] = shortest;
    }
    return REE_OK;
}

enum ree_status ree_ranks_check_all(struct ree_ranks *ranks,
                                    const struct ree_ranks_options *options,
                                    struct ree_error *err) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    enum ree_status status = describe(ranks, options, &text, err);
    for (uint32_t r = 1; status == REE_OK && r < ranks->n_ranks; r++)
        status = check_rank(ranks, r, &text, err);
    ree_strbuf_finish(&text);
    for (uint32_t r = 1; status == REE_OK && r < ranks->n_ranks; r++)
        status = compare_clocks(ranks, r, err);
    for (uint32_t r = 1; status == REE_OK && r < ranks->n_ranks; r++)
        status = ree_transport_send(ranks->transport, r, REE_MESSAGE_WELCOME, 0, 0, NULL, 0, err);
    return status;
}
