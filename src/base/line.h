/* The unit in which words of different writers are kept apart: two cache lines, because adjacent lines are fetched in pairs. */
#ifndef SHMT_BASE_LINE_H
#define SHMT_BASE_LINE_H

#define SHMT_LINE 128

#endif
