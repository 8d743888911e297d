/*
 * Right kernels of several families, plainly written, in which make mutants makes mistakes. Each is
 * a function with the name of its op, for contiguous tensors of float and bfloat16 on the CPU.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "primus_op_args.h"
#include "primus_op_plugin.h"

static int32_t declined(const primus_call *call, const char *why) {
    snprintf(call->error, call->error_bytes, "%s", why);
    return PRIMUS_UNSUPPORTED;
}

static const primus_tensor *tensor(const primus_call *call, uint32_t index) { return call->args[index].value.tensor; }

static int given(const primus_call *call, uint32_t index) { return call->args[index].sort != PRIMUS_ARG_ABSENT; }

static int is_bfloat(const primus_tensor *t) { return t->dtype.code == 4; }

/* Whether the kernels can read a tensor. */
static int plain(const primus_tensor *t) {
    if (t->device.device_type != 1) return 0;
    if (!(t->dtype.code == 2 && t->dtype.bits == 32) && !(t->dtype.code == 4 && t->dtype.bits == 16)) return 0;
    int64_t step = 1;
    for (int32_t i = t->ndim - 1; i >= 0; i--) {
        if (t->shape[i] != 1 && t->strides[i] != step) return 0;
        step *= t->shape[i];
    }
    return 1;
}

static void *at(const primus_tensor *t) { return t->data == NULL ? NULL : (char *)t->data + t->byte_offset; }

static int64_t last(const primus_tensor *t) { return t->shape[t->ndim - 1]; }

static int64_t count(const primus_tensor *t) {
    int64_t n = 1;
    for (int32_t i = 0; i < t->ndim; i++) n *= t->shape[i];
    return n;
}

static double load(const primus_tensor *t, int64_t i) {
    if (!is_bfloat(t)) return ((const float *)at(t))[i];
    uint32_t bits = (uint32_t)((const uint16_t *)at(t))[i] << 16;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static float narrow(double value) {
    float v = (float)value;
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    bits = v != v ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u);
    bits &= 0xffff0000u;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static void store(const primus_tensor *t, int64_t i, double value) {
    if (!is_bfloat(t)) {
        ((float *)at(t))[i] = (float)value;
        return;
    }
    float v = narrow(value);
    memcpy((uint16_t *)at(t) + i, (char *)&v + 2, 2);
}

/* An expert of a token, and the place of the pair of both. */
typedef struct {
    int32_t expert;
    int64_t pair;
} choice;

static int by_expert(const void *a, const void *b) {
    const choice *one = a, *other = b;
    if (one->expert != other->expert) return one->expert < other->expert ? -1 : 1;
    return one->pair < other->pair ? -1 : one->pair > other->pair;
}

static inline void generic_gemm(const primus_call *call) {
    const primus_tensor *a = tensor(call, PRIMUS_GENERIC_GEMM_A), *b = tensor(call, PRIMUS_GENERIC_GEMM_B), *d = tensor(call, PRIMUS_GENERIC_GEMM_D);
    const int64_t turned_a = call->args[PRIMUS_GENERIC_GEMM_TRANS_A].value.i;
    const int64_t turned_b = call->args[PRIMUS_GENERIC_GEMM_TRANS_B].value.i;
    const int64_t adds = call->args[PRIMUS_GENERIC_GEMM_ACCUMULATE].value.i;
    const double alpha = given(call, PRIMUS_GENERIC_GEMM_ALPHA) ? call->args[PRIMUS_GENERIC_GEMM_ALPHA].value.f : 1;
    const double beta = given(call, PRIMUS_GENERIC_GEMM_BETA) ? call->args[PRIMUS_GENERIC_GEMM_BETA].value.f : 1;
    const int64_t cols = last(d), depth = turned_a ? last(a) : a->shape[0];
    const int64_t rows = cols > 0 ? count(d) / cols : 0;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < cols; c++) {
            double sum = 0;
            for (int64_t k = 0; k < depth; k++) {
                const double left = load(b, turned_b ? k * rows + r : r * depth + k);
                const double right = load(a, turned_a ? c * depth + k : k * cols + c);
                sum += left * right;
            }
            sum = alpha * sum;
            if (adds) sum += beta * load(d, r * cols + c);
            store(d, r * cols + c, sum);
        }
    }
}

static inline void silu(const primus_call *call) {
    const primus_tensor *x = tensor(call, PRIMUS_SILU_INPUT), *y = tensor(call, PRIMUS_SILU_OUTPUT);
    const int64_t n = count(x);
    for (int64_t i = 0; i < n; i++) {
        const double v = load(x, i);
        store(y, i, v / (1 + exp(-v)));
    }
}

