// Writes and reads plan files: a plan as JSON, which `ree-run plan -o` makes and runs read. People
// may keep, read and edit it.
//
//     {"schema": "ree-plan/1", "graph_sha256": "...", "n_partitions": 2,
//      "stages": [{"ends_with": "layers.1.residual", ...}, {...}]}
//
// Only the schema, the hash and the ends of the stages are read back. All other fields are for
// people.
#ifndef REE_GRAPH_PARTITION_PLAN_FILE_H
#define REE_GRAPH_PARTITION_PLAN_FILE_H

#include "graph/partition/partition.h"

#define REE_PLAN_SCHEMA "ree-plan/1"
// Maximum size of a plan file in bytes. A larger file, or one with more than REE_MAX_STAGES stages,
// is refused.
#define REE_PLAN_MAX_BYTES ((size_t)16 << 20)

struct ree_plan_file {
    const struct ree_graph *graph; // the graph that was planned
    const struct ree_partition *partition;
    const char *graph_sha256; // hash of the model, in hexadecimal (ree_model_graph_sha256)
    uint64_t context;         // positions of a sequence that the costs assume
    // [n_stages]: descriptions of the stages' contents, for people; NULL: none
    const char *const *contents;
};

// Returns the name of the first output of the stage's last node; "" if it has none.
const char *ree_partition_end(const struct ree_graph *graph, const struct ree_partition *partition,
                              size_t stage);

// Appends the text of the plan file to *out.
enum ree_status ree_plan_file_print(const struct ree_plan_file *plan, struct ree_strbuf *out,
                                    struct ree_error *err);
enum ree_status ree_plan_file_write(const char *path, const struct ree_plan_file *plan,
                                    struct ree_error *err);

// For each stage except the last, reads the name of the value with which it ends: *out_n names,
// which ree_partition_from_cuts takes to make a plan of *out_n + 1 stages. Release them with
// ree_plan_ends_free. Fails with REE_INVALID if the file was made for a graph with another hash.
enum ree_status ree_plan_file_read(const char *path, const char *graph_sha256, char ***out_ends,
                                   size_t *out_n, struct ree_error *err);
// As ree_plan_file_read, but reads a text in memory. Messages do not name a file.
enum ree_status ree_plan_parse(const void *text, size_t size, const char *graph_sha256,
                               char ***out_ends, size_t *out_n, struct ree_error *err);
void ree_plan_ends_free(char **ends, size_t n); // accepts NULL

#endif
