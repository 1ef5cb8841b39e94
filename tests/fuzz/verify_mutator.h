// The mutator of fuzz_verify, declared for the program that writes its seeds.
#ifndef REE_TESTS_FUZZ_VERIFY_MUTATOR_H
#define REE_TESTS_FUZZ_VERIFY_MUTATOR_H

#include <stddef.h>
#include <stdint.h>

// Provided by libFuzzer. A program without libFuzzer must define it.
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

// Changes one place of an input's receipt or request, by its number in the order of the text, and
// seals the input again. Returns the new size; 0 if there is no such place or the result exceeds
// max_size.
size_t verify_change_place(uint8_t *data, size_t size, size_t max_size, uint32_t place,
                           uint32_t seed);

#endif
