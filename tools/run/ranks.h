// Text generation by several processes: its options, and the additional work of each process. The
// functions do nothing if mpirun has not started the process.
#ifndef REE_TOOLS_RUN_RANKS_H
#define REE_TOOLS_RUN_RANKS_H

#include "cli.h"
#include "ree/ranks.h"

struct cli_ranks {
    uint64_t deadline;          // seconds; 0: the default
    uint64_t work_deadline;     // seconds; 0: the default
    uint64_t piece;             // bytes per MPI message, for tests; 0: the default
    const char *timeline;       // file to write; NULL: none
    const char *claim_numerics; // claims this numerics version, for tests; NULL: the true one
    uint64_t corrupt;           // 1-based index of the message to corrupt, for tests; 0: none
    uint32_t rank, n;           // n == 0: a single process
    struct ree_transport *transport;
    struct ree_ranks *ranks;
};

// The options are cli_ranks_group.
#define CLI_RANKS_TEST_HELP                                                                        \
    "  --corrupt-message K  with several processes: corrupt the K-th message\n"                    \
    "  --claim-numerics VERSION\n"                                                                 \
    "                       with several processes: claim another numerics version\n"              \
    "  --message-piece BYTES\n"                                                                    \
    "                       with several processes: maximum bytes of a message passed to MPI "     \
    "at\n"                                                                                         \
    "                       once\n"

// If mpirun started this process: connects it with the others, and makes errors name its rank.
int cli_ranks_start(struct cli_ranks *r);
// Default number of threads per rank if several ranks share this machine; 0: the usual default.
uint64_t cli_ranks_threads(const struct cli_ranks *r);
// For a generator that runs its share of several ranks' stages: sets *out, and *progress to a
// callback that keeps the rank's heartbeat alive while it loads and runs. false: a single process.
bool cli_ranks_share(struct cli_ranks *r, struct ree_rank *out, struct ree_progress *progress);
// Performs the handshake with all ranks; afterwards rank 0 may generate. `agreed` as in struct
// ree_ranks_options.
int cli_ranks_join(struct cli_ranks *r, struct ree_generator *generator, const char *agreed);
// For ranks other than 0, after the handshake: serves until rank 0 ends.
int cli_ranks_serve(struct cli_ranks *r);
// For rank 0, after the last token: collects the reports and writes the timeline.
int cli_ranks_end(struct cli_ranks *r);
// For --stats, after cli_ranks_end. Appends lines of text, or returns the value of a JSON member
// "processes".
void cli_ranks_report_text(const struct cli_ranks *r, struct strbuf *out);
struct cJSON;
struct cJSON *cli_ranks_report_json(const struct cli_ranks *r); // NULL: out of memory
// Closes the connections and returns the exit code. After a failure it first sends the last printed
// error to the other ranks and ends them.
int cli_ranks_finish(struct cli_ranks *r, int code);

#endif
