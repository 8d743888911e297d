package activation

import "github.com/primus-fl/primus/opregistry"

// Ops returns the handles of the ops of this package.
func Ops() []opregistry.Handle {
	return []opregistry.Handle{
		SwiGLU, DSwiGLU,
		GELU, GELUErf, QGELU, ReLU, SReLU, SiLU,
		GEGLU, GEGLUErf, GLU, QGEGLU, ReGLU, SReGLU, ClampedSwiGLU,
		DGELU, DGELUErf, DQGELU, DReLU, DSReLU, DSiLU,
		DGEGLU, DGEGLUErf, DGLU, DQGEGLU, DReGLU, DSReGLU, ClampedDSwiGLU,
		Softcap, DSoftcap,
		DBiasDGELU, DBiasDGELUErf, DBiasDSiLU, DBiasDReLU, DBiasDQGELU, DBiasDSReLU,
	}
}
