// NumPy's .npy files: one tensor each.
//
// Layout: "\x93NUMPY", major, minor, header length (u16 LE in version 1, u32 LE in 2 and 3), a
// Python dictionary literal with exactly the keys 'descr', 'fortran_order' and 'shape', then the
// elements. Source: numpy.lib.format's documentation.
#ifndef REE_BASE_NPY_H
#define REE_BASE_NPY_H

#include "ree.h"

// Reads from memory. Versions 1 to 3; descr of bool, (unsigned) integers and floats in either byte
// order; both element orders. The result is dense, row-major, little-endian, as ree_tensor wants.
// The elements must fill the rest of the file exactly. `where` names the file in messages.
enum ree_status ree_npy_decode(struct ree_tensor *tensor, const void *bytes, size_t nbytes,
                               const char *where, struct ree_error *err);
enum ree_status ree_npy_load(struct ree_tensor *tensor, const char *path, struct ree_error *err);

// Encodes as version 1.0. *out_bytes is released with free. bfloat16, which NumPy does not have,
// is written as '<V2' (two raw bytes).
enum ree_status ree_npy_encode(const struct ree_tensor *tensor, void **out_bytes,
                               size_t *out_nbytes, struct ree_error *err);

#endif
