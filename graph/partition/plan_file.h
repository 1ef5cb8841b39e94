// A plan as a JSON file: made by `ree-run plan -o`, kept, looked at, edited, and given to a run.
//
//     {"schema": "ree-plan/1", "graph_sha256": "...", "n_partitions": 2,
//      "stages": [{"ends_with": "layers.1.residual", ...}, {...}]}
//
// Only the schema, the hash and where the stages end are read back; the rest is there for people.
#ifndef REE_GRAPH_PARTITION_PLAN_FILE_H
#define REE_GRAPH_PARTITION_PLAN_FILE_H

#include "graph/partition/partition.h"

#define REE_PLAN_SCHEMA "ree-plan/1"
// A file with more, or with more than REE_MAX_STAGES stages, is refused. Names are as long as the
// model has them.
#define REE_PLAN_MAX_BYTES ((size_t)16 << 20)

struct ree_plan_file {
    const struct ree_graph *graph; // that was planned
    const struct ree_partition *partition;
    const char *graph_sha256;    // of the model, in hexadecimal (ree_model_graph_sha256)
    uint64_t context;            // that was planned for
    const char *const *contents; // per stage: what is in it, for people; may be NULL
};

// The first named value that the last node of a stage makes.
const char *ree_partition_end(const struct ree_graph *graph, const struct ree_partition *partition,
                              size_t stage);

// Appends the file's text.
enum ree_status ree_plan_file_print(const struct ree_plan_file *plan, struct ree_strbuf *out,
                                    struct ree_error *err);
enum ree_status ree_plan_file_write(const char *path, const struct ree_plan_file *plan,
                                    struct ree_error *err);

// Where the stages end, all but the last: for ree_partition_from_cuts with *out_n + 1 stages. Fails
// where the file was made for another graph. Release with ree_plan_ends_free.
enum ree_status ree_plan_file_read(const char *path, const char *graph_sha256, char ***out_ends,
                                   size_t *out_n, struct ree_error *err);
// The same of a text in memory; messages do not name a file.
enum ree_status ree_plan_parse(const void *text, size_t size, const char *graph_sha256,
                               char ***out_ends, size_t *out_n, struct ree_error *err);
void ree_plan_ends_free(char **ends, size_t n); // accepts NULL

#endif
