// Text generation by several processes (ranks): its options, and the work that each rank has in
// addition to that of a single process. If mpirun has not started several processes, the functions
// do nothing, except cli_ranks_serve and cli_ranks_report_json, which must then not be called.
#ifndef REE_TOOLS_RUN_RANKS_H
#define REE_TOOLS_RUN_RANKS_H

#include "cli.h"
#include "ree/ranks.h"

struct cli_ranks {
    uint64_t deadline;          // --step-deadline in seconds; 0: the default
    uint64_t work_deadline;     // --work-deadline in seconds; 0: the default
    uint64_t piece;             // maximum bytes per MPI message, for tests; 0: the default
    const char *timeline;       // file to write the timeline to; NULL: none
    const char *claim_numerics; // numerics version to claim, for tests; NULL: the true one
    uint64_t corrupt;           // 1-based index of the message to corrupt, for tests; 0: none
    uint32_t rank, n;           // this process's rank; number of ranks, 0: a single process
    struct ree_transport *transport;
    struct ree_ranks *ranks;
};

// Help of those options of cli_ranks_group that are for tests of ree.
#define CLI_RANKS_TEST_HELP                                                                        \
    "  --corrupt-message K  with several processes: corrupt the K-th message\n"                    \
    "  --claim-numerics VERSION\n"                                                                 \
    "                       with several processes: claim another numerics version\n"              \
    "  --message-piece BYTES\n"                                                                    \
    "                       with several processes: maximum bytes of a message passed to MPI "     \
    "at\n"                                                                                         \
    "                       once\n"

// If mpirun started several processes: connects this one with the others, sets r->rank and r->n,
// and makes error messages name the rank. Returns 0, or prints an error and returns an exit code.
int cli_ranks_start(struct cli_ranks *r);
// Returns the number of threads that this rank should use by default if several ranks share the
// machine (its cores divided by these ranks); 0: use the default of a single process.
uint64_t cli_ranks_threads(const struct cli_ranks *r);
// For the options of a generator that runs only this rank's stages: sets *out to the rank, and
// *progress to a callback that keeps the rank's heartbeat alive while the model loads and runs.
// Returns false and changes nothing if there is a single process.
bool cli_ranks_share(struct cli_ranks *r, struct ree_rank *out, struct ree_progress *progress);
// Performs the handshake with all ranks; afterwards rank 0 may generate. agreed: the options that
// must be equal on all ranks, as text (struct ree_ranks_options). Returns 0, or prints an error and
// returns an exit code.
int cli_ranks_join(struct cli_ranks *r, struct ree_generator *generator, const char *agreed);
// For ranks other than 0, after the handshake: runs this rank's stages until rank 0 ends. Returns
// an exit code.
int cli_ranks_serve(struct cli_ranks *r);
// For rank 0, after the last token: collects the ranks' reports and writes the timeline, if
// requested. Returns an exit code.
int cli_ranks_end(struct cli_ranks *r);
// Report the statistics of all ranks, for --stats. Must be called after cli_ranks_end. The first
// appends lines of text; the second returns a JSON object, which the caller owns; NULL: out of
// memory.
void cli_ranks_report_text(const struct cli_ranks *r, struct strbuf *out);
struct cJSON;
struct cJSON *cli_ranks_report_json(const struct cli_ranks *r);
// Closes the connections and returns the exit code, which is `code` unless closing fails. If `code`
// is a failure, sends the last printed error to the other ranks and ends all processes, also this
// one.
int cli_ranks_finish(struct cli_ranks *r, int code);

#endif
