// Reads the header of a safetensors file: its tensors and their offsets.
// https://huggingface.co/docs/safetensors
//
//     u64 n, little-endian
//     n bytes of JSON: {"NAME": {"dtype", "shape", "data_offsets": [begin, end]}, ...}
//     data
//
// The offsets count from the end of the JSON. The format requires that tensors do not overlap and
// that every byte of the data belongs to a tensor. ree_safetensors_parse checks this and everything
// else about the tensors.
#ifndef REE_GRAPH_HF_SAFETENSORS_H
#define REE_GRAPH_HF_SAFETENSORS_H

#include "base/arena.h"
#include "base/status.h"

// Maximum size of the header in bytes. Far above real headers (a model of 50,000 tensors has 7
// MiB), and small enough that parsing fits in memory.
#define REE_SAFETENSORS_MAX_HEADER (32 << 20)

struct ree_stored_tensor {
    const char *name;
    enum ree_dtype dtype;
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];
    uint64_t offset, nbytes; // in bytes; the offset counts from the start of the file
    uint32_t file;           // index of the file in the checkpoint; set by the caller
    bool is_read;            // whether the decoder uses the tensor; set by the caller
};

// Reads the header of a file of `size` bytes, mapped at `bytes`. *out has the *out_n tensors in the
// order of their data. The array and the names are allocated in `arena`.
enum ree_status ree_safetensors_parse(const unsigned char *bytes, size_t size,
                                      struct ree_arena *arena, struct ree_stored_tensor **out,
                                      size_t *out_n, struct ree_error *err);
// Reads the string `key` of the header's "__metadata__". *out is allocated in `arena`; NULL if
// there is none. Fails as ree_safetensors_parse if the header cannot be read.
enum ree_status ree_safetensors_metadata(const unsigned char *bytes, size_t size, const char *key,
                                         struct ree_arena *arena, const char **out,
                                         struct ree_error *err);
// Returns the format's name of a type, such as "F32"; NULL: the format lacks the type.
const char *ree_safetensors_type(enum ree_dtype dtype);

#endif
