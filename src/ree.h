// ree: an open reproducible execution environment. This header includes the public API of libree.
//
//     ree/core.h      version, status, errors            ree/session.h   a model on one device
//     ree/tensor.h    tensors in host memory, files      ree/generate.h  text generation
//     ree/model.h     ONNX files and checkpoints         ree/text.h      tokenizers, chat templates
//     ree/device.h    CPU, Vulkan, CUDA                  ree/receipt.h   receipts, verification
//
// Typical use:
//
//     struct ree_error err;
//     struct ree_model *model;
//     struct ree_device *device;
//     struct ree_session *session;
//     if (ree_model_load("model.onnx", NULL, &model, &err)) ...        // read, check, fold
//     if (ree_device_open("cpu", NULL, &device, &err)) ...             // "cuda", "vulkan:1", ...
//     if (ree_session_create(model, device, NULL, &session, &err)) ... // model onto the device
//     if (ree_session_run(session, inputs, n_inputs, outputs, &err)) ...
//
// Ownership: the caller owns every object that *_load, *_open or *_create returns and releases it
// with the matching *_destroy, in reverse order of creation. Every destroy function accepts NULL.
// Strings and structs returned as `const` are borrowed: they belong to the object passed in and
// live as long as it does.
//
// Errors: a function that can fail returns REE_OK (0) or another ree_status. On failure it sets its
// out parameters to NULL and, unless `err` is NULL, writes a message that names the file, node and
// tensor concerned.
//
// Threads: an object may be used by one thread at a time. Different objects are independent, with
// one exception: using a session also uses its model and its device.
//
// Floating-point environment: the output bits do not depend on the caller's. The calling thread may
// have set any rounding direction, flushing of subnormals (-ffast-math, FTZ and DAZ of x86, FZ of
// ARM) and exception traps. A function that computes sets ree's environment and restores the
// calling thread's before it returns, status flags included. Callbacks run in the caller's
// environment and may change it. If ree is the first to start OpenMP threads, those threads keep
// the default environment.
#ifndef REE_H
#define REE_H

#include "ree/core.h"
#include "ree/device.h"
#include "ree/generate.h"
#include "ree/model.h"
#include "ree/receipt.h"
#include "ree/session.h"
#include "ree/tensor.h"
#include "ree/text.h"

#endif
