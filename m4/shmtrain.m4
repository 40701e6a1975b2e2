# The macros of configure.ac that belong to this project alone.

# SHMT_MISSING_BEGIN, SHMT_NEED..., SHMT_MISSING_END
# A list of libraries of which all that are missing are reported together, each with the Debian package that brings it.
AC_DEFUN([SHMT_MISSING_BEGIN], [
  AC_REQUIRE([PKG_PROG_PKG_CONFIG])
  shmt_missing= shmt_packages=
  AS_IF([test -z "$PKG_CONFIG"], [SHMT_MISSES([pkg-config], [pkg-config])])
])

# SHMT_MISSES(NAME, PACKAGE)
AC_DEFUN([SHMT_MISSES], [
  shmt_missing="$shmt_missing
  $1 (Debian package $2)"
  shmt_packages="$shmt_packages $2"
])

# SHMT_NEED(VARIABLE, MODULE, NAME, PACKAGE): sets VARIABLE_CFLAGS and VARIABLE_LIBS
AC_DEFUN([SHMT_NEED], [
  PKG_CHECK_MODULES([$1], [$2], [], [SHMT_MISSES([$3], [$4])])
])

AC_DEFUN([SHMT_MISSING_END], [
  AS_IF([test -n "$shmt_missing"], [AC_MSG_ERROR([these are missing:$shmt_missing
On Debian and Ubuntu this brings all of them:
  apt-get install$shmt_packages])])
])

# SHMT_LOADED_NAME(VARIABLE, LIBRARY): defines SHMT_VARIABLE_LIBRARY, the file that a program linked with VARIABLE_LIBS would load at
# its start: what is loaded late asks for the same one. Where nothing here can tell, the source has a name of its own.
AC_DEFUN([SHMT_LOADED_NAME], [
  AC_MSG_CHECKING([what a program linked with $2 loads])
  shmt_kept=$LIBS shmt_name=
  LIBS="-Wl,--no-as-needed $$1_LIBS $LIBS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
                 [shmt_name=`LC_ALL=C ${OBJDUMP-objdump} -p conftest$EXEEXT 2>/dev/null | awk '@S|@1 == "NEEDED" && @S|@2 ~ /^$2[[.]]so/ { print @S|@2 }'`])
  LIBS=$shmt_kept
  AS_IF([test -n "$shmt_name"], [AC_DEFINE_UNQUOTED([SHMT_$1_LIBRARY], ["$shmt_name"], [the file of $2 that is loaded late])])
  AC_MSG_RESULT([${shmt_name:-unknown}])
])

# SHMT_COMPLETIONS: sets completionsdir, where bash-completion looks for completions: the folder that it names itself where that is
# below our prefix, so that `make install` stays there.
AC_DEFUN([SHMT_COMPLETIONS], [
  AC_REQUIRE([PKG_PROG_PKG_CONFIG])
  AC_MSG_CHECKING([where completions for bash go])
  completionsdir='${datadir}/bash-completion/completions'
  shmt_prefix=$prefix
  AS_IF([test "$shmt_prefix" = NONE], [shmt_prefix=$ac_default_prefix])
  shmt_found=`$PKG_CONFIG --variable=completionsdir bash-completion 2>/dev/null`
  AS_CASE([$shmt_found], ["$shmt_prefix"/*], [completionsdir='${prefix}'`echo "$shmt_found" | sed "s|^$shmt_prefix||"`])
  AC_SUBST([completionsdir])
  AC_MSG_RESULT([$completionsdir])
])

# SHMT_SANITIZER(OPTION, SANITIZER, NAME): --enable-OPTION adds to SANITIZE
AC_DEFUN([SHMT_SANITIZER], [
  AC_ARG_ENABLE([$1], [AS_HELP_STRING([--enable-$1], [build with $3])], [], [enable_$1=no])
  AS_IF([test "$enable_$1" = yes], [SANITIZE="${SANITIZE:+$SANITIZE }-fsanitize=$2"])
])

# SHMT_CPU_PATH(NAME, OPTION, FLAGS): whether the compiler makes code for x86-64 with FLAGS; --disable-OPTION leaves it out. Defines
# SHMT_HAS_NAME, and sets NAME_CFLAGS and the conditional HAS_NAME.
AC_DEFUN([SHMT_CPU_PATH], [
  AC_ARG_ENABLE([$2], [AS_HELP_STRING([--disable-$2], [leave the CPU path $2 out])], [shmt_wanted=$enableval], [shmt_wanted=yes])
  AC_MSG_CHECKING([whether $CC makes code with $3])
  shmt_kept=$CFLAGS
  CFLAGS="$CFLAGS $3"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#ifndef __x86_64__
#error "another architecture"
#endif
#include <immintrin.h>]], [[return __builtin_cpu_supports("avx2") ? 0 : 1;]])], [shmt_has=$shmt_wanted], [shmt_has=no])
  CFLAGS=$shmt_kept
  AC_MSG_RESULT([$shmt_has])
  AS_IF([test "$shmt_has" = yes], [AC_DEFINE([SHMT_HAS_$1], [1], [the library has this CPU path])
    AC_SUBST([$1_CFLAGS], ["$3"])])
  AM_CONDITIONAL([HAS_$1], [test "$shmt_has" = yes])
])

# SHMT_MPI(VARIABLE, MODULE, NAME): a conditional that says whether programs can be built for this MPI, with VARIABLE_CFLAGS and
# VARIABLE_LIBS. What is there only in part is not there.
AC_DEFUN([SHMT_MPI], [
  have_$1=no
  AS_IF([test "$with_mpi" != no], [PKG_CHECK_MODULES([$1], [$2], [have_$1=yes], [have_$1=no])])
  AS_IF([test "$have_$1" = yes], [
    AC_MSG_CHECKING([whether programs can be linked with $3])
    shmt_kept_libs=$LIBS shmt_kept=$CPPFLAGS
    LIBS="$$1_LIBS $LIBS" CPPFLAGS="$CPPFLAGS $$1_CFLAGS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]], [[return MPI_Init(0, 0)]])], [], [have_$1=no])
    LIBS=$shmt_kept_libs CPPFLAGS=$shmt_kept
    AC_MSG_RESULT([$have_$1])
  ])
  AM_CONDITIONAL([$1], [test "$have_$1" = yes])
])
