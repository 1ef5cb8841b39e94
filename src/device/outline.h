// What a program on a device keeps of the struct ree_program that it was made from: operands and
// names, not the parameters, which have become something else.
#ifndef REE_DEVICE_OUTLINE_H
#define REE_DEVICE_OUTLINE_H

#include "repops/repop.h"

struct ree_outline {
    uint32_t n_dispatches, n_slots;
    struct ree_operand (*operands)[REE_MAX_OPERANDS]; // [n_dispatches]
    uint32_t *n_operands;                             // [n_dispatches]
    char **labels;                                    // [n_dispatches], "node 'conv1' (Conv)"
};

// What messages call dispatch i; borrowed from `source`.
const char *ree_outline_label(const struct ree_program *source, uint32_t i);
// On failure, what there is waits for ree_outline_finish.
enum ree_status ree_outline_init(struct ree_outline *outline, const struct ree_program *source,
                                 struct ree_error *err);
void ree_outline_finish(struct ree_outline *outline);

// What a device reports of the first index out of range that a run met: the dispatch's number plus
// 1, 0 for none, and the index. backend: "CUDA", for a report that makes no sense.
enum ree_status ree_outline_fault(const struct ree_outline *outline, const char *backend,
                                  uint32_t dispatch, uint32_t low, uint32_t high,
                                  struct ree_error *err);

#endif
