// Encodes and decodes the header of a trace as canonical JSON. trace.h describes the contents.
#ifndef REE_TRACE_TRACE_HEADER_H
#define REE_TRACE_TRACE_HEADER_H

#include "base/strbuf.h"
#include "trace/trace.h"

#define REE_TRACE_MAGIC "ree-trace/" // then the version, one digit, and a line feed
#define REE_TRACE_END "end\n"
// Maximum bytes of an encoded header, more than any model needs. It limits the memory that reading
// an untrusted file can take.
#define REE_TRACE_MAX_HEADER ((uint64_t)64 << 20)

// Appends the header as canonical JSON, without the fields that ree_trace_header_complete computes.
enum ree_status ree_trace_header_encode(const struct ree_trace_header *header,
                                        struct ree_strbuf *out, struct ree_error *err);
// Decodes a header of `nbytes` bytes into the arena and completes it with
// ree_trace_header_complete. Fails with REE_INVALID if the text differs from the encoding of the
// result.
enum ree_status ree_trace_header_decode(const void *text, size_t nbytes, struct ree_arena *arena,
                                        struct ree_trace_header *out, struct ree_error *err);

#endif
