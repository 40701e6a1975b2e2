/* Which pages memory gets: ordinary ones, reserved huge ones of 2 MiB, or transparent huge ones. Decided before a segment is
 * laid out, because ranges begin at whole pages; a segment may still have to do with less (segment.h). */
#pragma once

#include <stdint.h>

#include "base/log.h"
#include "topo/topo.h"

enum shmt_pages { SHMT_PAGES_ORDINARY, SHMT_PAGES_TRANSPARENT, SHMT_PAGES_2M };

/* For `bytes` of "the `what`" that are spread evenly over the nodes `node` (n_nodes, the system's numbers; 0: anywhere). Option
 * "off": ordinary. "2M": reserved ones if there are enough on each node; else one line says why not, and it goes on as with
 * "auto". "auto": reserved ones from 16 MiB on if there are enough, else transparent ones if the system makes them. */
enum shmt_pages shmt_pages_choose(const char *option, const struct shmt_topo *topo, uint64_t bytes, const uint32_t *node,
                                  uint32_t n_nodes, const char *what, const struct shmt_log *log);

/* The same for memory that cannot have reserved huge pages. */
enum shmt_pages shmt_pages_unreserved(const char *option, const struct shmt_topo *topo, uint64_t bytes);

const char *shmt_pages_name(enum shmt_pages pages); /* "off", "transparent", "2M" */

/* The alignment of ranges, and what segments are asked for: SHMT_HUGE_BYTES for reserved ones, else 4096. */
uint32_t shmt_pages_bytes(enum shmt_pages pages);
