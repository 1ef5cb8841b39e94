// The list of test cases that are expected to fail, with reasons. One rule per line:
//
//     name:GLOB         reason   the case's name (a folder)
//     case:NAME@DIGEST  reason   the case of this name whose files have this digest (case_digest)
//     op:NAME           reason   the model contains this operator, of any domain
//     type:NAME         reason   an input or output has this type
//     opset:N           reason   the model imports ONNX's operator set N
//     load:GLOB         reason   reading the model fails with this message
//
//     data:GLOB         reason   in cases of this name the types of the data may contradict the
//                                model; those cases are not run, the others must pass
//     pass:GLOB         reason   no later rule applies to cases of this name
//
// "#" starts a comment. The first rule that matches applies. A case that matches any rule other
// than "data" and "pass" must fail: if it passes, the rule is wrong.
//
// ONNX repairs the expected outputs of a case from release to release. A "case" rule is for the
// files of some releases: it does not match a release that lacks the case or has repaired it.
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

// Returns false after printing what is wrong with the file.
bool exceptions_read(struct exceptions *list, const char *path);
void exceptions_finish(struct exceptions *list);
// Returns the first rule that matches the case `name` at `base` (case.h), or NULL if no rule
// matches or the first match is a "pass" rule. `model` was read by ree_model_inspect; if it is
// NULL, `load_error` is the reason why that failed.
const struct exception *exceptions_find(const struct exceptions *list, const char *base,
                                        const char *name, const struct ree_model *model,
                                        const char *load_error);

#endif
