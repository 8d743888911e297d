/* A vendor's rmsnorm_fwd without rmsnorm_bwd, which no run can use. */
#define primus_plugin_get_api whole_plugin
#include "../../../../../../examples/outtree_c/acme.c"
#undef primus_plugin_get_api

const primus_plugin *primus_plugin_get_api(uint32_t abi_major) {
    static primus_plugin plugin;
    plugin = acme;
    plugin.n_ops = 1;
    return abi_major == PRIMUS_ABI_MAJOR ? &plugin : NULL;
}