static inline void swiglu(const primus_call *call) {
    const primus_tensor *x = tensor(call, PRIMUS_SWIGLU_INPUT), *y = tensor(call, PRIMUS_SWIGLU_OUTPUT);
    const int64_t cols = last(y), rows = cols > 0 ? count(y) / cols : 0;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < cols; c++) {
            const double gate = load(x, 2 * r * cols + c), up = load(x, (2 * r + 1) * cols + c);
            store(y, r * cols + c, gate / (1 + exp(-gate)) * up);
        }
    }
}

static inline void dsilu(const primus_call *call) {
    const primus_tensor *dy = tensor(call, PRIMUS_DSILU_GRAD), *x = tensor(call, PRIMUS_DSILU_FWD_INPUT), *dx = tensor(call, PRIMUS_DSILU_OUTPUT);
    const int64_t n = count(x);
    for (int64_t i = 0; i < n; i++) {
        const double v = load(x, i), s = 1 / (1 + exp(-v));
        store(dx, i, load(dy, i) * (s + v * s * (1 - s)));
    }
}

static inline void scaled_softmax_forward(const primus_call *call) {
    const primus_tensor *x = tensor(call, PRIMUS_SCALED_SOFTMAX_FORWARD_INPUT), *y = tensor(call, PRIMUS_SCALED_SOFTMAX_FORWARD_OUTPUT);
    const double factor = call->args[PRIMUS_SCALED_SOFTMAX_FORWARD_SCALE_FACTOR].value.f;
    const int64_t cols = last(x), rows = cols > 0 ? count(x) / cols : 0;
    for (int64_t r = 0; r < rows; r++) {
        double most = -INFINITY, sum = 0;
        for (int64_t c = 0; c < cols; c++) {
            const double v = factor * load(x, r * cols + c);
            if (v > most || v != v) most = v;
        }
        for (int64_t c = 0; c < cols; c++) sum += exp(factor * load(x, r * cols + c) - most);
        for (int64_t c = 0; c < cols; c++) store(y, r * cols + c, exp(factor * load(x, r * cols + c) - most) / sum);
    }
}

static inline void cross_entropy_fwd(const primus_call *call) {
    const primus_tensor *x = tensor(call, PRIMUS_CROSS_ENTROPY_FWD_LOGITS), *targets = tensor(call, PRIMUS_CROSS_ENTROPY_FWD_TARGETS);
    float *losses = at(tensor(call, PRIMUS_CROSS_ENTROPY_FWD_LOSSES)), *lse = at(tensor(call, PRIMUS_CROSS_ENTROPY_FWD_LSE));
    const int64_t ignored = call->args[PRIMUS_CROSS_ENTROPY_FWD_IGNORE_INDEX].value.i;
    const int64_t cols = last(x), rows = count(targets);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t target = targets->dtype.bits == 64 ? ((const int64_t *)at(targets))[r] : ((const int32_t *)at(targets))[r];
        double most = -INFINITY, sum = 0;
        for (int64_t c = 0; c < cols; c++) {
            const double v = load(x, r * cols + c);
            if (v > most || v != v) most = v;
        }
        for (int64_t c = 0; c < cols; c++) sum += exp(load(x, r * cols + c) - most);
        const double total = most + log(sum);
        lse[r] = (float)(isinf(most) ? most : total);
        if (target == ignored)
            losses[r] = 0;
        else
            losses[r] = isinf(lse[r]) ? NAN : (float)(total - load(x, r * cols + target));
    }
}

static inline void fused_rope_forward(const primus_call *call) {
    const primus_tensor *x = tensor(call, PRIMUS_FUSED_ROPE_FORWARD_INPUT), *y = tensor(call, PRIMUS_FUSED_ROPE_FORWARD_OUTPUT);
    const float *freqs = at(tensor(call, PRIMUS_FUSED_ROPE_FORWARD_FREQS));
    const int64_t wide = last(tensor(call, PRIMUS_FUSED_ROPE_FORWARD_FREQS)), half = wide / 2;
    const int64_t batched = call->args[PRIMUS_FUSED_ROPE_FORWARD_QKV_FORMAT].value.i == 2;
    const int64_t pairs = call->args[PRIMUS_FUSED_ROPE_FORWARD_INTERLEAVED].value.i;
    const int64_t heads = x->shape[2], width = x->shape[3], tokens = x->shape[0] * x->shape[1];
    for (int64_t t = 0; t < tokens; t++) {
        const int64_t position = batched ? t % x->shape[1] : t / x->shape[1];
        const int64_t batch = batched ? t / x->shape[1] : t % x->shape[1];
        int64_t begin = 0;
        if (given(call, PRIMUS_FUSED_ROPE_FORWARD_START_POSITIONS)) begin = ((const int32_t *)at(tensor(call, PRIMUS_FUSED_ROPE_FORWARD_START_POSITIONS)))[batch];
        for (int64_t h = 0; h < heads; h++) {
            const int64_t base = (t * heads + h) * width;
            const float *angles = freqs + (begin + position) * wide;
            for (int64_t i = 0; i < half; i++) {
                const int64_t one = pairs ? 2 * i : i, two = pairs ? 2 * i + 1 : i + half;
                const double v = load(x, base + one), w = load(x, base + two);
                store(y, base + one, v * cosf(angles[one]) - w * sinf(angles[one]));
                store(y, base + two, w * cosf(angles[two]) + v * sinf(angles[two]));
            }
            for (int64_t i = wide; i < width; i++) store(y, base + i, load(x, base + i));
        }
    }
}

