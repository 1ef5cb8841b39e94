// Looking into a run: --trace, --dump-tensors and --inject-fault, for `run` and `generate`.
#ifndef REE_TOOLS_RUN_WATCH_H
#define REE_TOOLS_RUN_WATCH_H

#include "audit/make_receipt.h"
#include "audit/record.h"
#include "session/pipeline.h"

// Tokens of a prompt in a step, unless they are given.
#define WATCH_CHUNK 64

struct cli;
struct watch_options {
    const char *trace;                       // file; NULL: none
    const char *dump, *dump_folder, *format; // NULL: not given
    const char *fault;                       // NULL: none
    bool is_secret;                          // what is written is for its owner only
};

#define WATCH_HELP                                                                                 \
    "looking inside (slower: nothing is fused across nodes)\n"                                     \
    "  --trace FILE         write the SHA-256 of every value that every node computed; two runs\n" \
    "                       are then compared by 'ree-run diff', and by one SHA-256 over all.\n"   \
    "                       Reads all weights twice at the beginning\n"                            \
    "  --dump-tensors REGEX --dump-folder DIR\n"                                                   \
    "                       write the outputs of the nodes whose names, or whose outputs' "        \
    "names,\n"                                                                                     \
    "                       match (POSIX extended): DIR/step-STEP/NODE-NAME-OUTPUT.npy, NODE "     \
    "and\n"                                                                                        \
    "                       OUTPUT being numbers; of caches the new rows alone. The inputs of\n"   \
    "                       the model whose names match: DIR/step-STEP/input-NUMBER-NAME.npy.\n"   \
    "                       At most 10000 files\n"                                                 \
    "  --format npy         of those files (there is no other)\n"                                  \
    "  --inject-fault NODE:STEP:BIT[:OUTPUT]\n"                                                    \
    "                       flip one bit of what a node (its number, or its name) computed in a\n" \
    "                       step (counted from 0), to see what finds it\n"

bool watch_option(struct cli *cli, struct watch_options *options);
// What does not go together is wrong usage.
void watch_check(struct cli *cli, const struct watch_options *options);
bool watch_wanted(const struct watch_options *options);

struct watch {
    const struct watch_options *options;
    struct ree_recorder *recorder;
    struct watch_dump *dump;
    struct ree_observer parts[2]; // of the two above
    size_t n_parts;
    const char *fault_node; // text of its number
    uint64_t fault_step;
    uint64_t n_steps;
    uint32_t prefill_chunk;
};

struct watch_run {
    const struct ree_model *model;
    const struct ree_model_hashes *hashes; // NULL: made here, where needed
    struct ree_pipeline *pipeline;
    enum ree_operation_set operation_set;
    uint32_t prefill_chunk; // 0: a model without steps
    size_t n_states;
    const struct ree_state_spec *states;
};

// Before the first run. Prints what is wrong; returns an exit code.
int watch_begin(struct watch *watch, const struct watch_options *options,
                const struct watch_run *run);
// After the last. *out_traced: of the trace that was written; *out_has: there is one.
int watch_end(struct watch *watch, struct ree_traced *out_traced, bool *out_has);
void watch_finish(struct watch *watch); // also of a zeroed one

// The fault that --inject-fault names.
enum ree_status watch_fault(const char *text, const struct ree_model *model, struct ree_fault *out,
                            struct ree_error *err);

#endif
