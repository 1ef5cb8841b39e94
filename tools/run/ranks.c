#include "ranks.h"
#include "option_groups.h"

#include <cjson/cJSON.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(struct cli_ranks, field)

static const struct cli_option_row rows[] = {
    {.kind = ROW_TEXT,
     .help = "several machines (one process on each, started by Open MPI):\n"
             "    mpirun -n 2 ree-run MODEL --prompt-text TEXT\n"
             "  Every process runs a share of the stages (--n-partitions; default: one stage per\n"
             "  process) and needs a copy of the model. Before the run, the processes compare "
             "versions,\n"
             "  model, weights and plan. Processes on one machine share its cores, unless "
             "--threads is\n"
             "  given.\n"},
    {.name = "--step-deadline",
     .value = "S",
     .kind = ROW_NUMBER,
     .at = AT(deadline),
     .min = 1,
     .max = 86400,
     .help =
         "seconds that a process may be silent before all processes end (default 60). A process "
         "that works sends heartbeats, however long it works; a silent process is dead, stopped "
         "or disconnected"},
    {.name = "--work-deadline",
     .value = "S",
     .kind = ROW_NUMBER,
     .at = AT(work_deadline),
     .min = 1,
     .max = 864000,
     .help = "seconds that a process that sends heartbeats may spend on one task (an operator, a "
             "weight) before it counts as hanging (default: ten times --step-deadline)"},
    {.name = "--timeline",
     .value = "FILE",
     .kind = ROW_STRING,
     .at = AT(timeline),
     .path = CLI_WRITES,
     .help = "write what each process did when, for chrome://tracing or ui.perfetto.dev"},
    // CLI_RANKS_TEST_HELP documents these.
    {.name = "--message-piece",
     .value = "BYTES",
     .kind = ROW_NUMBER,
     .at = AT(piece),
     .min = 128,
     .max = (uint64_t)1 << 30},
    {.name = "--corrupt-message",
     .value = "K",
     .kind = ROW_NUMBER,
     .at = AT(corrupt),
     .min = 1,
     .max = UINT32_MAX},
    {.name = "--claim-numerics", .value = "VERSION", .kind = ROW_STRING, .at = AT(claim_numerics)},
};
const struct cli_option_table cli_ranks_group = CLI_OPTION_TABLE(rows);

static void notify_others(void *user) {
    ree_transport_working(user);
}

// Runs in the transport's thread.
static void report_lost(void *user, const char *reason) {
    (void)user;
    cli_error("%s", reason);
}

int cli_ranks_start(struct cli_ranks *r) {
    struct ree_error err;
    if (!ree_transport_started()) return 0;
    const struct ree_ranks_testing testing = {
        .size = sizeof testing, .corrupt = r->corrupt, .message_piece = r->piece};
    const struct ree_transport_open_options options = {.size = sizeof options,
                                                       .deadline = (double)r->deadline,
                                                       .work_deadline = (double)r->work_deadline,
                                                       .on_lost = report_lost,
                                                       .testing = &testing};
    if (ree_transport_open_mpi(&options, &r->transport, &err) != REE_OK) return cli_fail(&err);
    r->rank = ree_transport_rank(r->transport);
    r->n = ree_transport_n_ranks(r->transport);
    if (r->n > 1) {
        cli_set_rank(r->rank);
        cli_progress_set_callback(notify_others, r->transport);
        return 0;
    }
    // A process that is alone needs no transport.
    ree_transport_close(r->transport);
    r->transport = NULL;
    r->n = 0;
    return 0;
}

uint64_t cli_ranks_threads(const struct cli_ranks *r) {
    const char *text = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    uint64_t here;
    cpu_set_t cores;
    if (!r->n || !text || !cli_parse_number(text, 2, 1 << 20, &here) ||
        sched_getaffinity(0, sizeof cores, &cores) != 0)
        return 0;
    uint64_t each = (uint64_t)CPU_COUNT(&cores) / here;
    return each ? each : 1;
}

// Also called for runs, whose progress is not shown: each call tells the transport that this
// process works.
static bool report(void *user, const char *what, uint64_t done, uint64_t total) {
    struct cli_ranks *r = user;
    ree_transport_working(r->transport);
    return strcmp(what, "running") == 0 || cli_progress(NULL, what, done, total);
}

bool cli_ranks_share(struct cli_ranks *r, struct ree_rank *out, struct ree_progress *progress) {
    if (!r->n) return false;
    *out = (struct ree_rank){r->rank, r->n};
    *progress = (struct ree_progress){report, r};
    return true;
}

int cli_ranks_join(struct cli_ranks *r, struct ree_generator *generator, const char *agreed) {
    struct ree_error err;
    if (!r->n) return 0;
    const struct ree_ranks_testing testing = {.size = sizeof testing,
                                              .numerics = r->claim_numerics};
    const struct ree_ranks_options options = {.size = sizeof options,
                                              .agreed = agreed,
                                              .timeline = r->timeline != NULL,
                                              .testing = &testing};
    if (ree_ranks_join(r->transport, generator, &options, &r->ranks, &err) != REE_OK)
        return cli_fail(&err);
    return 0;
}

