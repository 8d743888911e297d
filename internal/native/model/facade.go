package model

import (
	"github.com/primus-fl/primus/internal/native/architecture"
)

// What a model is made of, for those who use one.
type (
	// Config are the parameters of the architecture.
	Config = architecture.Config
	// Experts are those of a mixture of experts.
	Experts = architecture.Experts
	// RopeScaling are those of rotary positions.
	RopeScaling = architecture.RopeScaling
	// Yarn are those of rotary positions of type yarn.
	Yarn = architecture.Yarn
	// LongRopeFactors are those of type longrope.
	LongRopeFactors = architecture.LongRopeFactors
	// LoRA are those of adapters.
	LoRA = architecture.LoRA
	// Normalization is the kind of norm.
	Normalization = architecture.Normalization
	// PositionEmbedding is the way in which positions enter.
	PositionEmbedding = architecture.PositionEmbedding
	// NormPlacement says where norms are.
	NormPlacement = architecture.NormPlacement
	// Activation is the function inside the MLP.
	Activation = architecture.Activation
)

// The values of the parameters that are names.
const (
	RMSNorm         = architecture.RMSNorm
	LayerNorm       = architecture.LayerNorm
	PreNorm         = architecture.PreNorm
	PostNorm        = architecture.PostNorm
	BothNorm        = architecture.BothNorm
	Rope            = architecture.Rope
	YaRN            = architecture.YaRN
	DynamicRope     = architecture.DynamicRope
	LongRope        = architecture.LongRope
	LearnedAbsolute = architecture.LearnedAbsolute
	SwiGLU          = architecture.SwiGLU
	GeGLU           = architecture.GeGLU
	GeGLUErf        = architecture.GeGLUErf
	GELU            = architecture.GELU
	GELUErf         = architecture.GELUErf
)
