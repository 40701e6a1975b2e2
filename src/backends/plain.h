/* The plain backend: one worker, ordinary memory, the simplest code that keeps the contract. It is the oracle that the others
 * are compared with. Its variant `copy` keeps every promise in the most awkward way that the contract allows: views are copies
 * that are poisoned at `clock`, and pushes reach the parameters only then. */
#pragma once

#include "ps/backend_ops.h"

extern const struct shmt_backend SHMT_BACKEND_PLAIN, SHMT_BACKEND_COPY;
