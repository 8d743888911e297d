package patches

import (
	"fmt"

	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/patch"
)

// All returns the patches.
func All() []patch.Patch {
	return []patch.Patch{
		oldNames(), deterministicEnvironment(), layerwiseLRDecay(), zLoss(), gradientNoise(),
	}
}

// oldArgNames are the names of parameters in older versions of Megatron.
var oldArgNames = [][2]string{
	{"batch_size", "micro_batch_size"},
	{"data_path", "train_data_path"},
	{"layernorm_epsilon", "norm_epsilon"},
}

// acceptOldNames enables the patch that accepts them.
const acceptOldNames = "accept_old_names"

func oldNames() patch.Patch {
	p := patch.Patch{
		ID:          "native.args.old_names",
		Description: "Accept the names that Megatron gave to parameters in older versions",
		Backend:     native.Framework, Phase: patch.BuildArgs, Priority: patch.At(10), Style: patch.ArgRewrite,
		Keys: []string{acceptOldNames},
		Condition: patch.Condition{
			Text: "batch_size, data_path or layernorm_epsilon is given and " + acceptOldNames + " is not false",
			Holds: func(c *patch.Context) (bool, error) {
				accept, err := patch.Param(c, acceptOldNames, true)
				if err != nil || !accept {
					return false, err
				}
				for _, name := range oldArgNames {
					if _, given := c.Value(name[0]); given {
						return true, nil
					}
				}
				return false, nil
			},
		},
		Apply: func(c *patch.Context) error {
			for _, name := range oldArgNames {
				if v, given := c.Value(name[0]); given {
					if err := c.SetArg(name[1], v); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
	for _, name := range oldArgNames {
		p.Keys = append(p.Keys, name[0])
		p.Symbols = append(p.Symbols, "arg:"+name[1])
	}
	return p
}

// deterministicVariables make vendor libraries choose algorithms that always give the same bits, as
// the kernels of this program do.
var deterministicVariables = [][2]string{
	{"CUBLAS_WORKSPACE_CONFIG", ":4096:8"},
	{"MKL_CBWR", "COMPATIBLE"},
	{"NCCL_ALGO", "Ring"},
	{"NVTE_ALLOW_NONDETERMINISTIC_ALGO", "0"},
}

func deterministicEnvironment() patch.Patch {
	p := patch.Patch{
		ID:          "native.deterministic_environment",
		Description: "Tell libraries of vendors to compute the same bits every time",
		Backend:     native.Framework, Phase: patch.Setup, Style: patch.Environment,
		Keys: []string{"deterministic_mode"}, Condition: patch.When("deterministic_mode"),
		Apply: func(c *patch.Context) error {
			for _, v := range deterministicVariables {
				if given, set := c.Environ.Lookup(v[0]); set && given != v[1] {
					c.Log.Warn(fmt.Sprintf("deterministic_mode replaces %s=%s by %s", v[0], given, v[1]))
				}
				if err := c.Setenv(v[0], v[1]); err != nil {
					return err
				}
			}
			return nil
		},
	}
	for _, v := range deterministicVariables {
		p.Symbols = append(p.Symbols, "env:"+v[0])
	}
	return p
}
