// Reads and fills the structs of the public interface that begin with `size_t size` and may grow:
// options that the caller passes, and stats that the library fills.
//
// Rules for a struct that grows: a new field comes last. It begins at or after the end of the
// struct in the last release, padding included, because an older program may leave any bytes in
// its padding. All zeros must mean what the struct meant without the field.
#ifndef REE_BASE_OPTIONS_H
#define REE_BASE_OPTIONS_H

#include "ree.h"

// Copies the caller's options to *out, a struct of `known` bytes, and sets out->size to `known`.
// Fields that the caller's struct does not have become zero; if `options` is NULL, all fields
// become zero. `name` is the struct's name without "struct". Fails with
// - REE_INVALID if options->size is 0, less than sizeof(size_t), or absurdly large
// - REE_UNSUPPORTED if the caller's struct is larger than `known` and a byte after the first
//   `known` bytes is not zero: the caller sets an option that this library does not have
enum ree_status ree_options_read(void *out, size_t known, const void *options, const char *name,
                                 struct ree_error *err);
// ree_stats_fill copies *stats, a struct of `known` bytes, to *out, which has out->size bytes. It
// keeps out->size and sets bytes of *out beyond `known` to zero. *out must have passed
// ree_stats_check, which fails with REE_INVALID if out->size is 0, less than sizeof(size_t), or
// absurdly large.
enum ree_status ree_stats_check(const void *out, size_t known, const char *name,
                                struct ree_error *err);
void ree_stats_fill(void *out, const void *stats, size_t known);
// Calls ree_stats_check and, if that succeeds, ree_stats_fill.
enum ree_status ree_stats_write(void *out, const void *stats, size_t known, const char *name,
                                struct ree_error *err);

#endif