static inline void multi_tensor_sgd(const primus_call *call) {
    const primus_tensor_lists *lists = call->args[PRIMUS_MULTI_TENSOR_SGD_TENSOR_LISTS].value.lists;
    const double decay = call->args[PRIMUS_MULTI_TENSOR_SGD_WD].value.f;
    const double momentum = call->args[PRIMUS_MULTI_TENSOR_SGD_MOMENTUM].value.f;
    const double dampening = call->args[PRIMUS_MULTI_TENSOR_SGD_DAMPENING].value.f;
    const double rate = call->args[PRIMUS_MULTI_TENSOR_SGD_LR].value.f;
    const double scale = call->args[PRIMUS_MULTI_TENSOR_SGD_SCALE].value.f;
    const int64_t nesterov = call->args[PRIMUS_MULTI_TENSOR_SGD_NESTEROV].value.i;
    const int64_t first = call->args[PRIMUS_MULTI_TENSOR_SGD_FIRST_RUN].value.i;
    const int64_t later = call->args[PRIMUS_MULTI_TENSOR_SGD_WD_AFTER_MOMENTUM].value.i;
    if (*(const int32_t *)at(tensor(call, PRIMUS_MULTI_TENSOR_SGD_NOOP_FLAG)) != 0) return;
    const int64_t tensors = (int64_t)lists->items[0].count;
    for (int64_t t = 0; t < tensors; t++) {
        const primus_tensor *g = &lists->items[0].items[t], *p = &lists->items[1].items[t], *mom = &lists->items[2].items[t];
        const int64_t n = count(g);
        for (int64_t i = 0; i < n; i++) {
            double w = load(p, i), d = load(g, i) * scale;
            if (!later) d = d + decay * w;
            if (momentum != 0) {
                const double m = first ? d : momentum * load(mom, i) + (1 - dampening) * d;
                store(mom, i, m);
                d = nesterov ? d + momentum * m : m;
            }
            if (later) d = d + decay * w;
            w = w - rate * d;
            store(p, i, w);
            if (lists->count == 4) store(&lists->items[3].items[t], i, w);
        }
    }
}

static inline void moe_permute_fwd(const primus_call *call) {
    const primus_tensor *x = tensor(call, PRIMUS_MOE_PERMUTE_FWD_INPUT), *y = tensor(call, PRIMUS_MOE_PERMUTE_FWD_OUTPUT);
    const primus_tensor *indices = tensor(call, PRIMUS_MOE_PERMUTE_FWD_INDICES);
    int32_t *map = at(tensor(call, PRIMUS_MOE_PERMUTE_FWD_ROW_ID_MAP));
    const int64_t tokens = x->shape[0], rows = y->shape[0], topk = last(indices), n = tokens * topk;
    const size_t bytes = (size_t)(last(x) * (x->dtype.bits / 8));
    choice *list = malloc(sizeof(choice) * (size_t)(n + 1));
    for (int64_t i = 0; i < n; i++) {
        list[i].expert = ((const int32_t *)at(indices))[i];
        list[i].pair = i;
    }
    qsort(list, (size_t)n, sizeof(choice), by_expert);
    for (int64_t i = 0; i < n; i++) {
        const int64_t token = list[i].pair / topk, k = list[i].pair % topk;
        const int64_t row = i < rows ? i : -1;
        map[k * tokens + token] = (int32_t)row;
        if (row < 0) continue;
        memcpy((char *)at(y) + (size_t)row * bytes, (const char *)at(x) + (size_t)token * bytes, bytes);
    }
    free(list);
}

/* end of the kernels */

