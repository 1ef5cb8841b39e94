// The header of a trace as text; trace.h says what is in it.
#ifndef REE_RECEIPT_TRACE_HEADER_H
#define REE_RECEIPT_TRACE_HEADER_H

#include "base/strbuf.h"
#include "receipt/trace.h"

#define REE_TRACE_MAGIC "ree-trace/1\n"
#define REE_TRACE_END "end\n"
// Bytes: more than any model needs, and a bound to what reading a file of text may take.
#define REE_TRACE_MAX_HEADER ((uint64_t)64 << 20)

// Appends canonical JSON, of what is not derived alone.
enum ree_status ree_trace_header_encode(const struct ree_trace_header *header,
                                        struct ree_strbuf *out, struct ree_error *err);
// Reads it and completes the header, all in the arena. Text that is not what encoding the result
// gives is refused.
enum ree_status ree_trace_header_decode(const void *text, size_t nbytes, struct ree_arena *arena,
                                        struct ree_trace_header *out, struct ree_error *err);

#endif
