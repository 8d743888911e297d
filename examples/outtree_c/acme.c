/*
 * Ops of the vendor acme: root-mean-square normalisation of rows and its gradient,
 * for contiguous tensors of float and bfloat16. Sums are doubles.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "primus_op_args.h"
#include "primus_op_plugin.h"

#define VENDOR "acme"
#define IMPL_ID "vendor.acme"

/* Declines a call before anything was written; another implementation serves it. */
static int32_t declined(const primus_call *call, const char *why) {
    snprintf(call->error, call->error_bytes, "%s", why);
    return PRIMUS_UNSUPPORTED;
}

static const primus_tensor *tensor(const primus_call *call, uint32_t index) { return call->args[index].value.tensor; }

/* The first element. */
static void *data(const primus_call *call, uint32_t index) {
    const primus_tensor *t = tensor(call, index);
    return t->data == NULL ? NULL : (char *)t->data + t->byte_offset;
}

static int is_float(const primus_tensor *t) { return t->dtype.code == 2 && t->dtype.bits == 32; }

static int is_bfloat(const primus_tensor *t) { return t->dtype.code == 4 && t->dtype.bits == 16; }

static int is_contiguous(const primus_tensor *t) {
    int64_t step = 1;
    for (int32_t i = t->ndim - 1; i >= 0; i--) {
        if (t->shape[i] != 1 && t->strides[i] != step) return 0;
        step *= t->shape[i];
    }
    return 1;
}

/* The last axis, and the product of those before it. */
static int64_t columns(const primus_tensor *t) { return t->shape[t->ndim - 1]; }

static int64_t rows(const primus_tensor *t) {
    int64_t n = 1;
    for (int32_t i = 0; i < t->ndim - 1; i++) n *= t->shape[i];
    return n;
}

/* Declines unless these operands lie on the CPU, are contiguous and share a dtype that is served. */
static int32_t check(const primus_call *call, const uint32_t *operands, size_t n) {
    const primus_tensor *first = tensor(call, operands[0]);
    if (!is_float(first) && !is_bfloat(first)) return declined(call, "only float and bfloat16 are served");
    for (size_t i = 0; i < n; i++) {
        const primus_tensor *t = tensor(call, operands[i]);
        if (t->device.device_type != 1) return declined(call, "only tensors in the memory of the CPU are served");
        if (!is_contiguous(t)) return declined(call, "only contiguous tensors are served");
        if (t->dtype.code != first->dtype.code || t->dtype.bits != first->dtype.bits) return declined(call, "operands of different dtypes are not served");
    }
    return PRIMUS_OK;
}

/* An element; bfloat is a constant wherever these are called, so that each kernel exists once a dtype. */
static inline double load(const void *p, int64_t i, int bfloat) {
    if (!bfloat) return ((const float *)p)[i];
    uint32_t bits = (uint32_t)((const uint16_t *)p)[i] << 16;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline void store(void *p, int64_t i, double value, int bfloat) {
    float v = (float)value;
    if (!bfloat) {
        ((float *)p)[i] = v;
        return;
    }
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    /* To the nearest, ties to even; a NaN stays one. */
    bits = v != v ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u);
    ((uint16_t *)p)[i] = (uint16_t)(bits >> 16);
}

static inline void forward(const primus_call *call, int bfloat) {
    const primus_tensor *input = tensor(call, PRIMUS_RMSNORM_FWD_INPUT);
    const char *x = data(call, PRIMUS_RMSNORM_FWD_INPUT);
    const void *weight = data(call, PRIMUS_RMSNORM_FWD_WEIGHT);
    char *y = data(call, PRIMUS_RMSNORM_FWD_OUTPUT);
    float *rsigma = data(call, PRIMUS_RMSNORM_FWD_RSIGMA);
    const double eps = call->args[PRIMUS_RMSNORM_FWD_EPS].value.f;
    const double shift = (double)call->args[PRIMUS_RMSNORM_FWD_ZERO_CENTERED_GAMMA].value.i;
    const int64_t cols = columns(input), n = rows(input);
    const int64_t step = cols * (bfloat ? 2 : 4);

    for (int64_t r = 0; r < n; r++, x += step, y += step) {
        double sum = 0;
        for (int64_t i = 0; i < cols; i++) {
            const double v = load(x, i, bfloat);
            sum += v * v;
        }
        const double scale = 1 / sqrt(sum / (double)cols + eps);
        rsigma[r] = (float)scale;
        for (int64_t i = 0; i < cols; i++) store(y, i, load(x, i, bfloat) * scale * (load(weight, i, bfloat) + shift), bfloat);
    }
}

