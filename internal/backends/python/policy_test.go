package python_test

import (
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/backends/maxtext"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/train/traintest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The processes read the policy that this program has, from whichever source, back from their
// variables.
func TestPolicyReachesTheProcesses(t *testing.T) {
	p := oppolicy.Default()
	require.NoError(t, p.SetPrefer("vendor", "--prefer"))
	require.NoError(t, p.SetDeny("acme,other", "policy file"))
	require.NoError(t, p.SetPerOp("rmsnorm_fwd=vendor:cuda|reference;*gemm=flagos", "te_fl_per_op"))
	m := opmanager.New(opregistry.NewRegistry(), p, opmanager.Settings{})
	t.Cleanup(m.Close)
	l := &traintest.Lab{Factory: maxtext.Factory(), Params: "steps: 1\n", Manager: m, Env: map[string]string{"TE_FL_STRICT": "1"}}
	plan, err := l.Plan(t)
	require.NoError(t, err)
	vars := map[string]string{}
	for _, v := range plan.Launch.Env {
		if strings.HasPrefix(v.Name, "TE_FL_") {
			vars[v.Name] = v.Value
			assert.Contains(t, v.Source, "policy: ")
		}
	}
	read, err := oppolicy.FromEnvironment(func(name string) (string, bool) { v, ok := vars[name]; return v, ok })
	require.NoError(t, err)
	assert.Equal(t, p.Fingerprint(), read.Fingerprint(), "%v", vars)
	assert.Len(t, vars, 3, "what nobody has set stays unset")
}
