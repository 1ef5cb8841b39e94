// Threads of a block as fibres: each fibre has its own stack, and control passes from one fibre to
// another only on request.
#ifndef REE_EMULATOR_FIBRE_H
#define REE_EMULATOR_FIBRE_H

#include <stdint.h>

namespace ree_emulator {

// Ensures that at least n fibres exist; a new one begins by calling main(). Existing fibres keep
// their execution state. Returns false if memory is exhausted.
bool fibres_create(uint32_t n, void (*main)());
// Runs fibre i until it calls fibre_pause.
void fibre_resume(uint32_t i);
void fibre_pause();
// Discards the execution state of the fibres: each begins again. Must not be called from a fibre.
void fibres_restart();

} // namespace ree_emulator

#endif
