// The elementary functions in integers, ree_int_<name>_f32: one file for each family. Correctly
// rounded for every argument (PROOF.md).
#ifndef REE_SCALAR_ELEMENTARY_H
#define REE_SCALAR_ELEMENTARY_H

#include "repops/scalar/exp.h"
#include "repops/scalar/log.h"
#include "repops/scalar/trig.h"
#include "repops/scalar/atan.h"
#include "repops/scalar/erf.h"
#include "repops/scalar/pow.h"

#endif
