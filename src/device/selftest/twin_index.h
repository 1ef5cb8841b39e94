// Twins of gather and scatter.
#ifndef REE_DEVICE_SELFTEST_TWIN_INDEX_H
#define REE_DEVICE_SELFTEST_TWIN_INDEX_H

#include "device/selftest/twin_shrink.h"

bool ree_twin_shrink_gather(struct ree_twin_shrinking *s);
bool ree_twin_shrink_scatter(struct ree_twin_shrinking *s);

#endif
