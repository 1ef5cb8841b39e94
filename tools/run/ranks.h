// Text generation on several machines: the options of it, and what each process does beside what
// it does alone. mpirun starts the processes; without it nothing here has an effect.
#ifndef REE_TOOLS_RUN_RANKS_H
#define REE_TOOLS_RUN_RANKS_H

#include "cli.h"
#include "ranks/ranks.h"

struct cli_ranks {
    uint64_t deadline;          // seconds; 0: the usual
    uint64_t work_deadline;     // seconds; 0: the usual
    uint64_t piece;             // bytes, for tests; 0: the usual
    const char *timeline;       // file
    const char *claim_numerics; // for tests
    uint64_t corrupt;           // for tests
    uint32_t rank, n;           // n 0: alone
    struct ree_transport *transport;
    struct ree_ranks *ranks;
};

#define CLI_RANKS_HELP                                                                             \
    "on several machines (one process on each, started by Open MPI):\n"                            \
    "    mpirun -n 2 ree-run MODEL --prompt-text TEXT\n"                                           \
    "  every process gets a share of the partitions (--n-partitions; otherwise one each), and "    \
    "has\n"                                                                                        \
    "  the model, too; before anything runs, versions, model, weights and plan are compared\n"     \
    "  ranks on one machine share its cores (--threads says otherwise)\n"                          \
    "  --step-deadline S    seconds that a process may be silent before all end (otherwise 60);\n" \
    "                       while one works, however long, it gives signs of life by itself, so\n" \
    "                       that silent is what is dead, stopped or cut off\n"                     \
    "  --work-deadline S    seconds that one that gives signs of life may be at a single thing\n"  \
    "                       (an operator, a weight) before it is taken to hang (otherwise ten\n"   \
    "                       step deadlines)\n"                                                     \
    "  --timeline FILE      what each process did when, for chrome://tracing or ui.perfetto.dev\n"
#define CLI_RANKS_TEST_HELP                                                                        \
    "  --corrupt-message K  of several processes: damage the K-th message\n"                       \
    "  --claim-numerics VERSION\n"                                                                 \
    "                       of several processes: say another version\n"                           \
    "  --message-piece BYTES\n"                                                                    \
    "                       of several processes: how much of a message MPI gets at once\n"

bool cli_ranks_option(struct cli *cli, struct cli_ranks *r);
// Where mpirun has started this process: connects it with the others, and errors say its rank.
int cli_ranks_start(struct cli_ranks *r);
// Threads for each of several ranks on one machine, where nothing else is said; 0: as ever.
uint64_t cli_ranks_threads(const struct cli_ranks *r);
// What a generator needs for that: its share, signs of life while it loads and runs.
void cli_ranks_generator(struct cli_ranks *r, struct ree_generator_options *options);
// Compares all; then rank 0 may generate. `agreed` as in struct ree_ranks_options.
int cli_ranks_join(struct cli_ranks *r, struct ree_generator *generator, const char *agreed);
// Ranks other than 0, after that: until rank 0 ends.
int cli_ranks_serve(struct cli_ranks *r);
// Rank 0, after the last token; writes the timeline.
int cli_ranks_end(struct cli_ranks *r);
// For --stats, after that: lines, or a member "processes" with what goes before and after it.
void cli_ranks_report_text(const struct cli_ranks *r, struct ree_strbuf *out);
struct cJSON;
struct cJSON *cli_ranks_report_json(const struct cli_ranks *r); // NULL: out of memory
// Closes the connections; after a failure tells the others first why (the last error that was
// printed) and ends them. Gives the exit code.
int cli_ranks_finish(struct cli_ranks *r, int code);

#endif
