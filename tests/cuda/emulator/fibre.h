// Threads of a block as fibres: each has a stack, and control passes from one to another where
// they say so.
#ifndef REE_EMULATOR_FIBRE_H
#define REE_EMULATOR_FIBRE_H

#include <stdint.h>

namespace ree_emulator {

// Makes sure there are n fibres, which begin by calling main(); false: no memory. They keep what
// they are doing from one call to the next.
bool fibres_create(uint32_t n, void (*main)());
// Lets fibre i go on until it calls fibre_pause.
void fibre_resume(uint32_t i);
void fibre_pause();
// Forgets what the fibres were doing: each begins again. From outside of them.
void fibres_restart();

} // namespace ree_emulator

#endif
