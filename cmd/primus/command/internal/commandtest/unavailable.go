package commandtest

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Unavailable returns why a child cannot use an impl of generic_gemm, "" when it can.
func Unavailable(t *testing.T, id string, env []string) string {
	t.Helper()
	out, err := Child(t.Context(), env, "ops", "list", "generic_gemm", "-o", "json").Output()
	require.NoError(t, err)
	var rows []ImplRow
	require.NoError(t, json.Unmarshal(out, &rows))
	for _, r := range rows {
		if r.Impl != id {
			continue
		}
		if !r.Available {
			require.NotEmpty(t, r.Reason)
		}
		return r.Reason
	}
	require.Failf(t, "not listed", "%s in %s", id, out)
	return ""
}

// ImplRow is an impl in the output of ops list.
type ImplRow struct {
	Op        string `json:"op"`
	Impl      string `json:"impl_id"`
	Kind      string `json:"kind"`
	Vendor    string `json:"vendor"`
	Priority  int    `json:"priority"`
	Available bool   `json:"available"`
	Rank      int    `json:"rank"`
	Reason    string `json:"reason"`
}
