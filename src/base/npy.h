// Reads and writes NumPy .npy files, which hold one tensor each.
//
// Layout: "\x93NUMPY", major, minor, header length (u16 LE in version 1, u32 LE in 2 and 3), a
// Python dictionary literal with exactly the keys 'descr', 'fortran_order' and 'shape', then the
// elements. Source: numpy.lib.format's documentation.
#ifndef REE_BASE_NPY_H
#define REE_BASE_NPY_H

#include "ree.h"

// Reads a .npy file from memory: versions 1 to 3; bool, signed and unsigned integers, floats and
// strings, in either byte order; row-major and column-major. The result is dense, row-major and
// little-endian, as struct ree_tensor requires. Strings are NumPy's '<U': UTF-32 of equal length,
// padded with NULs. The elements must fill the rest of the file exactly. `where` names the file in
// messages.
enum ree_status ree_npy_decode(struct ree_tensor *tensor, const void *bytes, size_t nbytes,
                               const char *where, struct ree_error *err);
// Returns whether the bytes begin as a .npy file of strings does. Strings take much more memory than
// their file.
bool ree_npy_has_strings(const void *bytes, size_t nbytes);
enum ree_status ree_npy_load(struct ree_tensor *tensor, const char *path, struct ree_error *err);

// Encodes a tensor as a .npy file of version 1.0. Release *out_bytes with ree_free.
// ree_tensor_save_npy describes how types that NumPy lacks are written.
enum ree_status ree_npy_encode(const struct ree_tensor *tensor, void **out_bytes,
                               size_t *out_nbytes, struct ree_error *err);

// NumPy's '<U' strings (npy_text.c). ree_npy_read_strings converts `n` strings of `length` code
// points each into a tensor's pointers. ree_npy_write_strings converts a tensor's strings to
// elements of *out_length code points; release *out with ree_free.
enum ree_status ree_npy_read_strings(char **strings, size_t n, size_t length,
                                     const unsigned char *elements, bool big_endian,
                                     const char *where, struct ree_error *err);
enum ree_status ree_npy_write_strings(const struct ree_tensor *tensor, void **out,
                                      size_t *out_nbytes, size_t *out_length,
                                      struct ree_error *err);

#endif
