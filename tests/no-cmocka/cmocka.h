/* Stands in for cmocka's header where configure did not find cmocka: only `make check` needs it. */
#error "make check needs cmocka. Debian and Ubuntu: apt-get install libcmocka-dev. Then run ./configure again."
