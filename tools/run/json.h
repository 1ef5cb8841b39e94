// Adds items to cJSON values, with checks for exhausted memory.
#ifndef REE_TOOLS_RUN_JSON_H
#define REE_TOOLS_RUN_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>

// Adds an item to an array or an object, which takes ownership. Returns false, and deletes the
// item, if memory is exhausted. Each argument may be NULL, which counts as an earlier allocation
// failure.
bool json_put(cJSON *array, cJSON *item);
bool json_put_as(cJSON *object, const char *key, cJSON *item);

#endif
