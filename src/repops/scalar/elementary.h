// Includes the elementary functions of binary32 in integer arithmetic, ree_int_<name>_f32. Each
// family of functions has a file. Their results are correctly rounded; PROOF.md records the proof
// for those of one argument.
#ifndef REE_SCALAR_ELEMENTARY_H
#define REE_SCALAR_ELEMENTARY_H

#include "repops/scalar/exp.h"
#include "repops/scalar/log.h"
#include "repops/scalar/trig.h"
#include "repops/scalar/atan.h"
#include "repops/scalar/erf.h"
#include "repops/scalar/pow.h"

#endif
