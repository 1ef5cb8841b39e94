// The list of test cases that are expected to fail, with reasons. One rule on a line:
//
//     name:GLOB    reason     the case's name (a folder)
//     op:NAME      reason     the model contains this operator (DOMAIN.NAME outside ONNX's own)
//     type:NAME    reason     an input or output has this type
//     opset:N      reason     the model imports ONNX's operator set N
//
// "#" starts a comment. A case that a rule matches must fail: when it passes, the rule is wrong.
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

// False after printing what is wrong with the file.
bool exceptions_read(struct exceptions *list, const char *path);
void exceptions_finish(struct exceptions *list);
// The first rule that matches, or NULL. `model` (may be NULL) was read by ree_model_inspect.
const struct exception *exceptions_find(const struct exceptions *list, const char *name,
                                        const struct ree_model *model);

#endif
