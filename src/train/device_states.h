// The states of a training in its device's memory. They stay there from step to step, and are
// copied to the host only when something asks for them: a hash, a checkpoint, the program.
#ifndef REE_TRAIN_DEVICE_STATES_H
#define REE_TRAIN_DEVICE_STATES_H

#include "train/step_roles.h"

// Which copy of the states is newer than the other.
enum ree_newer { REE_NEITHER_NEWER, REE_HOST_NEWER, REE_DEVICE_NEWER };

struct ree_device_states {
    size_t n;
    enum ree_newer newer;
    struct ree_device_tensor **present; // (n)
    struct ree_device_tensor **next;    // (n) receive the next values; then the two change places
    struct ree_named_device_tensor *inputs, *outputs; // (n) arguments of a run
};

// Ensures that the device has the present values: copies them from `host`, in the order of the
// step's states, on the first call and when those are newer.
enum ree_status ree_device_states_write(struct ree_device_states *states,
                                        const struct ree_step_roles *step,
                                        const struct ree_model *model, struct ree_device *device,
                                        const struct ree_tensor *host, struct ree_error *err);
// Runs the step with the present values, and with the other inputs in `inputs`. The next values
// stay on the device; `outputs` receives the loss.
enum ree_status ree_device_states_run(struct ree_device_states *states, struct ree_session *session,
                                      const struct ree_tensor *inputs, size_t n_inputs,
                                      struct ree_tensor *outputs, struct ree_error *err);
// Makes the next values the present ones, or back.
void ree_device_states_exchange(struct ree_device_states *states);
// Ensures that `host` has the present values.
enum ree_status ree_device_states_read(struct ree_device_states *states, struct ree_tensor *host,
                                       struct ree_error *err);
void ree_device_states_finish(struct ree_device_states *states);

#endif
