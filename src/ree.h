// The main header of libree, the library of ree, an open reproducible execution environment. It
// includes these headers of the public API:
//
//     ree/core.h      version, errors, progress, hooks   ree/session.h   a model on one device
//     ree/tensor.h    tensors in host memory, files      ree/generate.h  text generation
//     ree/model.h     ONNX files and checkpoints         ree/decode.h    text generation by steps
//     ree/device.h    CPU, Vulkan, CUDA                  ree/text.h      tokenizers, chat templates
//     ree/pipeline.h  a model in several stages          ree/plan.h      where a model is divided
//     ree/trace.h     traces of runs                     ree/audit.h     comparisons, disputes
//     ree/receipt.h   receipts, verification             ree/file.h      whole files
//     ree/train.h     trainings, their receipts          ree/perplexity.h  how well a model
//     predicts
//     ree/device_tensor.h  tensors in a device's memory
//
// ree.h does not include three headers that few programs need: ree/bench.h (benchmarks),
// ree/ranks.h (several processes) and ree/testing.h (planted faults, for tests).
//
// Typical use:
//
//     struct ree_error err;
//     struct ree_model *model;
//     struct ree_device *device;
//     struct ree_session *session;
//     if (ree_model_load("model.onnx", NULL, &model, &err)) ...        // read, check, fold
//     if (ree_device_open("cpu", NULL, &device, &err)) ...             // "cuda", "vulkan:1", ...
//     if (ree_session_create(model, device, NULL, &session, &err)) ...
//     if (ree_session_run(session, inputs, n_inputs, outputs, &err)) ...
//
// Ownership: the caller owns every object that *_load, *_open or *_create returns and releases it
// with the matching *_destroy, in reverse order of creation. Every destroy function accepts NULL.
// Strings and structs returned as `const` are borrowed: they belong to the object passed in and
// live as long as it does.
//
// Memory that ree gives to the caller is released by the function that its description names, or
// with ree_free. Memory that the caller gives to ree (the name and data of a struct ree_tensor)
// comes from ree_alloc. Both are malloc and free, unless ree_set_allocator was called.
//
// Errors: a function that can fail returns REE_OK (0) or another ree_status. On failure it sets
// the pointers that it returns through `out_` parameters to NULL and, unless `err` is NULL, writes
// a message that names the file, node and tensor concerned. `err` need not be initialised. A
// successful call leaves err->status unchanged or sets it to REE_OK.
//
// Threads: any thread may use an object, but only one thread at a time. Another thread than the one
// that made an object may destroy it. Different objects are independent, with one exception: using
// an object also uses the objects that it was made from.
//
//     struct ree_model      independent. Several sessions may be made from one model; use them one
//                           at a time.
//     struct ree_device     independent, even two of one GPU.
//     struct ree_session    uses its model and its device.
//     struct ree_pipeline   uses its model and its devices.
//     struct ree_generator  uses its devices.
//     struct ree_tokenizer  independent. Several threads may encode and decode with one tokenizer
//                           at the same time.
//     struct ree_tensor, struct ree_decoder
//                           independent.
//
// A pipeline or a generator with several devices may have threads of its own.
//
// Functions without an object may be called by any thread at any time, except ree_device_list,
// which only one thread may call at a time. Opening a Vulkan device waits while another thread
// opens one, because the driver is tried in a child process.
//
// Callbacks: ree calls them from the thread that called ree, and a callback may call ree for other
// objects. Exceptions: a pipeline or a generator with several devices may call progress.report,
// on_program and on_kernel from threads of its own, one at a time; such a callback must not use the
// pipeline or the generator. Any of these threads may call the function of ree_set_log. `const`
// pointers that a callback receives are valid only during the call.
//
// Floating-point environment: the output bits do not depend on that of the caller. The calling
// thread may have set any rounding direction, flushing of subnormals (-ffast-math, FTZ and DAZ of
// x86, FZ of ARM) and exception traps. A function that computes sets ree's environment and restores
// the calling thread's before it returns, status flags included. Callbacks run in the caller's
// environment and may change it. If ree is the first to start OpenMP threads, those threads keep
// the default environment.
//
// Versions: ree_version is MAJOR.MINOR.PATCH. A program that was compiled with these headers runs
// with every later library of the same major version, without being compiled again, unless it uses
// functions that have been removed since (only in versions 0.x).
//
// - A patch version changes nothing in these headers.
// - A minor version may add functions, values of enums that are returned, fields at the end of
//   structs that begin with `size_t size`, and fields at the end of structs that the library makes
//   and passes as a `const` pointer to one struct (ree_generator_info, ree_port, ree_token,
//   ree_rank_report). Nothing else changes: structs without a size that the program makes, and
//   elements of arrays, stay as they are.
// - A function that will be removed is first marked REE_DEPRECATED("use ree_x"). It stays for two
//   minor versions after the one that marked it. The next major version then removes it; before 1.0
//   the next minor version does.
// - The output bits follow ree_numerics_version, not this version.
//
// Structs with a field `size`: set it to sizeof the struct, for instance
//
//     struct ree_device_options options = {.size = sizeof options, .n_threads = 2};
//
// `size` tells the library which fields the program knows. Fields that an older program lacks count
// as zero, which always means the behaviour before the field was added. If a newer program sets a
// field that an older library lacks, the call fails with REE_UNSUPPORTED; if the field is zero, the
// call works. In structs that the library fills (stats), it writes no more than `size` bytes and
// sets fields that it does not know to zero. If `size` is 0, the call fails with REE_INVALID.
//
// Options, and the structs and strings that they point to, are read only during the call, unless
// the comment of a field says how long it must stay valid. Callbacks and `user` are kept as long as
// the object that was made with them.
#ifndef REE_H
#define REE_H

#include "ree/audit.h"
#include "ree/core.h"
#include "ree/decode.h"
#include "ree/device.h"
#include "ree/file.h"
#include "ree/generate.h"
#include "ree/model.h"
#include "ree/perplexity.h"
#include "ree/pipeline.h"
#include "ree/plan.h"
#include "ree/receipt.h"
#include "ree/session.h"
#include "ree/tensor.h"
#include "ree/text.h"
#include "ree/trace.h"
#include "ree/train.h"

#endif
