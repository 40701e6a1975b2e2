/* The unit in which words of different writers are kept apart: two cache lines, because adjacent lines are fetched in pairs. */
#pragma once

#define SHMT_LINE 128
