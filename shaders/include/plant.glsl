// Faults for tests: a module compiled with REE_PLANT computes like a driver that does one thing
// wrongly. Only tests compile such modules; in other modules REE_PLANT is 0 and this file has no
// effect. Integer forms stay correct, as they would with such a driver.
#ifndef REE_GLSL_PLANT
#define REE_GLSL_PLANT

#define REE_PLANT_ROUNDING 1 // a rounding to float32 between two float64 operations is removed
#define REE_PLANT_CONTRACTS 2 // a product and a sum become an fma
#define REE_PLANT_REORDERS 3 // a sum runs in another order
#define REE_PLANT_FLUSHES 4 // subnormal results become zero
#define REE_PLANT_QUOTIENTS 5 // a quotient of float64 becomes a product with the inverse
#ifndef REE_PLANT
#define REE_PLANT 0
#endif

float ree_planted_flush(float x) {
#if REE_PLANT == REE_PLANT_FLUSHES
    if ((floatBitsToUint(x) & 0x7F800000u) == 0u) return 0.0;
#endif
    return x;
}

#endif
