package dispatch

import (
	"testing"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/stretchr/testify/require"
)

// FuzzPolicyParams reads the policy of an experiment's parameters: it is a layer that has a policy,
// or an error, and reading costs in proportion to the length.
func FuzzPolicyParams(f *testing.F) {
	for _, text := range []string{
		"{te_fl_prefer: vendor, te_fl_per_op: rmsnorm_fwd=vendor.a|flagos;gemm=reference, deterministic_mode: true}", "{dispatch: {prefer: flagos, per_op: {rmsnorm_fwd: [flagos]}, rules: [{ops: a}]}}",
		"{te_fl_rules: 1, dispatch: []}", "{te_fl_per_op: ';;=|', te_fl_strict: maybe}", "{dispatch: {null: null}, deterministic_mode: null}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		root, _, err := document.Parse(t.Context(), formats.YAML{}, "experiment.yaml", text)
		if err != nil {
			return
		}
		params, ok := root.Map()
		if !ok {
			return
		}
		primustest.Cost(t, len(text), 50_000, func() {
			layer, err := experimentLayer(&config.Module{Name: "pre_trainer", Params: params})
			if err != nil {
				require.Nil(t, layer)
				return
			}
			layers := opmanager.PolicyLayers{opmanager.LayerExperiment: layer.PolicyLayer}
			require.NotEmpty(t, layers.Policy().Fingerprint())
		})
	})
}
