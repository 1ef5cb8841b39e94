// Statistics of each rank: counted, collected by rank 0 at the end, and written as a timeline.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/float_env.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/strbuf.h"
#include "ranks/ranks_internal.h"

// Every field is 8 bytes wide. So the struct has no padding and can be sent unchanged.
_Static_assert(sizeof(struct ree_rank_report) == 19 * 8, "a field without padding");
_Static_assert(sizeof(struct ree_span) == 32, "no padding");

void ree_ranks_note(struct ree_ranks *ranks, enum ree_span_kind kind, double from, uint64_t step,
                    uint32_t slot) {
    struct ree_spans *spans = &ranks->spans;
    if (!ranks->timeline || spans->n == REE_MAX_SPANS) return;
    if (spans->n == spans->capacity) {
        size_t capacity = 2 * spans->capacity + 256;
        struct ree_span *list = ree_realloc(spans->list, capacity * sizeof *list);
        if (!list) return; // the timeline must not fail the run
        spans->list = list;
        spans->capacity = capacity;
    }
    spans->list[spans->n++] =
        (struct ree_span){from, ree_transport_clock(), step, slot, (uint32_t)kind};
}

void ree_ranks_ran(struct ree_ranks *ranks, const struct ree_step *step, double from,
                   uint64_t number, uint32_t slot) {
    ranks->own.busy += ree_transport_clock() - from;
    ranks->own.n_steps++;
    if (step->length == 1) {
        ranks->own.n_decode_steps++;
        ranks->own.n_decode_tokens += step->batch;
    }
    ree_ranks_note(ranks, REE_SPAN_RUN, from, number, slot);
}

enum ree_status ree_ranks_pass_on(struct ree_ranks *ranks, const struct ree_step *step,
                                  struct ree_boundary *boundary, uint64_t number, uint32_t slot,
                                  struct ree_error *err) {
    struct ree_encoded encoded;
    double start = ree_transport_clock();
    uint64_t before = ree_transport_sent(ranks->transport, REE_MESSAGE_STEP).nbytes;
    enum ree_status status = ree_encode_step(step, boundary, &encoded, err);
    if (status == REE_OK) {
        status = ree_transport_send(ranks->transport, ranks->rank + 1, REE_MESSAGE_STEP, number,
                                    slot, encoded.parts, encoded.n_parts, err);
        ree_encoded_finish(&encoded);
    }
    ree_boundary_finish(boundary);
    if (step->length == 1)
        ranks->own.decode_nbytes +=
            ree_transport_sent(ranks->transport, REE_MESSAGE_STEP).nbytes - before;
    ree_ranks_note(ranks, REE_SPAN_SEND, start, number, slot);
    return status;
}

