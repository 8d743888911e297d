package policyfile_test

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/policytest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/policyfile"
)

// A run that begins under a policy ends only if that is refused, before its first call, or if there
// is a call that nobody has foreseen: no other policy is in its place.
func TestRandomPoliciesAtTheStart(t *testing.T) {
	t.Parallel()
	refused, ended := 0, 0
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		l, err := policyfile.Parse(t.Context(), "policy.yaml", []byte(policytest.Text(random)))
		require.NoError(t, err)
		r := policytest.New(t, random, opmanager.PolicyLayers{opmanager.LayerFile: l.PolicyLayer})
		if err := r.Announce(); err != nil {
			require.ErrorAs(t, err, new(*opmanager.UnservedError))
			refused++
			continue
		}
		known, unknown := r.Train()
		require.NoError(t, known, l.Text)
		if unknown != nil {
			ended++
		}
		assert.Empty(t, r.Manager.PolicyStack().PutBack())
	}
	t.Logf("%d policies refused, %d met a call that was not foreseen", refused, ended)
	assert.Greater(t, refused, 100)
	assert.Greater(t, ended, 20)
}

// A file that changes while a run trains does not end it.
func TestRandomPoliciesInTheFile(t *testing.T) {
	t.Parallel()
	accepted, refused, back := 0, 0, 0
	for seed := range uint64(40) {
		file := filepath.Join(t.TempDir(), "policy.yaml")
		require.NoError(t, os.WriteFile(file, []byte("{}\n"), 0o600))
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			l, err := policyfile.Read(t.Context(), file)
			require.NoError(t, err)
			r := policytest.New(t, random, opmanager.PolicyLayers{opmanager.LayerFile: l.PolicyLayer})
			require.NoError(t, r.Announce())
			var log primustest.Buffer
			w := policyfile.NewWatcher(l, policyfile.WatchSettings{Manager: r.Manager, Log: slog.New(slog.NewTextHandler(&log, nil))})
			w.Start()
			defer w.Close()
			for range 40 {
				text := policytest.Text(random)
				require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
				r.Try(func() error {
					generation := r.Manager.Generation()
					time.Sleep(3 * policyfile.Interval)
					if r.Manager.Generation() == generation && r.Manager.PolicyStack().State().Layers[opmanager.LayerFile].Text != text {
						return errors.New("the file is not used")
					}
					return nil
				})
			}
			accepted, refused, back = accepted+r.Accepted, refused+r.Refused, back+len(r.Manager.PolicyStack().PutBack())
		})
	}
	t.Logf("%d policies accepted, %d refused, %d put back", accepted, refused, back)
	assert.Greater(t, accepted, 300)
	assert.Greater(t, refused, 50)
	assert.Greater(t, back, 10)
}
