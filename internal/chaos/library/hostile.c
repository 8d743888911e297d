/*
 * A library with one op that misbehaves as CHAOS_PLUGIN says: a phase, a misdeed, and when: "always", or "late" for
 * everywhere but in a probe.
 */
#define _GNU_SOURCE
#include "primus_op_args.h"
#include "primus_op_plugin.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char spoof[] = "\x1b[2J\x1b[31m\nprimus: error: spoofed\r";

static int in_probe(void) {
    char line[4096];
    FILE *f = fopen("/proc/self/cmdline", "r");
    if (f == NULL) return 0;
    size_t n = fread(line, 1, sizeof line, f);
    fclose(f);
    for (size_t i = 0; i + 7 <= n; i++)
        if (memcmp(line + i, "\0probe", 7) == 0) return 1;
    return 0;
}

/* Returns the misdeed of a phase, "" when there is none now. */
static const char *misdeed_of(const char *phase) {
    static __thread char where[32], what[32], when[32];
    const char *plan = getenv("CHAOS_PLUGIN");
    if (plan == NULL || sscanf(plan, "%31s %31s %31s", where, what, when) != 3) return "";
    if (strcmp(where, phase) != 0 || (strcmp(when, "late") == 0 && in_probe())) return "";
    return what;
}

static int is(const char *phase, const char *misdeed) { return strcmp(misdeed_of(phase), misdeed) == 0; }

static int deeper(volatile char *above) {
    volatile char room[4096];
    room[0] = *above;
    return deeper(room) + room[0];
}

static void leave_daemon(void) {
    if (fork() != 0) {
        wait(NULL);
        return;
    }
    setsid();
    if (fork() != 0) _exit(0);
    alarm(120);
    for (;;) pause();
}

static void change_rounding(void) {
#if defined(__x86_64__)
    unsigned control = 0xffc0;
    __asm__ volatile("ldmxcsr %0" : : "m"(control));
#else
    unsigned long control = 0x1c00000;
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
#endif
}

static void misbehave(const char *phase) {
    const char *what = misdeed_of(phase);
    char begin = 1;
    if (strcmp(what, "segv") == 0) *(volatile int *)8 = 1;
    if (strcmp(what, "abort") == 0) abort();
    if (strcmp(what, "illegal") == 0) __builtin_trap();
    if (strcmp(what, "stack") == 0) deeper(&begin);
    if (strcmp(what, "kill") == 0) kill(getpid(), SIGKILL);
    if (strcmp(what, "group") == 0) kill(0, SIGKILL);
    if (strcmp(what, "exit") == 0) exit(0);
    if (strcmp(what, "quick_exit") == 0) quick_exit(0);
    if (strcmp(what, "_exit") == 0) _exit(0);
    if (strcmp(what, "hang") == 0)
        for (;;) pause();
    if (strcmp(what, "daemon") == 0) leave_daemon();
    if (strcmp(what, "rounding") == 0) change_rounding();
    if (strcmp(what, "close") == 0)
        for (int fd = 3; fd < 256; fd++) close(fd);
}

static void *in_thread(void *nothing) {
    misbehave("thread");
    return nothing;
}

static const primus_tensor *operand(const primus_call *call, uint32_t i) { return call->args[i].value.tensor; }

static float *data(const primus_tensor *t) { return t->data == NULL ? NULL : (float *)((char *)t->data + t->byte_offset); }

static int64_t elements(const primus_tensor *t) {
    int64_t n = 1;
    for (int i = t->ndim - 1; i >= 0; i--) {
        if (t->shape[i] != 1 && t->strides[i] != n) return -1;
        n *= t->shape[i];
    }
    return n;
}

static int32_t declines(const primus_call *call, const char *text) {
    snprintf(call->error, call->error_bytes, "%s", text);
    return PRIMUS_UNSUPPORTED;
}

static int32_t supports(const primus_call *call) {
    misbehave("supports");
    if (is("supports", "text")) return declines(call, spoof);
    if (is("supports", "status")) return 77;
    for (uint32_t i = 0; i < PRIMUS_RESIDUAL_ADD_N_ARGS; i++) {
        const primus_tensor *t = operand(call, i);
        if (t->dtype.code != 2 || t->dtype.bits != 32 || elements(t) < 0) return declines(call, "only contiguous float");
    }
    if (is("supports", "write")) {
        if (elements(operand(call, 0)) > 0) data(operand(call, 0))[0] += 1;
        return declines(call, "too late");
    }
    return PRIMUS_OK;
}

static uint64_t workspace_size(const primus_call *call) {
    (void)call;
    misbehave("workspace_size");
    return is("workspace_size", "status") ? UINT64_MAX : 0;
}

static int32_t run(const primus_call *call) {
    const primus_tensor *out = operand(call, PRIMUS_RESIDUAL_ADD_OUTPUT);
    const float *a = data(operand(call, PRIMUS_RESIDUAL_ADD_A)), *b = data(operand(call, PRIMUS_RESIDUAL_ADD_B));
    float *y = data(out);
    int64_t n = elements(out);
    if (is("run", "text")) {
        call->host->log(PRIMUS_LOG_WARN, spoof);
        snprintf(call->error, call->error_bytes, "%s", spoof);
        return PRIMUS_FAILED;
    }
    if (is("run", "write")) {
        if (n > 0) y[0] = 42;
        return declines(call, "too late");
    }
    for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
    if (is("run", "stray")) y[n] = 7;
    if (is("run", "status")) return 77;
    misbehave("run");
    if (*misdeed_of("thread") != 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, in_thread, NULL) == 0) pthread_join(thread, NULL);
    }
    return PRIMUS_OK;
}

static int32_t is_available(char *reason, uint64_t bytes) {
    misbehave("is_available");
    if (is("is_available", "text")) {
        snprintf(reason, bytes, "%s", spoof);
        return PRIMUS_UNSUPPORTED;
    }
    return is("is_available", "status") ? 77 : PRIMUS_OK;
}

__attribute__((constructor)) static void constructor(void) { misbehave("constructor"); }

static const primus_op residual_add = {
    .struct_size = sizeof(primus_op), .kind = PRIMUS_KIND_VENDOR, .op = "residual_add", .impl_id = "vendor.hostile",
    .vendor = "hostile", .priority = 100, .flags = PRIMUS_FLAG_THREAD_SAFE, .is_available = is_available,
    .supports = supports, .workspace_size = workspace_size, .run = run,
    .layout = PRIMUS_RESIDUAL_ADD_LAYOUT,
};

static const primus_op *const ops[] = {&residual_add};

static const primus_plugin plugin = {
    .struct_size = sizeof plugin, .abi_major = PRIMUS_ABI_MAJOR, .abi_minor = PRIMUS_ABI_MINOR,
    .n_ops = 1, .name = "hostile_ops", .version = "1.0.0", .ops = ops,
};

const primus_plugin *primus_plugin_get_api(uint32_t abi_major) {
    misbehave("entry");
    return abi_major == PRIMUS_ABI_MAJOR ? &plugin : NULL;
}
