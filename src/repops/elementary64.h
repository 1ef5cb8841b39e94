// The elementary functions of NUMERICS.md section 4 in binary64. Each returns the exact value,
// rounded once to nearest, ties to even, with gradual underflow. They run on the host and use MPFR;
// a call takes some microseconds.
#ifndef REE_REPOPS_ELEMENTARY64_H
#define REE_REPOPS_ELEMENTARY64_H

double ree_exact_rsqrt(double x);
double ree_exact_exp(double x);
double ree_exact_expm1(double x);
double ree_exact_log(double x);
double ree_exact_log1p(double x);
double ree_exact_sin(double x);
double ree_exact_cos(double x);
double ree_exact_tan(double x);
double ree_exact_asin(double x);
double ree_exact_acos(double x);
double ree_exact_atan(double x);
double ree_exact_sinh(double x);
double ree_exact_cosh(double x);
double ree_exact_tanh(double x);
double ree_exact_asinh(double x);
double ree_exact_acosh(double x);
double ree_exact_atanh(double x);
double ree_exact_erf(double x);
double ree_exact_sigmoid(double x);  // 1 / (1 + e^-x)
double ree_exact_softplus(double x); // log(1 + e^x)
double ree_exact_pow(double x, double y);

// Returns the address of a function of the MPFR library, to identify the library that is loaded.
const void *ree_elementary64_library(void);

#endif
