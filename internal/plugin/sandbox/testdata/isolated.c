/* An op that does what its argument 1 says. */
#include "primus_op_plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int64_t elements(const primus_tensor *t) {
    int64_t n = 1;
    for (int i = 0; i < t->ndim; i++) n *= t->shape[i];
    return n;
}

static int32_t run(const primus_call *call) {
    const primus_tensor *out = call->args[0].value.tensor;
    float *y = out->data;
    for (int64_t i = 0; i < elements(out); i++) y[i] += 1;
    switch (call->args[1].value.i) {
    case 1:
        snprintf(call->error, call->error_bytes, "not today");
        return PRIMUS_UNSUPPORTED;
    case 2:
        snprintf(call->error, call->error_bytes, "no memory");
        return PRIMUS_FAILED;
    case 3:
        *(volatile int *)8 = 1;
        break;
    case 4:
        for (;;) pause();
    case 5:
        fprintf(stderr, "licence lost\n");
        exit(9);
    case 6:
        call->host->log(PRIMUS_LOG_WARN, "logged");
        printf("printed\n");
        fflush(stdout);
        fprintf(stderr, "half");
        fprintf(stderr, " a line\n");
        break;
    }
    return PRIMUS_OK;
}

static const primus_op op = {
    .struct_size = sizeof(primus_op), .kind = PRIMUS_KIND_VENDOR, .op = "probe", .impl_id = "vendor.acme", .vendor = "acme",
    .priority = 100, .flags = PRIMUS_FLAG_THREAD_SAFE, .run = run, .layout = PROBE,
};
static const primus_op *const all[] = {&op};
static const primus_plugin plugin = {
    .struct_size = sizeof(primus_plugin), .abi_major = PRIMUS_ABI_MAJOR, .abi_minor = PRIMUS_ABI_MINOR,
    .n_ops = 1, .name = "acme_ops", .version = "1.2.0", .ops = all,
};

const primus_plugin *primus_plugin_get_api(uint32_t abi_major) { return abi_major == PRIMUS_ABI_MAJOR ? &plugin : NULL; }
