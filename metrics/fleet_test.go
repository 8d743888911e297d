package metrics_test

import (
	"strings"
	"testing"

	"github.com/primus-fl/primus/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFleet(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	var state metrics.FleetState
	f, err := metrics.NewFleet(reg, func() metrics.FleetState { return state })
	require.NoError(t, err)
	want := func(connected, losses, rejected, revision string) string {
		return `
# HELP primus_fleet_connected 1 while the run is registered with the fleet and follows its policy, else 0.
# TYPE primus_fleet_connected gauge
primus_fleet_connected ` + connected + `
# HELP primus_fleet_losses_total How often the connection to the fleet was lost.
# TYPE primus_fleet_losses_total counter
primus_fleet_losses_total ` + losses + `
# HELP primus_fleet_policies_rejected_total Policies of the fleet that could not be used.
# TYPE primus_fleet_policies_rejected_total counter
primus_fleet_policies_rejected_total ` + rejected + `
# HELP primus_fleet_policy_revision Revision of the policy of the fleet that is in force, 0 for none.
# TYPE primus_fleet_policy_revision gauge
primus_fleet_policy_revision ` + revision + `
`
	}
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(want("0", "0", "0", "0"))))
	state = metrics.FleetState{Connected: true, Losses: 1, Rejections: 2, Revision: 7}
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(want("1", "1", "2", "7"))))
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	assert.Empty(t, problems)

	_, err = metrics.NewFleet(reg, func() metrics.FleetState { return state })
	require.ErrorContains(t, err, "register fleet")
	f.Close()
	f.Close()
	n, err := testutil.GatherAndCount(reg)
	require.NoError(t, err)
	assert.Zero(t, n)
}
