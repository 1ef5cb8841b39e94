// Draws the losses of a training as a picture.
#ifndef REE_TOOLS_RUN_TRAIN_CURVE_H
#define REE_TOOLS_RUN_TRAIN_CURVE_H

#include <stddef.h>
#include <stdint.h>

#include "strbuf.h"

// Appends an SVG picture of the n losses of the steps first, first + 1, ... Losses that are not
// finite leave gaps. Where there are more steps than columns, the line shows means.
void train_curve(const double *losses, size_t n, uint64_t first, struct strbuf *out);

#endif
