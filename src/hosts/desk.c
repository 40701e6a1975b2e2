/* Packets between a run and its link's process: see desk.h. */
#include "hosts/desk.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/checked.h"

#define HEAD_BYTES offsetof(struct shmt_desk_packet, bytes)

union passed {
    struct cmsghdr head;
    unsigned char room[CMSG_SPACE(sizeof(int))];
};

int shmt_desk_send(int desk, const struct shmt_desk_packet *packet, int pass) {
    struct iovec part = {.iov_base = (void *)(uintptr_t)packet, .iov_len = HEAD_BYTES + packet->n};
    union passed control = {0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (pass >= 0) {
        message.msg_control = control.room;
        message.msg_controllen = sizeof control.room;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        *head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof pass), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(head), &pass, sizeof pass);
    }
    ssize_t sent;
    do sent = sendmsg(desk, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -1 : 0;
}

static int passed_of(struct msghdr *message) {
    const struct cmsghdr *head = CMSG_FIRSTHDR(message);
    int fd;
    if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS || head->cmsg_len != CMSG_LEN(sizeof fd))
        return -1;
    memcpy(&fd, CMSG_DATA(head), sizeof fd);
    return fd;
}

int shmt_desk_receive(int desk, int wait_ms, struct shmt_desk_packet *out, int *passed_out) {
    struct iovec part = {.iov_base = out, .iov_len = sizeof *out};
    union passed control;
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    struct pollfd readable = {.fd = desk, .events = POLLIN};
    if (wait_ms != 0 && poll(&readable, 1, wait_ms) <= 0) return 0; /* interrupted: nothing */
    const ssize_t got = recvmsg(desk, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
    const int passed = got > 0 ? passed_of(&message) : -1;
    if (passed_out)
        *passed_out = passed;
    else if (passed >= 0)
        close(passed);
    if (got >= (ssize_t)HEAD_BYTES && out->n == (size_t)got - HEAD_BYTES && !(message.msg_flags & MSG_TRUNC)) return 1;
    if (passed_out && passed >= 0) close(passed);
    return -1;
}

void shmt_desk_write(struct shmt_desk_packet *packet, const char *text) {
    packet->n = (uint32_t)shmt_min_u64(strlen(text), sizeof packet->bytes);
    memcpy(packet->bytes, text, packet->n);
}

const char *shmt_desk_text(struct shmt_desk_packet *packet) {
    packet->bytes[shmt_min_u64(packet->n, sizeof packet->bytes - 1)] = '\0';
    return (const char *)packet->bytes;
}
