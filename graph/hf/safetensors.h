// The header of a safetensors file: which tensors it has, and where.
// https://huggingface.co/docs/safetensors
//
//     u64 n | n bytes of JSON: {"NAME": {"dtype", "shape", "data_offsets": [begin, end]}, ...} |
//     data
//
// The offsets count from the end of the JSON. The format asks that tensors neither overlap nor
// leave bytes of the data to nobody; that is checked, like everything else about them.
#ifndef REE_GRAPH_HF_SAFETENSORS_H
#define REE_GRAPH_HF_SAFETENSORS_H

#include "base/arena.h"
#include "base/status.h"

// Far above real headers (a model of 50,000 tensors has 7 MiB), far below what parsing could not
// hold in memory.
#define REE_SAFETENSORS_MAX_HEADER (32 << 20)

struct ree_stored_tensor {
    const char *name;
    enum ree_dtype dtype;
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];
    uint64_t offset, nbytes; // offset: from the start of the file
    uint32_t file;           // number of the file; set by the caller
    bool is_read;            // by the decoder; set by the caller
};

// Reads the header of a file of `size` bytes, of which `bytes` are mapped. The tensors, in the
// order of their data, and their names belong to `arena`.
enum ree_status ree_safetensors_parse(const unsigned char *bytes, size_t size,
                                      struct ree_arena *arena, struct ree_stored_tensor **out,
                                      size_t *out_n, struct ree_error *err);

#endif
