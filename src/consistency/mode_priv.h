/* The modes that there are, one file each; listed in mode.c. */
#ifndef SHMT_CONSISTENCY_MODE_PRIV_H
#define SHMT_CONSISTENCY_MODE_PRIV_H

#include "consistency/mode.h"

extern const struct shmt_mode SHMT_MODE_ASYNC, SHMT_MODE_HOGWILD, SHMT_MODE_SYNC, SHMT_MODE_SSP, SHMT_MODE_BACKUP,
    SHMT_MODE_LOCAL, SHMT_MODE_NODE;

#endif
