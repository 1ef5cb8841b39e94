// Hugging Face checkpoints as ONNX models. README.md beside this file says what is written.
#ifndef REE_GRAPH_HF_HF_H
#define REE_GRAPH_HF_HF_H

#include "base/status.h"

struct ree_graph;

// Whether `path` is a folder, and so a checkpoint.
bool ree_hf_is_folder(const char *path);
// The graph of a checkpoint: that of the model that ree_export writes without options, from the
// same bytes, which are made in memory. Released with ree_graph_destroy.
enum ree_status ree_hf_load(const char *folder,
                            void (*on_progress)(void *, const char *, uint64_t, uint64_t),
                            void *user, struct ree_graph **out_graph, struct ree_error *err);

#endif
