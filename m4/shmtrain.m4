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

# SHMT_SANITIZER(OPTION, SANITIZER, NAME): --enable-OPTION adds to SANITIZE
AC_DEFUN([SHMT_SANITIZER], [
  AC_ARG_ENABLE([$1], [AS_HELP_STRING([--enable-$1], [build with $3])], [], [enable_$1=no])
  AS_IF([test "$enable_$1" = yes], [SANITIZE="${SANITIZE:+$SANITIZE }-fsanitize=$2"])
])
