/* libshmtrain: training with many workers over a parameter store in shared memory. Everything that is public. */
#ifndef SHMTRAIN_SHMTRAIN_H
#define SHMTRAIN_SHMTRAIN_H

#include <shmtrain/arrays.h>
#include <shmtrain/collective.h>
#include <shmtrain/data.h>
#include <shmtrain/data_info.h>
#include <shmtrain/doctor.h>
#include <shmtrain/hooks.h>
#include <shmtrain/hosts.h>
#include <shmtrain/inspect.h>
#include <shmtrain/layer.h>
#include <shmtrain/model.h>
#include <shmtrain/output.h>
#include <shmtrain/plan.h>
#include <shmtrain/report.h>
#include <shmtrain/session.h>
#include <shmtrain/snapshot.h>
#include <shmtrain/status.h>
#include <shmtrain/store.h>
#include <shmtrain/validation.h>

#endif
