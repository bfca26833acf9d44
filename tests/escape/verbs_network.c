/*
 * Verbs that ask for a way out by sockets, and by the System V and POSIX objects that the
 * host holds while a test runs (host.c).
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static long
result(long r)
{
    return r < 0 ? -errno : r;
}

static long
connect_unix(const char *name, int type, bool abstract)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t n = strlen(name);
    memcpy(to.sun_path + (abstract ? 1 : 0), name, n);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    return fd < 0 ? -errno : result(connect(fd, (struct sockaddr *)&to, size));
}

static long
run_abstract(const struct verb *verb, pid_t target)
{
    (void)target;
    bool stream = verb->args[0] == SOCK_STREAM;
    return connect_unix(stream ? HOST_ABSTRACT : HOST_DATAGRAM, (int)verb->args[0], true);
}

static long
run_unix(const struct verb *verb, pid_t target)
{
    (void)verb, (void)target;
    return connect_unix(HOST_SOCKET, SOCK_STREAM, false);
}

/* A port of the host's loopback that listens while a test runs. */
static long
run_loopback(const struct verb *verb, pid_t target)
{
    (void)verb, (void)target;
    struct sockaddr_in to = {
        .sin_family = AF_INET,
        .sin_port = htons(HOST_PORT),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd < 0 ? -errno : result(connect(fd, (struct sockaddr *)&to, sizeof(to)));
}

/* A message in the name of another process: the kernel checks the claim. */
static long
run_credentials(const struct verb *verb, pid_t target)
{
    (void)verb;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control = {.bytes = {0}};
    char text[] = "x";
    struct iovec data = {text, 1};
    struct msghdr message = {
        .msg_iov = &data,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes),
    };
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_CREDENTIALS;
    c->cmsg_len = CMSG_LEN(sizeof(struct ucred));
    struct ucred claim = {.pid = target, .uid = getuid(), .gid = getgid()};
    memcpy(CMSG_DATA(c), &claim, sizeof(claim));
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return -errno;
    return result(sendmsg(fds[0], &message, MSG_NOSIGNAL));
}

#define SOCKET(family, type, protocol)                                                   \
    .number = SYS_socket, .args = {family, (type) | SOCK_CLOEXEC, protocol}
#define HIGH 0x100000000L

/* clang-format off */
const struct verb verbs_network[] = {
    {"socket_inet", "TCP", SOCKET(AF_INET, SOCK_STREAM, 0)},
    {"socket_inet_udp", "UDP", SOCKET(AF_INET, SOCK_DGRAM, 0)},
    {"socket_inet6", "TCP over IPv6", SOCKET(AF_INET6, SOCK_STREAM, 0)},
    {"socket_inet_high", "TCP, with high bits in the family's register",
     SOCKET(HIGH | AF_INET, SOCK_STREAM, 0)},
    {"socket_packet_high", "frames, with high bits in the family's register",
     SOCKET(HIGH | AF_PACKET, SOCK_RAW, 0)},
    {"socket_type_high", "TCP, with high bits in the type's register",
     SOCKET(AF_INET, HIGH | SOCK_STREAM, 0)},
    {"socket_raw", "raw ICMP", SOCKET(AF_INET, SOCK_RAW, IPPROTO_ICMP)},
    {"socket_ping", "ICMP echo", SOCKET(AF_INET, SOCK_DGRAM, IPPROTO_ICMP)},
    {"socket_mptcp", "multipath TCP", SOCKET(AF_INET, SOCK_STREAM, 262)},
    {"socket_sctp", "SCTP", SOCKET(AF_INET, SOCK_STREAM, IPPROTO_SCTP)},
    {"socket_packet", "frames", SOCKET(AF_PACKET, SOCK_RAW, 0)},
    {"socket_netlink_route", "the network configuration",
     SOCKET(AF_NETLINK, SOCK_RAW, 0)},
    {"socket_netlink_audit", "the audit log", SOCKET(AF_NETLINK, SOCK_RAW, 9)},
    {"socket_netlink_generic", "generic netlink", SOCKET(AF_NETLINK, SOCK_RAW, 16)},
    {"socket_netlink_uevent", "kernel events", SOCKET(AF_NETLINK, SOCK_RAW, 15)},
    {"socket_vsock", "the hypervisor", SOCKET(AF_VSOCK, SOCK_STREAM, 0)},
    {"socket_bluetooth", "Bluetooth", SOCKET(AF_BLUETOOTH, SOCK_RAW, 1)},
    {"socket_alg", "the kernel's ciphers", SOCKET(AF_ALG, SOCK_SEQPACKET, 0)},
    {"socket_key", "IPsec keys", SOCKET(AF_KEY, SOCK_RAW, 2)},
    {"socket_can", "a CAN bus", SOCKET(AF_CAN, SOCK_RAW, 1)},
    {"socket_tipc", "TIPC", SOCKET(AF_TIPC, SOCK_STREAM, 0)},
    {"socket_rds", "RDS", SOCKET(AF_RDS, SOCK_SEQPACKET, 0)},
    {"socket_smc", "SMC", SOCKET(AF_SMC, SOCK_STREAM, 0)},
    {"socket_xdp", "XDP", SOCKET(AF_XDP, SOCK_RAW, 0)},
    {"socket_ax25", "packet radio", SOCKET(AF_AX25, SOCK_STREAM, 0)},
    {"socket_none", "a family that does not exist", SOCKET(255, SOCK_STREAM, 0)},
    {"socketpair_inet", "a pair of a family other than unix", .number = SYS_socketpair,
     .args = {AF_INET, SOCK_STREAM, 0, 0}},
    {"socketpair_tipc", "a pair of TIPC sockets", .number = SYS_socketpair,
     .args = {AF_TIPC, SOCK_STREAM, 0, 0}},
    {"connect_loopback", "a port of the host's loopback", .run = run_loopback},
    {"abstract_stream", "an abstract socket of the host", .run = run_abstract,
     .args = {SOCK_STREAM}},
    {"abstract_datagram", "an abstract datagram socket of the host", .run = run_abstract,
     .args = {SOCK_DGRAM}},
    {"unix_path", "a socket in the host's /tmp", .run = run_unix},
    {"credentials", "a message in another's name", .run = run_credentials,
     .aim = AIM_OWN},

    {"shmget", "shared memory of the host", .number = SYS_shmget,
     .args = {HOST_KEY, 1, 0}},
    {"semget", "a semaphore of the host", .number = SYS_semget, .args = {HOST_KEY, 1, 0}},
    {"msgget", "a message queue of the host", .number = SYS_msgget,
     .args = {HOST_KEY, 0}},
    {"mq_open", "a POSIX message queue of the host", .number = SYS_mq_open,
     .args = {(long)HOST_QUEUE, O_RDONLY | O_CLOEXEC, 0, 0}},
};
/* clang-format on */
const size_t verbs_network_n = COUNT(verbs_network);
