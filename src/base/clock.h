#ifndef REE_BASE_CLOCK_H
#define REE_BASE_CLOCK_H

// Seconds since some moment; nobody sets this clock.
double ree_clock(void);

#endif
