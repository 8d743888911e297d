package activation

import "github.com/primus-fl/primus/opregistry"

// Ops returns the handles of the ops of this package.
func Ops() []opregistry.Handle {
	return []opregistry.Handle{
		SwiGLU, DSwiGLU,
		GELU, QGELU, ReLU, SReLU, SiLU,
		GEGLU, GLU, QGEGLU, ReGLU, SReGLU, ClampedSwiGLU,
		DGELU, DQGELU, DReLU, DSReLU, DSiLU,
		DGEGLU, DGLU, DQGEGLU, DReGLU, DSReGLU, ClampedDSwiGLU,
		DBiasDGELU, DBiasDSiLU, DBiasDReLU, DBiasDQGELU, DBiasDSReLU,
	}
}
