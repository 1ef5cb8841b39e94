// Time for measuring durations and deadlines.
#ifndef REE_BASE_CLOCK_H
#define REE_BASE_CLOCK_H

// Returns monotonic seconds since an unspecified moment.
double ree_clock(void);

#endif
