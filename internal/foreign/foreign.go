// Package foreign lists the ops of TransformerEngine-FL that are not ops here, because they set up,
// query or lay out memory for the libraries of one vendor. Policies written for
// TransformerEngine-FL may name them.
package foreign

import (
	"slices"
	"strings"
)

// Op is an op of TransformerEngine-FL that is not one here.
type Op struct {
	Name    string `json:"op"`      // as TransformerEngine-FL spells it
	Purpose string `json:"purpose"` // what TransformerEngine-FL calls it for
	Instead string `json:"instead"` // what takes its place here
}

const (
	ownScales  = "an impl that wants its scales in another order reorders them itself"
	noOverlap  = "nothing: communication does not run at the same time as a matrix product"
	noNVSHMEM  = "nothing: ranks share no memory"
	versions   = "primus plugins list shows the versions of plugins, and primus ops list which libraries are missing"
	rankedKind = "primus ops explain fused_attn_fwd shows the ranked impls and the calls that each supports"
	inCall     = "a plugin finds the addresses of all operands in its call"
)

// Ops returns the ops, sorted by name.
func Ops() []Op {
	return []Op{
		{"bulk_overlap_ag_with_external_gemm", "start an all-gather that runs at the same time as a matrix product", noOverlap},
		{"convert_host_pointers_to_tensor", "copy the addresses of tensors to the device", inCall},
		{"create_comm_overlap", "make a communicator for overlapping communication with matrix products", noOverlap},
		{"create_comm_overlap_helper", "set up the communicators that overlap", noOverlap},
		{"create_comm_overlap_p2p", "make a communicator that overlaps and sends from rank to rank", noOverlap},
		{"create_fp8_tensor_meta", "make the state of delayed scaling", "the program makes the tensors of the state; fused_amax_and_scale_update_after_reduction updates them"},
		{"create_nvshmem_tensor", "make a tensor in memory that all ranks can reach", noNVSHMEM},
		{"get_attention_backend", "choose between flash, fused and unfused attention", rankedKind},
		{"get_cublasLt_version", "ask for the version of cuBLASLt", versions},
		{"get_cudnn_version", "ask for the version of cuDNN", versions},
		{"get_device_pointer_for_data_and_scales", "copy the addresses of data and scales to the device", inCall},
		{"get_flash_attention_class", "get the class that computes flash attention", "fused_attn_fwd and fused_attn_bwd compute attention"},
		{"get_fused_attn_backend", "ask which kernel of fused attention serves a call", rankedKind},
		{"get_num_cublas_streams", "ask how many streams a grouped matrix product uses", "an impl of te_general_grouped_gemm decides how it runs"},
		{"grouped_swizzle_for_gemm", "reorder the scales of a group of tensors for cuBLASLt", ownScales},
		{"init_nvshmem_backend", "start NVSHMEM", noNVSHMEM},
		{"nvshmem_finalize", "stop NVSHMEM", noNVSHMEM},
		{"nvshmem_send_on_current_stream", "copy a tensor to another rank", noNVSHMEM},
		{"nvshmem_wait_on_current_stream", "wait for a tensor from another rank", noNVSHMEM},
		{"swizzle_scales_for_gemm_", "reorder the scales of a tensor for cuBLASLt", ownScales},
	}
}

// Find returns the op with a name, in any case.
func Find(name string) (Op, bool) {
	ops := Ops()
	i := slices.IndexFunc(ops, func(o Op) bool { return strings.EqualFold(o.Name, name) })
	if i < 0 {
		return Op{}, false
	}
	return ops[i], true
}

// String describes what the op is for, and what takes its place.
func (o Op) String() string {
	return o.Name + ": not dispatched here\nTransformerEngine-FL: " + o.Purpose + "\nhere: " + o.Instead
}
