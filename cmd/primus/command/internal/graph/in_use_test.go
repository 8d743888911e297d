package graph_test

import (
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A process that computes on the CPU has no use for impls for devices, so no change of its policy
// concerns them.
func TestImplsForDevicesOnTheCPU(t *testing.T) {
	policy := oppolicy.Default()
	require.NoError(t, policy.SetDeny("opencl", "test"))
	for _, name := range []string{"cpu", ""} {
		set := graph.Config{Device: graph.DeviceName{Name: name, Source: "test"}}
		err := graph.WithManagerOf(t.Context(), cli.Program{Streams: cli.Streams{Out: t.Output(), Err: t.Output()}}, set, func(m *opmanager.Manager, _ *opregistry.Snapshot, _ device.Backend) error {
			e, err := m.Explain("rmsnorm_fwd")
			require.NoError(t, err)
			require.Len(t, e.Rejected, 1)
			s := e.Rejected[0]
			assert.Equal(t, "vendor.opencl", s.ID)
			computes := name != ""
			assert.Equal(t, !computes, s.Available)
			if computes {
				assert.Equal(t, "not needed: this process computes on the CPU", s.Reason)
			}
			changes := m.PolicyStack().DryRun(opmanager.LayerService, opmanager.PolicyLayer{Policy: policy}).Changes
			assert.Equal(t, !computes, len(changes) > 0, "%v", changes)
			return nil
		})
		require.NoError(t, err)
	}
}
