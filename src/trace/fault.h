// Parses a fault to inject: "NODE:STEP:BIT" or "NODE:STEP:BIT:OUTPUT" (ree/trace.h).
#ifndef REE_TRACE_FAULT_H
#define REE_TRACE_FAULT_H

#include "session/observe.h"

// Fails with REE_INVALID if the text is malformed or the model has no node of that name. A node's
// number is checked when the fault is injected.
enum ree_status ree_fault_parse(const char *text, const struct ree_model *model,
                                struct ree_fault *out, struct ree_error *err);
// Fails with REE_INVALID if the text is malformed.
enum ree_status ree_fault_check(const char *text, struct ree_error *err);
// Fails with REE_INVALID: the run had only n_steps steps.
enum ree_status ree_fault_not_reached(const struct ree_fault *fault, uint64_t n_steps,
                                      struct ree_error *err);

#endif