int cli_ranks_serve(struct cli_ranks *r) {
    struct ree_error err;
    return ree_ranks_serve(r->ranks, &err) == REE_OK ? 0 : cli_fail(&err);
}

int cli_ranks_end(struct cli_ranks *r) {
    struct ree_error err;
    if (!r->n) return 0;
    if (ree_ranks_end(r->ranks, &err) != REE_OK ||
        (r->timeline && ree_ranks_save_timeline(r->ranks, r->timeline, &err) != REE_OK))
        return cli_fail(&err);
    return 0;
}

// Returns the resident memory that is neither weights nor kv caches.
static uint64_t other_bytes(const struct ree_rank_report *p) {
    uint64_t known = p->weight_nbytes + p->cache_nbytes;
    return p->resident_nbytes > known ? p->resident_nbytes - known : 0;
}

static double per(uint64_t nbytes, uint64_t n) {
    return n ? (double)nbytes / (double)n : 0;
}

void cli_ranks_report_text(const struct cli_ranks *r, struct strbuf *out) {
    for (size_t i = 0; r->n && i < ree_ranks_n(r->ranks); i++) {
        const struct ree_rank_report *p = ree_ranks_report(r->ranks, i);
        bool last = i + 1 == ree_ranks_n(r->ranks);
        strbuf_printf(
            out, "rank %zu: busy %.3f s, waited %.3f s; sent %llu bytes in %llu messages", i,
            p->busy, p->waited,
            (unsigned long long)(p->step_nbytes + p->logits_nbytes + p->other_nbytes),
            (unsigned long long)(p->n_step_messages + p->n_logits_messages + p->n_other_messages));
        strbuf_printf(out, " and %llu in heartbeats", (unsigned long long)p->heartbeat_nbytes);
        if (!last)
            strbuf_printf(out, ", %.1f bytes per decoded token to rank %zu",
                          per(p->decode_nbytes, p->n_decode_tokens), i + 1);
        else
            strbuf_printf(out, ", %.1f bytes of logits per step",
                          per(p->logits_nbytes, p->n_logits_messages));
        strbuf_printf(out,
                      "; resident %.1f MiB: %.1f of weights, %.1f of caches, %.1f other "
                      "(messages at most %.2f)\n",
                      (double)p->resident_nbytes / 1048576, (double)p->weight_nbytes / 1048576,
                      (double)p->cache_nbytes / 1048576, (double)other_bytes(p) / 1048576,
                      (double)p->buffered_nbytes / 1048576);
    }
    if (r->n)
        strbuf_printf(out,
                      "overlap: the ranks together were busy for %.2f times the elapsed time\n",
                      ree_ranks_overlap(r->ranks));
}

struct cJSON *cli_ranks_report_json(const struct cli_ranks *r) {
    cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "ranks");
    bool ok = list && cJSON_AddNumberToObject(root, "overlap", ree_ranks_overlap(r->ranks));
    for (size_t i = 0; ok && i < ree_ranks_n(r->ranks); i++) {
        const struct ree_rank_report *p = ree_ranks_report(r->ranks, i);
        const struct {
            const char *name;
            double value;
        } fields[] = {
            {"busy_seconds", p->busy},
            {"waited_seconds", p->waited},
            {"round_trip_seconds", p->round_trip},
            {"steps", (double)p->n_steps},
            {"decode_steps", (double)p->n_decode_steps},
            {"decode_tokens", (double)p->n_decode_tokens},
            {"step_bytes", (double)p->step_nbytes},
            {"step_messages", (double)p->n_step_messages},
            {"decode_bytes", (double)p->decode_nbytes},
            {"logits_bytes", (double)p->logits_nbytes},
            {"logits_messages", (double)p->n_logits_messages},
            {"sign_bytes", (double)p->heartbeat_nbytes},
            {"sign_messages", (double)p->n_heartbeats},
            {"other_bytes", (double)p->other_nbytes},
            {"other_messages", (double)p->n_other_messages},
            {"resident_bytes", (double)p->resident_nbytes},
            {"weight_bytes", (double)p->weight_nbytes},
            {"cache_bytes", (double)p->cache_nbytes},
            {"resident_besides_bytes", (double)other_bytes(p)},
            {"message_buffer_bytes", (double)p->buffered_nbytes},
        };
        cJSON *item = cJSON_CreateObject();
        ok = item && cJSON_AddItemToArray(list, item);
        for (size_t k = 0; ok && k < sizeof fields / sizeof *fields; k++)
            ok = cJSON_AddNumberToObject(item, fields[k].name, fields[k].value) != NULL;
    }
    if (ok) return root;
    cJSON_Delete(root);
    return NULL;
}

int cli_ranks_finish(struct cli_ranks *r, int code) {
    struct ree_error err;
    bool failed = code == CLI_FAILED || code == CLI_USAGE;
    if (!failed && ree_ranks_release(r->ranks, &err) != REE_OK) {
        code = cli_fail(&err);
        failed = true;
    }
    ree_ranks_destroy(r->ranks);
    r->ranks = NULL;
    if (!r->transport) return code;
    cli_progress_set_callback(NULL, NULL);
    if (failed)
        ree_transport_fail(r->transport, cli_last_error(), code);
    else
        ree_transport_close(r->transport);
    r->transport = NULL;
    return code;
}
