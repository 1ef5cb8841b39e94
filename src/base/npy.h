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
// Strings are NumPy's '<U': UTF-32 of one length for all, filled up with NULs. The elements must
// fill the rest of the file exactly. `where` names the file in messages.
enum ree_status ree_npy_decode(struct ree_tensor *tensor, const void *bytes, size_t nbytes,
                               const char *where, struct ree_error *err);
enum ree_status ree_npy_load(struct ree_tensor *tensor, const char *path, struct ree_error *err);

// Gives a tensor read from a file the type that ree_npy_encode wrote that type of file for (int4
// for int8, float8e5m2 for uint8, ...), in place. Does nothing when `dtype` is not such a type of
// the tensor's; fails when a byte is no element of it.
enum ree_status ree_npy_retype(struct ree_tensor *tensor, enum ree_dtype dtype,
                               struct ree_error *err);

// Encodes as version 1.0. *out_bytes is released with free. What is written of types that NumPy
// does not have is told at ree_tensor_save_npy.
enum ree_status ree_npy_encode(const struct ree_tensor *tensor, void **out_bytes,
                               size_t *out_nbytes, struct ree_error *err);

// '<U' (npy_text.c). The elements of `n` strings of `length` code points each, into a tensor's
// pointers; and a tensor's strings as such elements, *out_length long, released with free.
enum ree_status ree_npy_read_strings(char **strings, size_t n, size_t length,
                                     const unsigned char *elements, bool big_endian,
                                     const char *where, struct ree_error *err);
enum ree_status ree_npy_write_strings(const struct ree_tensor *tensor, void **out,
                                      size_t *out_nbytes, size_t *out_length,
                                      struct ree_error *err);

#endif
