// The mutator of fuzz_verify, for its seeds.
#ifndef REE_TESTS_FUZZ_VERIFY_MUTATOR_H
#define REE_TESTS_FUZZ_VERIFY_MUTATOR_H

#include <stddef.h>
#include <stdint.h>

// libFuzzer's; whoever runs without it has to give one.
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

// Changes one place of an input's receipt or request, counted in the order of the text, and seals
// it again. Returns the new size; 0: there is no such place, or no room.
size_t verify_change_place(uint8_t *data, size_t size, size_t max_size, uint32_t place,
                           uint32_t seed);

#endif
