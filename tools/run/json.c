#include "json.h"

bool json_put(cJSON *array, cJSON *item) {
    if (item && cJSON_AddItemToArray(array, item)) return true;
    cJSON_Delete(item);
    return false;
}

bool json_put_as(cJSON *object, const char *key, cJSON *item) {
    if (item && cJSON_AddItemToObject(object, key, item)) return true;
    cJSON_Delete(item);
    return false;
}
