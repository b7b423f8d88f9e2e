// Stands in front of calls as any library must that is to see what they return.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define WRAP(name)                                                      \
    static __typeof__(&name) next_##name;                               \
    __attribute__((constructor)) static void find_##name(void)          \
    {                                                                   \
        next_##name = (__typeof__(&name))dlsym(RTLD_NEXT, #name);       \
    }

// Whatever it makes of the result, it has to be there when the call is over.
#define PASS_ON(call)                                                   \
    ssize_t result = call;                                              \
    __asm__ volatile("" : : "r"(result));                               \
    return result

WRAP(write)
WRAP(read)
WRAP(send)
WRAP(recv)
WRAP(writev)
WRAP(sendmsg)

ssize_t write(int file, const void *buffer, size_t length) { PASS_ON(next_write(file, buffer, length)); }
ssize_t read(int file, void *buffer, size_t length) { PASS_ON(next_read(file, buffer, length)); }
ssize_t send(int socket, const void *buffer, size_t length, int flags) { PASS_ON(next_send(socket, buffer, length, flags)); }
ssize_t recv(int socket, void *buffer, size_t length, int flags) { PASS_ON(next_recv(socket, buffer, length, flags)); }
ssize_t writev(int file, const struct iovec *parts, int count) { PASS_ON(next_writev(file, parts, count)); }
ssize_t sendmsg(int socket, const struct msghdr *message, int flags) { PASS_ON(next_sendmsg(socket, message, flags)); }
