/* Ports of this machine that are free, for tests of hosts on the loopback. */
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_HOSTS 6

static char g_hosts[MOST_HOSTS][24], g_list[MOST_HOSTS * 25 + 1]; /* "127.0.0.1:PORT", and all of them with commas between */

/* n of them, that are free now. */
static inline void choose_ports(int n) {
    int fd[MOST_HOSTS];
    g_list[0] = '\0';
    for (int i = 0; i < n; i++) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        socklen_t bytes = sizeof at;
        fd[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert_true(fd[i] >= 0 && bind(fd[i], (struct sockaddr *)&at, bytes) == 0);
        assert_int_equal(getsockname(fd[i], (struct sockaddr *)&at, &bytes), 0);
        snprintf(g_hosts[i], sizeof g_hosts[i], "127.0.0.1:%u", ntohs(at.sin_port));
        snprintf(g_list + strlen(g_list), sizeof g_list - strlen(g_list), "%s%s", i ? "," : "", g_hosts[i]);
    }
    for (int i = 0; i < n; i++) close(fd[i]);
}
