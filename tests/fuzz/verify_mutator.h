// The part of fuzz_verify's mutator that make_receipts, which writes the seeds, also uses.
#ifndef REE_TESTS_FUZZ_VERIFY_MUTATOR_H
#define REE_TESTS_FUZZ_VERIFY_MUTATOR_H

#include <stddef.h>
#include <stdint.h>

// Provided by libFuzzer. A program without libFuzzer must define it.
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

// Changes one JSON value of an input (verify_case.h) and makes the input mostly consistent again
// (reseal.h). `place` is the 0-based index of the value: values of the receipt in the order of the
// text, then those of the request; of an array only the first element counts. Returns the new size
// in bytes; 0 if there is no such value or the result exceeds max_size.
size_t verify_change_place(uint8_t *data, size_t size, size_t max_size, uint32_t place,
                           uint32_t seed);

#endif
