/* A vendor's multi_tensor_scale for contiguous tensors of float32. */
#include "primus_op_args.h"
#include "primus_op_plugin.h"

#include <math.h>

static int64_t elements(const primus_tensor *t) {
    int64_t n = 1;
    for (int i = t->ndim - 1; i >= 0; i--) {
        if (t->shape[i] != 1 && t->strides[i] != n) return -1;
        n *= t->shape[i];
    }
    return n;
}

static int32_t supports(const primus_call *call) {
    const primus_tensor_lists *lists = call->args[PRIMUS_MULTI_TENSOR_SCALE_TENSOR_LISTS].value.lists;
    for (uint64_t l = 0; l < lists->count; l++) {
        for (uint64_t i = 0; i < lists->items[l].count; i++) {
            const primus_tensor *t = &lists->items[l].items[i];
            if (t->dtype.code != 2 || t->dtype.bits != 32 || elements(t) < 0) return PRIMUS_UNSUPPORTED;
        }
    }
    return PRIMUS_OK;
}

static int32_t run(const primus_call *call) {
    const primus_tensor_lists *lists = call->args[PRIMUS_MULTI_TENSOR_SCALE_TENSOR_LISTS].value.lists;
    const float scale = (float)call->args[PRIMUS_MULTI_TENSOR_SCALE_SCALE].value.f;
    int32_t *flag = call->args[PRIMUS_MULTI_TENSOR_SCALE_NOOP_FLAG].value.tensor->data;
    for (uint64_t t = 0; t < lists->items[0].count; t++) {
        const float *in = lists->items[0].items[t].data;
        float *out = lists->items[1].items[t].data;
        for (int64_t i = 0, n = elements(&lists->items[0].items[t]); i < n; i++) {
            if (!isfinite(in[i])) *flag = 1;
            out[i] = in[i] * scale;
        }
    }
    return PRIMUS_OK;
}

static const primus_op op = {
    .struct_size = sizeof(primus_op), .kind = PRIMUS_KIND_VENDOR, .op = "multi_tensor_scale", .impl_id = "vendor.acme", .vendor = "acme",
    .priority = 100, .flags = PRIMUS_FLAG_THREAD_SAFE, .supports = supports, .run = run, .layout = PRIMUS_MULTI_TENSOR_SCALE_LAYOUT,
};
static const primus_op *const all[] = {&op};
static const primus_plugin plugin = {
    .struct_size = sizeof(primus_plugin), .abi_major = PRIMUS_ABI_MAJOR, .abi_minor = PRIMUS_ABI_MINOR,
    .n_ops = 1, .name = "acme_ops", .version = "1.2.0", .ops = all,
};

const primus_plugin *primus_plugin_get_api(uint32_t abi_major) { return abi_major == PRIMUS_ABI_MAJOR ? &plugin : NULL; }
