/* Ops for a device whose memory objects are addresses and whose handles are numbers. */
#include "primus_op_plugin.h"

#include <stdio.h>
#include <string.h>

/* Types of devices of the op acme.far. */
#ifndef DEVICES
#define DEVICES {12}
#endif
#ifndef N_DEVICES
#define N_DEVICES 1
#endif

static float *first(const primus_call *call) {
    const primus_tensor *t = call->args[0].value.tensor;
    return t->data == NULL ? NULL : (float *)((char *)t->data + t->byte_offset);
}

/* Reports the handles. */
static int32_t handles(const primus_call *call) {
    float *out = first(call);
    out[0] = (float)call->args[0].value.tensor->device.device_type;
    out[1] = (float)(uintptr_t)call->context;
    out[2] = (float)(uintptr_t)call->device;
    out[3] = (float)(uintptr_t)call->stream;
    return PRIMUS_OK;
}

/* Declines without handles, and when argument 1 asks for it. */
static int32_t supports(const primus_call *call) {
    if (call->context == NULL || call->args[1].value.i != 0) {
        snprintf(call->error, call->error_bytes, "no handles");
        return PRIMUS_UNSUPPORTED;
    }
    return PRIMUS_OK;
}

static uint64_t workspace_size(const primus_call *call) { return (uint64_t)call->args[1].value.i; }

/* Fills its workspace and reports its size. */
static int32_t workspace(const primus_call *call) {
    if (call->workspace_bytes > 0) memset((char *)call->workspace + call->workspace_offset, 0xff, call->workspace_bytes);
    first(call)[0] = (float)call->workspace_bytes;
    return PRIMUS_OK;
}

static int32_t fails(const primus_call *call) {
    snprintf(call->error, call->error_bytes, "the queue is full");
    return PRIMUS_FAILED;
}

static int32_t nothing(const primus_call *call) { return call->args[1].sort == PRIMUS_ARG_ABSENT ? PRIMUS_FAILED : PRIMUS_OK; }

static const int32_t far[] = DEVICES, both[] = {PRIMUS_DEVICE_CPU, 12}, cpu[] = {PRIMUS_DEVICE_CPU};

#define OP(var, name, id, lay, devices, n, ...) \
    static const primus_op var = {.struct_size = sizeof(primus_op), .kind = PRIMUS_KIND_VENDOR, .op = name, .impl_id = id, .vendor = "acme", .priority = 100, \
        .layout = lay, .device_types = devices, .n_device_types = n, __VA_ARGS__}

OP(op_far, "probe", "acme.far", PROBE, far, N_DEVICES, .supports = supports, .run = handles);
OP(op_both, "probe", "acme.both", PROBE, both, 2, .run = handles);
OP(op_cpu, "probe", "acme.cpu", PROBE, cpu, 1, .run = handles);
OP(op_workspace, "probe", "acme.workspace", PROBE, both, 2, .workspace_size = workspace_size, .run = workspace);
OP(op_fails, "probe", "acme.fails", PROBE, far, N_DEVICES, .run = fails);
OP(op_many, "everything", "acme.many", EVERYTHING, far, N_DEVICES, .run = nothing);

/* As a library that was built against version 1.0 has it; what lies after it is not part of it. */
static const primus_op op_old = {.struct_size = offsetof(primus_op, device_types), .kind = PRIMUS_KIND_VENDOR, .op = "probe", .impl_id = "acme.old", .vendor = "acme",
    .priority = 100, .layout = PROBE, .run = handles, .device_types = far, .n_device_types = 1000};

static const primus_op *const all[] = {&op_far, &op_both, &op_cpu, &op_workspace, &op_fails, &op_many, &op_old};

static const primus_plugin plugin = {
    .struct_size = sizeof plugin, .abi_major = PRIMUS_ABI_MAJOR, .abi_minor = PRIMUS_ABI_MINOR,
    .n_ops = sizeof all / sizeof *all, .name = "acme_far", .version = "1.2.0", .ops = all,
};

const primus_plugin *primus_plugin_get_api(uint32_t abi_major) { return abi_major == PRIMUS_ABI_MAJOR ? &plugin : NULL; }
