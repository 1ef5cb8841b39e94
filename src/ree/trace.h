// Traces: digests of what every node of a model computed in every step of a run, under one root. A
// step is one run of the model.
//
// Two runs with the same root computed the same values. If two roots differ, ree_trace_diff finds
// the first node that differs. audit.h has comparisons while two devices run, and disputes between
// two parties. src/trace/trace.h in ree's source defines the hashed bytes and the file.
#ifndef REE_TRACE_H
#define REE_TRACE_H

#include "generate.h"
#include "pipeline.h"

#ifdef __cplusplus
extern "C" {
#endif

// Recording a run.
//
//     struct ree_record_options options = {.size = sizeof options, .trace = "run.trace"};
//     ree_record_session(session, &options, &recording, &err);
//     ree_session_run(session, ...);
//     ree_recording_finish(recording, &recorded, &err);
//
// A recorded run keeps the value of every node in memory until its step ends, and ree does not fuse
// nodes. This changes no bit; it costs memory and time.
struct ree_recording;

struct ree_record_options {
    size_t size;       // sizeof this struct
    const char *trace; // path of the trace file to write; NULL: none
    bool is_private;   // true: only the owner can access the trace file and the dumped values
    // Writes the values of nodes and inputs whose name, or whose output's name, matches this POSIX
    // extended regular expression to dump_folder, as .npy files: step-STEP/NODE-NAME-OUTPUT.npy and
    // step-STEP/input-INDEX-NAME.npy. Of a kv cache it writes only the positions that the step
    // added. At most REE_DUMP_MAX_FILES files. A referee reads values from such a folder. NULL:
    // off.
    const char *dump_names;
    // Folder for the dumped values; created if it is missing. Must be NULL if dump_names is NULL,
    // and must not be NULL otherwise.
    const char *dump_folder;
    // For tests of error detection: flips one bit of a value before later nodes read it, as a
    // failing device would. "NODE:STEP:BIT" or "NODE:STEP:BIT:OUTPUT"; NODE is a number or a unique
    // name, STEP counts runs from 0. NULL: off.
    const char *fault;
    // Hashes of the model (ree_model_graph_sha256, ...), if the caller knows them. NULL: computed,
    // which reads all weights.
    const char *graph_sha256, *weights_sha256;
    struct ree_progress progress; // receives the progress of hashing the weights
};
#define REE_DUMP_MAX_FILES 10000

// Checks the options as far as that is possible without a model. Fails with REE_INVALID in the
// cases in which ree_record_session does.
REE_API enum ree_status ree_record_check(const struct ree_record_options *options,
                                         struct ree_error *err);
// Starts to record the next runs. Call it before the first run. The session, pipeline or generator
// must exist until the recording ends (ree_recording_finish or ree_recording_destroy). Later runs
// are not recorded, but remain as slow as recorded runs. A session or pipeline must keep no kv
// caches; each of its runs is one step. A generator must have been created with exact_lengths, and
// must generate one sequence. Fails with
// - REE_INVALID if a run was made before, the options contradict each other, or a regular
//   expression or a fault is malformed
// - REE_NOT_FOUND if dump_names matches nothing
// - REE_UNSUPPORTED if the generator mixes sequences of different lengths
REE_API enum ree_status ree_record_session(struct ree_session *session,
                                           const struct ree_record_options *options,
                                           struct ree_recording **out_recording,
                                           struct ree_error *err);
REE_API enum ree_status ree_record_pipeline(struct ree_pipeline *pipeline,
                                            const struct ree_record_options *options,
                                            struct ree_recording **out_recording,
                                            struct ree_error *err);
REE_API enum ree_status ree_record_generator(struct ree_generator *generator,
                                             const struct ree_record_options *options,
                                             struct ree_recording **out_recording,
                                             struct ree_error *err);

struct ree_recorded {
    size_t size;            // sizeof this struct
    char root[65];          // root of the trace, in hexadecimal; "": no trace was requested
    uint64_t n_steps;       // number of recorded steps
    uint32_t prefill_chunk; // prompt tokens per step; 0: the run was not a generator's
    uint64_t n_files;       // number of dumped tensors
    uint64_t n_omitted;     // tensors not dumped because of REE_DUMP_MAX_FILES
    uint64_t n_unfit;       // tensors not dumped because a .npy file cannot represent them
};

// Completes the files after the last run; only now does the trace appear under its name. Releases
// the recording, also on failure. Fails with REE_INVALID if the run did not reach the step of
// options.fault. `out_recorded` may be NULL; otherwise the caller sets its size.
REE_API enum ree_status ree_recording_finish(struct ree_recording *recording,
                                             struct ree_recorded *out_recorded,
                                             struct ree_error *err);
// Returns the number of steps recorded so far.
REE_API uint64_t ree_recording_n_steps(const struct ree_recording *recording);
// Releases the recording without writing the trace; dumped tensors stay. Accepts NULL.
REE_API void ree_recording_destroy(struct ree_recording *recording);

// Reading a trace
struct ree_trace;

// Reads a trace file. The file need not be trusted: this function checks all of it, including the
// root. Fails with REE_INVALID if the file is malformed or was changed.
REE_API enum ree_status ree_trace_load(const char *path, struct ree_trace **out_trace,
                                       struct ree_error *err);
REE_API void ree_trace_destroy(struct ree_trace *trace);

struct ree_trace_info {
    size_t size;                               // sizeof this struct
    char root[65];                             // root of the trace, in hexadecimal
    const char *graph_sha256, *weights_sha256; // hashes of the model, in hexadecimal
    const char *numerics;                      // "RepOps/1"
    const char *operation_set;                 // "reproducible", ...
    uint64_t n_steps;
    uint32_t prefill_chunk;      // prompt tokens per step; 0: the run was not a generator's
    uint32_t n_inputs, n_caches; // number of model inputs; how many of them are kv caches
    uint32_t n_constants, n_nodes;
};
// Fills *out_info. The caller sets out_info->size. Strings are borrowed from the trace.
REE_API enum ree_status ree_trace_info(const struct ree_trace *trace,
                                       struct ree_trace_info *out_info, struct ree_error *err);
// Returns the name of an input, counted from 0; NULL if there is no such input. Borrowed.
REE_API const char *ree_trace_input_name(const struct ree_trace *trace, uint32_t input);

// Value number of an input that a node omits. The values of a trace have numbers from 0: first the
// inputs, then the constants, then the outputs of each node, omitted outputs included.
#define REE_VALUE_OMITTED (-1)

struct ree_node_info {
    size_t size;                         // sizeof this struct
    const char *name, *domain, *op_type; // "" if the node has none
    int64_t opset;                       // 0: unknown
    uint32_t n_inputs;
    const int32_t *inputs; // (n_inputs) value number of each input; NULL: unknown
    uint32_t n_outputs;
    uint32_t first_output; // value number of output 0; the other outputs follow
    const bool *omitted;   // (n_outputs) whether the node omits the output; NULL: unknown
};
// Fills *out_info. `node` counts from 0. The caller sets out_info->size. Pointers are borrowed from
// the trace. Fails with REE_NOT_FOUND if there is no such node.
REE_API enum ree_status ree_trace_node(const struct ree_trace *trace, uint32_t node,
                                       struct ree_node_info *out_info, struct ree_error *err);
// Describes where a value comes from: "input 'x'", "constant 'w'", "output 1 of node 12 'split'
// (Split)", "omitted". The names are those of the model and may contain control characters. Release
// with ree_free; NULL if memory is exhausted or there is no such value.
REE_API char *ree_trace_value_text(const struct ree_trace *trace, int32_t value);

// Comparing two traces
enum ree_diff_kind {
    REE_DIFF_SAME,      // equal roots
    REE_DIFF_OTHER_RUN, // the headers differ, so the steps cannot be compared
    REE_DIFF_INPUT,     // the first difference is an input of the model
    REE_DIFF_NODE,      // the first difference is an output of a node
    REE_DIFF_LENGTH,    // equal up to the end of the shorter trace
};
REE_API const char *ree_diff_kind_name(enum ree_diff_kind kind); // "same", "other_run", ...

// Bits of ree_diff.header: each says what differs between the headers of the two traces.
#define REE_DIFF_GRAPH 1u
#define REE_DIFF_WEIGHTS 2u
#define REE_DIFF_NUMERICS 4u
#define REE_DIFF_OPERATION_SET 8u
#define REE_DIFF_CHUNK 16u // prefill_chunk
#define REE_DIFF_PORTS 32u // the inputs of the graph
// The constants differ. Without REE_DIFF_WEIGHTS, the passes made other constants of equal weights.
#define REE_DIFF_CONSTANTS 64u
#define REE_DIFF_NODES 128u

struct ree_diff {
    size_t size; // sizeof this struct
    enum ree_diff_kind kind;
    uint32_t header;  // kind OTHER_RUN: what differs, bits REE_DIFF_GRAPH to REE_DIFF_NODES
    uint64_t n_steps; // number of steps that both traces have
    uint64_t step;    // first step that differs; kinds SAME and LENGTH: n_steps
    uint32_t input;   // kind INPUT: number of the first input that differs
    uint32_t node;    // kind NODE: number of the first node that differs
    // Counts of node runs. A node run is one node in one step.
    uint64_t n_before; // node runs before the first difference; all of them agree
    uint64_t n_after;  // node runs after the first difference that also differ
    uint64_t n_new;    // node runs counted in n_after whose inputs all agree: further faults
};

// Finds the first difference, in the order in which nodes run. The devices of the runs do not
// matter. The caller sets out_diff->size. Fails with REE_INVALID if it is 0.
REE_API enum ree_status ree_trace_diff(const struct ree_trace *a, const struct ree_trace *b,
                                       struct ree_diff *out_diff, struct ree_error *err);

// The following three functions compare one node or value in one step of two traces whose headers
// agree (ree_diff.header is 0). A step, node or value that is not in both traces does not differ.
REE_API bool ree_trace_node_differs(const struct ree_trace *a, const struct ree_trace *b,
                                    uint64_t step, uint32_t node);
REE_API bool ree_trace_value_agrees(const struct ree_trace *a, const struct ree_trace *b,
                                    uint64_t step, int32_t value);
// True if all values that the node read agree.
REE_API bool ree_trace_inputs_agree(const struct ree_trace *a, const struct ree_trace *b,
                                    uint64_t step, uint32_t node);

// Makes an HTML page with a picture that shows which nodes of which steps differ. `names` are the
// titles of the traces. The page needs no network and no scripts, and all text from the files is
// escaped. *out_html is NUL-terminated; release it with ree_free.
REE_API enum ree_status ree_trace_diff_html(const struct ree_trace *a, const struct ree_trace *b,
                                            const char *const names[2], char **out_html,
                                            struct ree_error *err);

#ifdef __cplusplus
}
#endif
#endif
