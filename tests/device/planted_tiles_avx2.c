// For cpu_selftest_planted_tiles.
#define PLANTED_ROWS 6
#define PLANTED_COLS 16
#define PLANTED_NAME tile_6x2
#include "planted_tile.inc"
// Renames the definition in tiles.inc, the only place that uses the name with arguments; the table
// uses the function above.
#define tile_6x2(...) __attribute__((unused)) right_6x2(__VA_ARGS__)
#include "device/cpu/tiles_avx2.c"
