// Predicts how long steps take, so that a program can be cut into submissions that the system's
// watchdog does not end: Windows resets a GPU after 2 seconds, amdgpu after 10.
//
// The prediction has two factors. The work of a step, in seconds, is an estimate from its
// operations and bytes on a slow device of this type. The pace is the quotient of measured and
// predicted time; every submission corrects it.
#include "device/vulkan/vulkan.h"
#include "device/vulkan/encode.h"
#include "device/vulkan/program_internal.h"
#include "repops/cost.h"

#define LAUNCH_SECONDS 5e-6
#define ITERATION_OPERATIONS 8 // per loop iteration, in a RepOp that is not a product
#define SHORT_ITERATIONS 16    // added to every thread's loop iterations

struct rates {
    double operations, bytes; // per second
};

static struct rates rates_of(const struct ree_vk *vk) {
    if (vk->is_cpu) return (struct rates){2e9, 2e9};
    if (vk->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU)
        return (struct rates){1e12, 1e11};
    return (struct rates){1e11, 1e10};
}

// Returns the number of operations that compute one multiply-add of a product, relative to the
// native form.
static double form_operations(const struct ree_vk_encoding *encoding) {
    static const double operations[REE_VK_N_FORMS] = {
        [REE_VK_NATIVE] = 1, [REE_VK_FLOAT64] = 8, [REE_VK_FLOAT32] = 16, [REE_VK_INTEGER] = 64};
    return operations[encoding->forms.of[REE_VK_FMA]];
}

static double iterations_of(const struct ree_vk_step *step) {
    return (double)step->n_groups * step->local_size * ((double)step->loops + SHORT_ITERATIONS);
}

void ree_vk_work_of(const struct ree_vk *vk, const struct ree_dispatch *dispatch,
                    const struct ree_vk_encoding *encoding, double out_work[REE_VK_MAX_STEPS]) {
    const struct rates rates = rates_of(vk);
    const struct ree_cost cost = ree_dispatch_cost(dispatch);
    double all = 0;
    for (uint32_t s = 0; s < encoding->n_steps; s++)
        all += iterations_of(&encoding->steps[s]);
    double operations =
        cost.flops > 0 ? cost.flops * form_operations(encoding) : all * ITERATION_OPERATIONS;
    double seconds = operations / rates.operations + cost.bytes / rates.bytes;
    for (uint32_t s = 0; s < encoding->n_steps; s++)
        out_work[s] =
            LAUNCH_SECONDS + (all > 0 ? seconds * iterations_of(&encoding->steps[s]) / all : 0);
}

// The pace is never below this number: the next program may consist of other operations than the
// last one, so a fast one must not make the submissions of a slow one much too long.
#define LOWEST_PACE 0.25
#define HIGHEST_PACE 1e6
#define SHORT_SECONDS 0.02 // shorter measurements consist mostly of other costs

void ree_vk_pace_note(struct ree_vk *vk, double work, double seconds) {
    double pace = work > 0 ? seconds / work : vk->pace;
    // If it was slower, follow at once, but by a factor of at most 4, because it may be a single
    // outlier.
    if (pace > vk->pace && seconds > SHORT_SECONDS)
        vk->pace = pace < 4 * vk->pace ? pace : 4 * vk->pace;
    else if (pace < vk->pace)
        vk->pace += (pace - vk->pace) / 8;
    if (vk->pace < LOWEST_PACE) vk->pace = LOWEST_PACE;
    if (vk->pace > HIGHEST_PACE) vk->pace = HIGHEST_PACE;
}
