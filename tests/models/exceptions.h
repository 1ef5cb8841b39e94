// The list of test cases that are expected to fail, with reasons. One rule per line:
//
//     name:GLOB         reason   the case's name matches
//     case:NAME@DIGEST  reason   the case has this name and its files this digest (case_digest)
//     op:NAME           reason   the model contains this operator, of any domain
//     type:NAME         reason   an input or output of the model has this type
//     opset:N           reason   the model imports ONNX's operator set N
//     load:GLOB         reason   reading the model fails with a message that matches
//
//     data:GLOB         reason   a case of this name is not run if the types of its data contradict
//                                the model (case.h, contradicts_model); otherwise it must pass
//     pass:GLOB         reason   a case of this name must pass; no later rule applies to it
//
// "#" starts a comment. GLOB is a shell pattern. Only the first rule that matches a case applies. A
// case to which a rule other than "data" and "pass" applies must fail: if it passes, the test
// fails.
//
// Some expected outputs are wrong in one release of ONNX and correct in the next. A "case" rule is
// for such a case: it matches only the releases whose files have its digest.
#ifndef REE_TESTS_MODELS_EXCEPTIONS_H
#define REE_TESTS_MODELS_EXCEPTIONS_H

#include "ree.h"

struct exception {
    char *kind, *pattern, *reason;
};

struct exceptions {
    size_t n;
    struct exception *rules;
};

// Reads the rules from the file `path`. If the file cannot be read or a line is malformed, prints
// the reason and returns false. Release the list with exceptions_finish.
bool exceptions_read(struct exceptions *list, const char *path);
void exceptions_finish(struct exceptions *list);
// Returns the first rule that matches the case `name` at `base` (case.h), or NULL if no rule
// matches or the first match is a "pass" rule. model: the result of ree_model_inspect; NULL if it
// failed. load_error: its error message in that case. The result is borrowed from `list`.
const struct exception *exceptions_find(const struct exceptions *list, const char *base,
                                        const char *name, const struct ree_model *model,
                                        const char *load_error);

#endif