static int32_t serves(const primus_call *call) {
    for (uint32_t i = 0; i < call->n_args; i++) {
        const primus_arg *arg = &call->args[i];
        if (arg->sort == PRIMUS_ARG_TENSOR && (arg->value.tensor->dtype.code == 2 || arg->value.tensor->dtype.code == 4) && !plain(arg->value.tensor)) return declined(call, "only contiguous tensors of float and bfloat16 are served");
        if (arg->sort == PRIMUS_ARG_TENSOR && arg->value.tensor->dtype.code == 0) {
            const primus_tensor *t = arg->value.tensor;
            int64_t step = 1;
            for (int32_t k = t->ndim - 1; k >= 0; k--) {
                if (t->shape[k] > 1 && t->strides[k] != step) return declined(call, "only contiguous integers are served");
                step *= t->shape[k];
            }
        }
        if (arg->sort != PRIMUS_ARG_LISTS) continue;
        for (uint64_t l = 0; l < arg->value.lists->count; l++)
            for (uint64_t k = 0; k < arg->value.lists->items[l].count; k++)
                if (!plain(&arg->value.lists->items[l].items[k])) return declined(call, "only contiguous tensors of float and bfloat16 are served");
    }
    return PRIMUS_OK;
}

static int32_t gemm_serves(const primus_call *call) {
    const primus_tensor *a = tensor(call, PRIMUS_GENERIC_GEMM_A);
    if (given(call, PRIMUS_GENERIC_GEMM_BIAS) || call->args[PRIMUS_GENERIC_GEMM_GELU].value.i || given(call, PRIMUS_GENERIC_GEMM_GELU_IN)) return declined(call, "products alone are served");
    if (a->ndim != 2) return declined(call, "only matrices are served");
    if (call->args[PRIMUS_GENERIC_GEMM_TRANS_B].value.i && tensor(call, PRIMUS_GENERIC_GEMM_B)->ndim != 2) return declined(call, "only matrices are transposed");
    return serves(call);
}

static int32_t rope_serves(const primus_call *call) {
    if (call->args[PRIMUS_FUSED_ROPE_FORWARD_QKV_FORMAT].value.i == 3 || call->args[PRIMUS_FUSED_ROPE_FORWARD_CP_SIZE].value.i > 1) return declined(call, "only whole sequences of one length are served");
    if (tensor(call, PRIMUS_FUSED_ROPE_FORWARD_FREQS)->dtype.bits != 32) return declined(call, "only float angles are served");
    return serves(call);
}

#define OP(NAME, CONSTANTS, SUPPORTS)                                    \
    static int32_t NAME##_run(const primus_call *call) {                 \
        NAME(call);                                                      \
        return PRIMUS_OK;                                                \
    }                                                                    \
    static const primus_op op_##NAME = {                                 \
        .struct_size = sizeof(primus_op),                                \
        .kind = PRIMUS_KIND_VENDOR,                                      \
        .op = #NAME,                                                     \
        .impl_id = "vendor.plain",                                       \
        .vendor = "plain",                                               \
        .flags = PRIMUS_FLAG_THREAD_SAFE | PRIMUS_FLAG_DETERMINISTIC,    \
        .supports = SUPPORTS,                                            \
        .run = NAME##_run,                                               \
        .layout = CONSTANTS##_LAYOUT,                                    \
    };

OP(generic_gemm, PRIMUS_GENERIC_GEMM, gemm_serves)
OP(silu, PRIMUS_SILU, serves)
OP(swiglu, PRIMUS_SWIGLU, serves)
OP(dsilu, PRIMUS_DSILU, serves)
OP(scaled_softmax_forward, PRIMUS_SCALED_SOFTMAX_FORWARD, serves)
OP(cross_entropy_fwd, PRIMUS_CROSS_ENTROPY_FWD, serves)
OP(fused_rope_forward, PRIMUS_FUSED_ROPE_FORWARD, rope_serves)
OP(multi_tensor_sgd, PRIMUS_MULTI_TENSOR_SGD, serves)
OP(moe_permute_fwd, PRIMUS_MOE_PERMUTE_FWD, serves)

static const primus_op *const ops[] = {&op_generic_gemm, &op_silu, &op_swiglu, &op_dsilu, &op_scaled_softmax_forward, &op_cross_entropy_fwd, &op_fused_rope_forward, &op_multi_tensor_sgd, &op_moe_permute_fwd};

static const primus_plugin plugin = {
    .struct_size = sizeof(primus_plugin),
    .abi_major = PRIMUS_ABI_MAJOR,
    .abi_minor = PRIMUS_ABI_MINOR,
    .n_ops = sizeof ops / sizeof *ops,
    .name = "plain_ops",
    .version = "1.0.0",
    .ops = ops,
};

const primus_plugin *primus_plugin_get_api(uint32_t abi_major) { return abi_major == PRIMUS_ABI_MAJOR ? &plugin : NULL; }
