// A oneDNN that has a product and no primitives.

struct version { int major, minor, patch; };

const struct version *dnnl_version(void) {
	static const struct version v = {MAJOR, 1, 0};
	return &v;
}

int dnnl_sgemm(void) { return 3; }
