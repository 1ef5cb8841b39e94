// Passes messages that are no errors to the function that the caller has set with ree_set_log.
#ifndef REE_BASE_LOG_H
#define REE_BASE_LOG_H

#include "ree.h"

// Formats a message and passes it to the function set with ree_set_log; does nothing if none is
// set. The text is cut at REE_ERROR_MAX bytes, and newlines become spaces.
__attribute__((format(printf, 2, 3))) void ree_log(enum ree_log_level level, const char *format,
                                                   ...);

#endif
