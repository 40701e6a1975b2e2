/* What manifest.c and manifest_check.c share. */
#pragma once

#include "naming/manifest.h"

#define SHMT_MANIFEST_MAGIC 0x747365666e616d73u /* "smanfest" as bytes in memory */

uint64_t shmt_manifest_sum(const struct shmt_manifest *manifest);
