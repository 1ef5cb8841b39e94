// Text form of a trace's header; trace.h describes the contents.
#ifndef REE_TRACE_TRACE_HEADER_H
#define REE_TRACE_TRACE_HEADER_H

#include "base/strbuf.h"
#include "trace/trace.h"

#define REE_TRACE_MAGIC "ree-trace/1\n"
#define REE_TRACE_END "end\n"
// In bytes. More than any model needs; limits the memory that reading an untrusted file can take.
#define REE_TRACE_MAX_HEADER ((uint64_t)64 << 20)

// Appends the header as canonical JSON, without the derived fields.
enum ree_status ree_trace_header_encode(const struct ree_trace_header *header,
                                        struct ree_strbuf *out, struct ree_error *err);
// Decodes a header into the arena and completes it. Fails if the text is not exactly what encoding
// the result gives.
enum ree_status ree_trace_header_decode(const void *text, size_t nbytes, struct ree_arena *arena,
                                        struct ree_trace_header *out, struct ree_error *err);

#endif
