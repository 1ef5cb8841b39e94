#ifndef REE_GLSL_PRIMITIVES
#define REE_GLSL_PRIMITIVES
#include "repops/scalar/ops.glsl"
#endif