static uint64_t resident_nbytes(void) {
    unsigned long long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%llu %llu", &size, &resident) != 2) resident = 0;
    fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

void ree_ranks_fill_report(struct ree_ranks *ranks) {
    struct ree_rank_report *own = &ranks->own;
    own->other_nbytes = own->n_other_messages = 0;
    for (int kind = 0; kind < REE_N_MESSAGE_KINDS; kind++) {
        struct ree_transport_count sent =
            ree_transport_sent(ranks->transport, (enum ree_message_kind)kind);
        uint64_t *nbytes = kind == REE_MESSAGE_STEP     ? &own->step_nbytes
                           : kind == REE_MESSAGE_LOGITS ? &own->logits_nbytes
                           : kind == REE_MESSAGE_ALIVE  ? &own->heartbeat_nbytes
                                                        : &own->other_nbytes;
        uint64_t *n = kind == REE_MESSAGE_STEP     ? &own->n_step_messages
                      : kind == REE_MESSAGE_LOGITS ? &own->n_logits_messages
                      : kind == REE_MESSAGE_ALIVE  ? &own->n_heartbeats
                                                   : &own->n_other_messages;
        if (nbytes == &own->other_nbytes) {
            *nbytes += sent.nbytes;
            *n += sent.n_messages;
        } else {
            *nbytes = sent.nbytes;
            *n = sent.n_messages;
        }
    }
    own->resident_nbytes = resident_nbytes();
    struct ree_session_stats stats;
    ree_pipeline_sum_stats(ranks->generator->pipeline, &stats);
    own->weight_nbytes = stats.weight_bytes;
    own->cache_nbytes = 0;
    for (size_t i = 0; i < ranks->n_cache_slots; i++)
        own->cache_nbytes += ree_pipeline_kv_cache_bytes(ranks->generator->pipeline, i);
    own->buffered_nbytes = ree_transport_buffered(ranks->transport);
    own->waited = ree_transport_waited(ranks->transport);
}

enum ree_status ree_ranks_send_report(struct ree_ranks *ranks, struct ree_error *err) {
    ree_ranks_fill_report(ranks);
    struct ree_part parts[2] = {{&ranks->own, sizeof ranks->own},
                                {ranks->spans.list, ranks->spans.n * sizeof *ranks->spans.list}};
    return ree_transport_send(ranks->transport, 0, REE_MESSAGE_REPORT, 0, 0, parts, 2, err);
}

enum ree_status ree_ranks_take_report(struct ree_ranks *ranks, uint32_t rank,
                                      struct ree_error *err) {
    struct ree_message m;
    REE_TRY(ree_ranks_receive(ranks, rank, 1u << REE_MESSAGE_REPORT,
                              4096 + REE_MAX_SPANS * sizeof(struct ree_span), ranks->n_submitted,
                              &m, err));
    struct ree_spans *spans = &ranks->all_spans[rank];
    bool fits = m.n_parts == 2 && m.parts[0].nbytes == sizeof ranks->own &&
                m.parts[1].nbytes % sizeof *spans->list == 0;
    if (fits) {
        struct ree_rank_report *report = &ranks->reports[rank];
        memcpy(report, m.parts[0].data, sizeof *report);
        report->round_trip = ranks->round_trips[rank];
        fits = isfinite(report->busy) && isfinite(report->waited);
        spans->list = ree_alloc(m.parts[1].nbytes + 1);
        spans->n = spans->list ? m.parts[1].nbytes / sizeof *spans->list : 0;
        if (spans->n) memcpy(spans->list, m.parts[1].data, m.parts[1].nbytes);
        for (size_t i = 0; i < spans->n; i++)
            fits = fits && spans->list[i].kind < REE_N_SPAN_KINDS &&
                   isfinite(spans->list[i].from) && isfinite(spans->list[i].to);
        if (!fits) spans->n = 0;
    }
    ree_message_finish(&m);
    return fits ? REE_OK : ree_fail(err, REE_INVALID, "rank %u's report is malformed", rank);
}

size_t ree_ranks_n(const struct ree_ranks *ranks) {
    return ranks->n_ranks;
}

const struct ree_rank_report *ree_ranks_report(const struct ree_ranks *ranks, size_t rank) {
    return &ranks->reports[rank];
}

double ree_ranks_overlap(const struct ree_ranks *ranks) {
    REE_FLOAT_ENV_API();
    double busy = 0, wall = ranks->last_collect - ranks->first_submit;
    for (uint32_t r = 0; r < ranks->n_ranks; r++)
        busy += ranks->reports[r].busy;
    return wall > 0 ? busy / wall : 0;
}

// Writes the timeline as trace events of Chrome: one process per rank; times in microseconds since
// the first step, on rank 0's clock.
enum ree_status ree_ranks_save_timeline(const struct ree_ranks *ranks, const char *path,
                                        struct ree_error *err) {
    REE_FLOAT_ENV_API();
    static const char *const names[REE_N_SPAN_KINDS] = {"run", "send", "wait"};
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    ree_strbuf_printf(&text, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
    for (uint32_t r = 0; r < ranks->n_ranks; r++) {
        const struct ree_spans *spans = r ? &ranks->all_spans[r] : &ranks->spans;
        ree_strbuf_printf(&text,
                          "%s{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": %u, \"tid\": 0, "
                          "\"args\": {\"name\": \"rank %u\"}}",
                          r ? ",\n" : "", r, r);
        for (size_t i = 0; i < spans->n; i++) {
            const struct ree_span *s = &spans->list[i];
            double from = s->from - ranks->offsets[r] - ranks->first_submit;
            ree_strbuf_printf(&text,
                              ",\n{\"name\": \"%s\", \"cat\": \"%s\", \"ph\": \"X\", \"pid\": %u, "
                              "\"tid\": 0, \"ts\": %.1f, \"dur\": %.1f, \"args\": {\"step\": %llu, "
                              "\"set\": %u}}",
                              names[s->kind], names[s->kind], r, from * 1e6,
                              (s->to - s->from) * 1e6, (unsigned long long)s->step, s->slot);
        }
    }
    ree_strbuf_printf(&text, "\n]}\n");
    enum ree_status status =
        text.failed ? ree_no_memory(err) : ree_file_write(path, text.data, text.size, err);
    ree_strbuf_finish(&text);
    return status;
}
