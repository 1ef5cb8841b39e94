// Specializes a SPIR-V module before the driver receives it.
//
// A module of ree contains the code for every type, rank and form; specialization constants select
// a small part of it. Drivers inline and optimise the whole module before they remove the rest,
// which takes seconds on some of them. So ree_spirv_fold replaces the constants by their values,
// computes what follows from them, and removes the branches and functions that are never reached.
// The result is usually a tenth of the module.
#ifndef REE_DEVICE_VULKAN_SPIRV_FOLD_H
#define REE_DEVICE_VULKAN_SPIRV_FOLD_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// The value of a specialization constant: 32 bits, or 0 and 1 for a Boolean.
struct ree_spirv_constant {
    uint32_t id, value; // id: SpecId
};

// Returns a new module without specialization constants (allocated with ree_alloc; the caller frees
// it), equivalent to `words` with the n_constants constants set. Other specialization constants
// keep their defaults. The result has no names and no debug information. The module must be valid
// for Vulkan. Fails with REE_UNSUPPORTED if the module contains something that this pass does not
// know, such as 64-bit specialization constants, decoration groups or a second entry point; the
// caller then passes the module and its constants to the driver unchanged.
enum ree_status ree_spirv_fold(const uint32_t *words, size_t n_words,
                               const struct ree_spirv_constant *constants, uint32_t n_constants,
                               uint32_t **out, size_t *out_n_words, struct ree_error *err);

#endif
