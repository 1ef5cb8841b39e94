// Which lengths twins have, and which properties of a dispatch they keep.
#ifndef REE_DEVICE_SELFTEST_TWIN_SIZE_H
#define REE_DEVICE_SELFTEST_TWIN_SIZE_H

#include <stdbool.h>
#include <stdint.h>

struct ree_twin_size {
    uint32_t elements;    // approximate elements of elementwise RepOps
    uint32_t columns;     // of a product's result, if the dispatch has at least as many
    uint32_t length;      // terms of a sum
    uint32_t long_length; // of rows that have at least long_from elements in the dispatch
    uint32_t long_from;
    // Sums that fit one chunk do so in the twin too, because other code runs then.
    bool one_chunk;
    // Dimensions of size 1 keep it, and few queries stay as few, even if that selects no code. A
    // non-zero `alignment` implies this.
    bool keeps_ones;
    uint32_t few_rows; // products with fewer rows keep their number of rows
    uint32_t rows;     // of other products
    // An attention with at most this many queries per head has a twin with the same number of them.
    uint32_t few_queries;
    uint32_t keys; // of attention; 0: half the length of a row
    // A power of two, or 0 to keep none of the following properties:
    // - the greatest common divisor of lengths, strides and offsets with `alignment` (or with 16)
    // - the position of operands within 16 bytes
    // - the number of chunks of a sum, if it is at most 9
    // - whether a size is smaller or larger than one tile
    uint32_t alignment;
    bool small; // the device is slow: use no full tile
};

#endif
