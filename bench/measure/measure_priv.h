/* One round of shmtrain bench: every floor and every operation once, in turns (rounds.c). */
#pragma once

#include "bench/measure/measure.h"

/* What is measured on: data, text, memory. */
struct shmt_bed;
struct shmt_bed *shmt_bed_make(uint64_t far_bytes, bool quick);
void shmt_bed_measure(struct shmt_bed *bed, struct shmt_bench *out);
void shmt_bed_free(struct shmt_bed *bed);
