// For cpu_selftest_planted_tiles; see planted_tiles_avx2.c.
#define PLANTED_ROWS 12
#define PLANTED_COLS 32
#define PLANTED_NAME tile_12x2
#include "planted_tile.inc"
#define tile_12x2(...) __attribute__((unused)) right_12x2(__VA_ARGS__)
#include "device/cpu/tiles_avx512.c"
