// The information that a device program keeps from its struct ree_program: operands and names.
// Parameters are not kept because the backend has translated them.
#ifndef REE_DEVICE_PROGRAM_INFO_H
#define REE_DEVICE_PROGRAM_INFO_H

#include "repops/repop.h"

struct ree_program_info {
    uint32_t n_dispatches, n_slots;
    struct ree_operand (*operands)[REE_MAX_OPERANDS]; // [n_dispatches]
    uint32_t *n_operands;                             // [n_dispatches]
    char **labels;                                    // [n_dispatches], "node 'conv1' (Conv)"
};

// Returns the name by which messages call dispatch i of a program: that of its node or, if it has
// none, of its RepOp. Borrowed from `source`.
const char *ree_program_info_label(const struct ree_program *source, uint32_t i);
// Copies operands and names from `source`. *info must be zeroed. On failure the caller must still
// call ree_program_info_finish.
enum ree_status ree_program_info_init(struct ree_program_info *info,
                                      const struct ree_program *source, struct ree_error *err);
void ree_program_info_finish(struct ree_program_info *info);

// Turns the device's report of an index out of range into an error: REE_INVALID with the name of
// the dispatch and the index. dispatch: index of the dispatch plus 1; 0: no fault, returns REE_OK.
// low, high: low and high 32 bits of the index. Fails with REE_DEVICE if there is no such dispatch;
// `backend`, for example "CUDA", is for that message.
enum ree_status ree_program_info_fault(const struct ree_program_info *info, const char *backend,
                                       uint32_t dispatch, uint32_t low, uint32_t high,
                                       struct ree_error *err);

#endif
