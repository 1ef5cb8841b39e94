// Parses a fault to inject: "NODE:STEP:BIT" or "NODE:STEP:BIT:OUTPUT" (ree/trace.h).
#ifndef REE_TRACE_FAULT_H
#define REE_TRACE_FAULT_H

#include "session/observe.h"

// Parses a fault for this model. Fails with REE_INVALID if the text is malformed, or if NODE is a
// name that no node or several nodes have. If NODE is a number, it is checked only by the
// injection.
enum ree_status ree_fault_parse(const char *text, const struct ree_model *model,
                                struct ree_fault *out, struct ree_error *err);
// Checks only the form of the text. Fails with REE_INVALID if it is malformed.
enum ree_status ree_fault_check(const char *text, struct ree_error *err);
// Always fails with REE_INVALID, with the message that the fault's step does not exist because the
// run had n_steps steps.
enum ree_status ree_fault_not_reached(const struct ree_fault *fault, uint64_t n_steps,
                                      struct ree_error *err);

#endif
