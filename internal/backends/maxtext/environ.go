package maxtext

import (
	"cmp"
	"strings"

	"github.com/primus-fl/primus/internal/backends/python"
	"github.com/primus-fl/primus/runtime/backend"
)

// EnvDefaults returns the variables for XLA and AMD GPUs that MaxText runs well with.
func (adapter) EnvDefaults(env *backend.Environ) []backend.EnvDefault {
	defaults := []backend.EnvDefault{{Name: "XLA_FLAGS", Value: xlaFlags(env), MergeFlags: true}}
	for _, v := range [][2]string{
		{"XLA_PYTHON_CLIENT_MEM_FRACTION", ".97"},
		{"TF_CPP_MIN_LOG_LEVEL", "2"},
		{"NVTE_ALLOW_NONDETERMINISTIC_ALGO", "1"},
		{"NVTE_USE_HIPBLASLT", "1"},
		{"NVTE_FUSED_ATTN", "1"},
		{"NVTE_FUSED_ATTN_CK", "1"},
		{"NVTE_FUSED_ATTN_AOTRITON", "0"},
		{"NVTE_CK_USES_BWD_V3", "1"},
		{"NVTE_CK_USES_FWD_V3", "1"},
		{"NVTE_CK_IS_V3_ATOMIC_FP32", "0"},
		{"NVTE_CK_HOW_V3_BF16_CVT", "2"},
		{"GPU_MAX_HW_QUEUES", "2"},
		{"HIP_FORCE_DEV_KERNARG", "1"},
		{"HSA_FORCE_FINE_GRAIN_PCIE", "1"},
	} {
		defaults = append(defaults, backend.EnvDefault{Name: v[0], Value: v[1]})
	}
	defaults = append(defaults,
		backend.EnvDefault{Name: "RCCL_WARP_SPEED_AUTO", Value: "0", Arch: backend.GFX950},
		backend.EnvDefault{Name: "HSA_NO_SCRATCH_RECLAIM", Value: "1", Arch: backend.GFX942},
	)
	return append(defaults, python.Coordinator(env)...)
}

// xlaFlags returns the flags of XLA that this backend sets.
func xlaFlags(env *backend.Environ) string {
	flags := []string{
		"--xla_gpu_memory_limit_slop_factor=95",
		"--xla_gpu_reduce_scatter_combine_threshold_bytes=8589934592",
		"--xla_gpu_enable_command_buffer=''",
		"--xla_gpu_enable_latency_hiding_scheduler=true",
		"--xla_gpu_all_gather_combine_threshold_bytes=8589934592",
		"--xla_gpu_enable_triton_gemm=false",
		"--xla_gpu_enable_cublaslt=true",
		"--xla_gpu_autotune_level=" + or(env, "XLA_GPU_AUTOTUNE_LEVEL", "4"),
		"--xla_gpu_enable_all_gather_combine_by_dim=false",
	}
	if env.Get("DUMP_HLO", "") == "1" {
		flags = append(flags, "--xla_dump_to="+or(env, "DUMP_HLO_DIR", "output/xla_dump_hlo"))
	}
	return strings.Join(flags, " ")
}

// or returns a variable, or def when it is not set or empty.
func or(env *backend.Environ, name, def string) string { return cmp.Or(env.Get(name, ""), def) }