static inline void backward(const primus_call *call, int bfloat) {
    const primus_tensor *input = tensor(call, PRIMUS_RMSNORM_BWD_X);
    const char *x = data(call, PRIMUS_RMSNORM_BWD_X);
    const char *dz = data(call, PRIMUS_RMSNORM_BWD_DZ);
    const void *gamma = data(call, PRIMUS_RMSNORM_BWD_GAMMA);
    const float *rsigma = data(call, PRIMUS_RMSNORM_BWD_RSIGMA);
    char *dx = data(call, PRIMUS_RMSNORM_BWD_DX);
    void *dgamma = data(call, PRIMUS_RMSNORM_BWD_DGAMMA);
    double *sums = call->workspace;
    const double shift = (double)call->args[PRIMUS_RMSNORM_BWD_ZERO_CENTERED_GAMMA].value.i;
    const int64_t cols = columns(input), n = rows(input);
    const int64_t step = cols * (bfloat ? 2 : 4);

    memset(sums, 0, (size_t)cols * sizeof *sums);
    for (int64_t r = 0; r < n; r++, x += step, dz += step, dx += step) {
        const double scale = rsigma[r];
        double mean = 0;
        for (int64_t i = 0; i < cols; i++) {
            const double hat = load(x, i, bfloat) * scale, g = load(dz, i, bfloat);
            mean += g * (load(gamma, i, bfloat) + shift) * hat;
            sums[i] += g * hat;
        }
        mean /= (double)cols;
        for (int64_t i = 0; i < cols; i++) {
            const double hat = load(x, i, bfloat) * scale, g = load(dz, i, bfloat) * (load(gamma, i, bfloat) + shift);
            store(dx, i, scale * (g - hat * mean), bfloat);
        }
    }
    for (int64_t i = 0; i < cols; i++) store(dgamma, i, sums[i], bfloat);
}

static int32_t forward_supports(const primus_call *call) {
    static const uint32_t operands[] = {PRIMUS_RMSNORM_FWD_INPUT, PRIMUS_RMSNORM_FWD_WEIGHT, PRIMUS_RMSNORM_FWD_OUTPUT};
    if (!is_contiguous(tensor(call, PRIMUS_RMSNORM_FWD_RSIGMA))) return declined(call, "only a contiguous rsigma is served");
    return check(call, operands, sizeof operands / sizeof *operands);
}

static int32_t forward_run(const primus_call *call) {
    if (is_bfloat(tensor(call, PRIMUS_RMSNORM_FWD_INPUT)))
        forward(call, 1);
    else
        forward(call, 0);
    return PRIMUS_OK;
}

static int32_t backward_supports(const primus_call *call) {
    static const uint32_t operands[] = {PRIMUS_RMSNORM_BWD_X, PRIMUS_RMSNORM_BWD_DZ, PRIMUS_RMSNORM_BWD_GAMMA, PRIMUS_RMSNORM_BWD_DX, PRIMUS_RMSNORM_BWD_DGAMMA};
    if (!is_contiguous(tensor(call, PRIMUS_RMSNORM_BWD_RSIGMA))) return declined(call, "only a contiguous rsigma is served");
    return check(call, operands, sizeof operands / sizeof *operands);
}

static uint64_t backward_workspace(const primus_call *call) {
    return (uint64_t)columns(tensor(call, PRIMUS_RMSNORM_BWD_X)) * sizeof(double);
}

static int32_t backward_run(const primus_call *call) {
    if (is_bfloat(tensor(call, PRIMUS_RMSNORM_BWD_X)))
        backward(call, 1);
    else
        backward(call, 0);
    return PRIMUS_OK;
}

static const primus_op rmsnorm_fwd = {
    .struct_size = sizeof(primus_op),
    .kind = PRIMUS_KIND_VENDOR,
    .op = "rmsnorm_fwd",
    .impl_id = IMPL_ID,
    .vendor = VENDOR,
    .priority = 100,
    .flags = PRIMUS_FLAG_THREAD_SAFE | PRIMUS_FLAG_DETERMINISTIC,
    .supports = forward_supports,
    .run = forward_run,
    .layout = PRIMUS_RMSNORM_FWD_LAYOUT,
};

static const primus_op rmsnorm_bwd = {
    .struct_size = sizeof(primus_op),
    .kind = PRIMUS_KIND_VENDOR,
    .op = "rmsnorm_bwd",
    .impl_id = IMPL_ID,
    .vendor = VENDOR,
    .priority = 100,
    .flags = PRIMUS_FLAG_THREAD_SAFE | PRIMUS_FLAG_DETERMINISTIC,
    .supports = backward_supports,
    .workspace_size = backward_workspace,
    .run = backward_run,
    .layout = PRIMUS_RMSNORM_BWD_LAYOUT,
};

static const primus_op *const acme_ops[] = {&rmsnorm_fwd, &rmsnorm_bwd};

static const primus_plugin acme = {
    .struct_size = sizeof(primus_plugin),
    .abi_major = PRIMUS_ABI_MAJOR,
    .abi_minor = PRIMUS_ABI_MINOR,
    .n_ops = sizeof acme_ops / sizeof *acme_ops,
    .name = "acme_ops",
    .version = "1.0.0",
    .ops = acme_ops,
};

const primus_plugin *primus_plugin_get_api(uint32_t abi_major) { return abi_major == PRIMUS_ABI_MAJOR ? &acme : NULL; }
