// Threads of a block as fibres: each fibre has its own stack, and control passes from one fibre to
// another only on request.
#ifndef REE_EMULATOR_FIBRE_H
#define REE_EMULATOR_FIBRE_H

#include <stdint.h>

namespace ree_emulator {

// Ensures that n fibres exist, which begin by calling main(). Returns false if memory is short.
// Fibres keep their execution state from one call to the next.
bool fibres_create(uint32_t n, void (*main)());
// Runs fibre i until it calls fibre_pause.
void fibre_resume(uint32_t i);
void fibre_pause();
// Discards the execution state of the fibres: each begins again. Must not be called from a fibre.
void fibres_restart();

} // namespace ree_emulator

#endif
