/* A library of an earlier version: its ops store the number of their arguments in their result. */
#include "primus_op_plugin.h"
#include "primus_op_args.h"

static int32_t answer(const primus_call *call, uint32_t n_args, uint32_t output) {
    if (call->n_args != n_args || call->args[output].sort != PRIMUS_ARG_TENSOR) return PRIMUS_FAILED;
    const primus_tensor *t = call->args[output].value.tensor;
    int64_t elements = 1;
    for (int i = 0; i < t->ndim; i++) elements *= t->shape[i];
    if (elements == 0 || t->dtype.code != 2 || t->dtype.bits != 32) return PRIMUS_UNSUPPORTED;
    *(float *)((char *)t->data + t->byte_offset) = (float)n_args;
    return PRIMUS_OK;
}

#define OP(var, name, prefix, output) \
    static int32_t run_##var(const primus_call *call) { return answer(call, prefix##_N_ARGS, output); } \
    static const primus_op var = {.struct_size = sizeof(primus_op), .kind = PRIMUS_KIND_VENDOR, .op = name, .impl_id = "vendor.acme", \
        .vendor = "acme", .priority = 100, .run = run_##var, .layout = prefix##_LAYOUT};

OP(norm, "rmsnorm_fwd", PRIMUS_RMSNORM_FWD, PRIMUS_RMSNORM_FWD_OUTPUT)
#ifdef PRIMUS_COPY_TO_KV_CACHE_LAYOUT
OP(cache, "copy_to_kv_cache", PRIMUS_COPY_TO_KV_CACHE, PRIMUS_COPY_TO_KV_CACHE_KCACHE)
OP(rope, "fused_qkv_rope_forward", PRIMUS_FUSED_QKV_ROPE_FORWARD, 0)
OP(gone, "nvshmem_finalize", PRIMUS_NVSHMEM_FINALIZE, 0)
#endif
#ifdef PRIMUS_DEQUANTIZE_LAYOUT
OP(dequantize, "dequantize", PRIMUS_DEQUANTIZE, PRIMUS_DEQUANTIZE_OUTPUT)
#endif
#ifdef PRIMUS_ALL_REDUCE_LAYOUT
#ifdef REDUCE_LAYOUT /* another one than that of the header */
#undef PRIMUS_ALL_REDUCE_LAYOUT
#define PRIMUS_ALL_REDUCE_LAYOUT REDUCE_LAYOUT
#endif
OP(reduce, "all_reduce", PRIMUS_ALL_REDUCE, PRIMUS_ALL_REDUCE_OUTPUT)
#endif

static const primus_op *const all[] = {
    &norm,
#ifdef PRIMUS_COPY_TO_KV_CACHE_LAYOUT
    &cache, &rope, &gone,
#endif
#ifdef PRIMUS_DEQUANTIZE_LAYOUT
    &dequantize,
#endif
#ifdef PRIMUS_ALL_REDUCE_LAYOUT
    &reduce,
#endif
};

static const primus_plugin plugin = {
    .struct_size = sizeof plugin, .abi_major = PRIMUS_ABI_MAJOR, .abi_minor = PRIMUS_ABI_MINOR,
    .n_ops = sizeof all / sizeof *all, .name = "acme_ops", .version = "1.0.0", .ops = all,
};

const primus_plugin *primus_plugin_get_api(uint32_t abi_major) { return abi_major == PRIMUS_ABI_MAJOR ? &plugin : NULL; }
