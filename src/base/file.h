// Whole files: read into memory, written whole or not at all.
#ifndef REE_BASE_FILE_H
#define REE_BASE_FILE_H

#include "ree.h"

// Reads a regular file. *out_bytes is released with free and is not NULL for an empty file.
enum ree_status ree_file_read(const char *path, void **out_bytes, size_t *out_nbytes,
                              struct ree_error *err);
// Writes by way of a temporary file in the same folder, which then takes the name: a reader sees
// the old contents or the new, and a failure leaves the old.
enum ree_status ree_file_write(const char *path, const void *bytes, size_t nbytes,
                               struct ree_error *err);

#endif
