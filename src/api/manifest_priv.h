/* What manifest.c and manifest_check.c share. */
#ifndef SHMT_API_MANIFEST_PRIV_H
#define SHMT_API_MANIFEST_PRIV_H

#include "api/manifest.h"

#define SHMT_MANIFEST_MAGIC 0x747365666e616d73u /* "smanfest" as bytes in memory */

uint64_t shmt_manifest_sum(const struct shmt_manifest *manifest);

#endif
