/* Points: places in the protocols, before and after words that others read, at which a test may end or stop the process. The
 * library has none of them: they are there only in those files that a test compiles once more with SHMT_POINTS (tests/points.h,
 * which has the function). */
#ifndef SHMT_BASE_POINT_H
#define SHMT_BASE_POINT_H

#ifdef SHMT_POINTS
void shmt_point(const char *name);
#    define SHMT_POINT(name) shmt_point(name)
#else
#    define SHMT_POINT(name) ((void)0)
#endif

#endif
