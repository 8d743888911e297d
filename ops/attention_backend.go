package ops

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// The ops of this file compute nothing: they ask a vendor's library which of its kernels would
// serve a call of attention. They are declared so that a vendor can register an impl and a policy
// can name them. The answer is written to Result.

// FusedAttnBackend is a kernel of fused attention.
type FusedAttnBackend int

// The kernels, with TransformerEngine's numbers.
const (
	NoFusedAttn           FusedAttnBackend = -1
	FusedAttnF16Max512    FusedAttnBackend = 0 // up to 512 positions
	FusedAttnF16Arbitrary FusedAttnBackend = 1
	FusedAttnFP8          FusedAttnBackend = 2
)

// GetFusedAttnBackendArgs are the arguments of GetFusedAttnBackend.
type GetFusedAttnBackendArgs struct {
	IsTraining                               bool
	QDType, KVDType                          tensor.DType
	QKVFormat                                attention.QKVFormat
	BiasType                                 attention.BiasType
	AttnMaskType                             attention.MaskType
	SoftmaxType                              attention.SoftmaxType
	PDropout                                 float32
	NumAttnHeads, NumGQAGroups               int
	MaxSeqlenQ, MaxSeqlenKV                  int
	HeadDimQK, HeadDimV                      int
	WindowSize                               attention.WindowSize
	ReturnMaxLogit, CUDAGraph, Deterministic bool
	Result                                   *FusedAttnBackend
}

// GetFusedAttnBackend asks which kernel of fused attention serves a call.
var GetFusedAttnBackend = opregistry.NewOp("get_fused_attn_backend", opregistry.Schema[GetFusedAttnBackendArgs]{
	Doc: "which kernel of fused attention serves a call",
	Validate: func(a GetFusedAttnBackendArgs) error {
		c := check.Call{Op: "get_fused_attn_backend"}
		if a.Result == nil {
			c.Fail("result", "where the answer goes", "nil")
		}
		return c.Err
	},
	Operands: func(GetFusedAttnBackendArgs) []opregistry.Operand { return nil },
})

// AttentionBackends lists the kernels that a library has for a call of attention.
type AttentionBackends struct {
	UseFlash     bool
	FlashVersion string
	UseFused     bool
	FusedBackend FusedAttnBackend
	UseUnfused   bool
	Available    [3]bool // flash, fused, unfused
}

// GetAttentionBackendArgs are the arguments of GetAttentionBackend.
type GetAttentionBackendArgs struct {
	AttentionParams GetFusedAttnBackendArgs // its Result is not used
	Result          *AttentionBackends
}

// GetAttentionBackend asks which of flash, fused and unfused attention to use.
var GetAttentionBackend = opregistry.NewOp("get_attention_backend", opregistry.Schema[GetAttentionBackendArgs]{
	Doc: "which of flash, fused and unfused attention to use",
	Validate: func(a GetAttentionBackendArgs) error {
		c := check.Call{Op: "get_attention_backend"}
		if a.Result == nil {
			c.Fail("result", "where the answer goes", "nil")
		}
		return c.Err
	},
	Operands: func(GetAttentionBackendArgs) []opregistry.Operand { return nil },
})
