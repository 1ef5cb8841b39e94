// Finds the files of recorded values (trace/recorded.h) by their numbers. A step may have 100,000
// of them, so the names in its folder are read once and sorted.
#ifndef REE_TRACE_RECORDED_FILES_H
#define REE_TRACE_RECORDED_FILES_H

#include "base/arena.h"
#include "base/status.h"

// Says which value a file has. The order of the fields is the order of the list.
struct ree_recorded_key {
    bool is_input;   // an input of the model; otherwise an output of a node
    uint32_t number; // of the input or the node
    uint32_t output; // of the node; 0 for an input
};

struct ree_recorded_file {
    struct ree_recorded_key key;
    const char *name;
};

// A folder of recorded values, and the list of the files of the step that was read last.
// Initialize with {.path = PATH}, and release with ree_recorded_folder_finish.
struct ree_recorded_folder {
    const char *path; // borrowed; NULL: there are no recorded values
    uint64_t step;
    struct ree_recorded_file *files; // [n], sorted by key, then by name; NULL: none was read
    size_t n;
    struct ree_arena names;
};
void ree_recorded_folder_finish(struct ree_recorded_folder *folder);

// Sets *out to the path of the file of a value; the caller releases it with ree_free. If several
// files fit, it is the one with the lowest name. Fails with REE_NOT_FOUND if none does.
enum ree_status ree_recorded_find(struct ree_recorded_folder *folder, uint64_t step,
                                  const struct ree_recorded_key *key, char **out,
                                  struct ree_error *err);

#endif
