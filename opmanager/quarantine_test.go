package opmanager_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// afterBackoff lets a quarantine of this length end.
func afterBackoff(d time.Duration) {
	time.Sleep(d + time.Millisecond)
	synctest.Wait()
}

// B4: a transient failure does not move an op to another impl for ever, and a
// permanent one does not cost an attempt a call.
func TestQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManager(t, nil, opmanager.Settings{})
		bound := opmanager.MustBind(f.Manager, addOne)
		f.vendor.do = halfWay
		for range 5 {
			require.NoError(t, bound.Call(newArgs(t)))
		}
		assert.Equal(t, 3, f.vendor.calls, "set aside after three failures")
		e, err := f.Explain("add_one")
		require.NoError(t, err)
		assert.Contains(t, e.Rejected[0].Reason, "quarantined until")
		assert.Contains(t, e.Rejected[0].Reason, "device lost")
		require.Len(t, f.Quarantines(), 1)
		assert.Equal(t, opmanager.QuarantineOpen, f.Quarantines()[0].State)

		afterBackoff(30 * time.Second)
		assert.Equal(t, opmanager.QuarantineHalfOpen, f.Quarantines()[0].State)
		e, err = f.Explain("add_one")
		require.NoError(t, err)
		assert.Equal(t, "vendor.acme", e.Selected)
		require.NoError(t, bound.Call(newArgs(t)))
		require.NoError(t, bound.Call(newArgs(t)))
		assert.Equal(t, 4, f.vendor.calls, "one call tries it, and one failure is enough")
		assert.Equal(t, opmanager.QuarantineOpen, f.Quarantines()[0].State)
		assert.Equal(t, 2, count[opmanager.Quarantined](f.events))
		assert.Zero(t, count[opmanager.Released](f.events))

		afterBackoff(30 * time.Second)
		require.NoError(t, bound.Call(newArgs(t)))
		assert.Equal(t, 4, f.vendor.calls, "the second quarantine is twice as long")
		afterBackoff(30 * time.Second)
		f.vendor.do = nil
		require.NoError(t, bound.Call(newArgs(t)))
		require.NoError(t, bound.Call(newArgs(t)))
		assert.Equal(t, 6, f.vendor.calls)
		assert.Empty(t, f.Quarantines(), "a success ends it")
		assert.Equal(t, 1, count[opmanager.Released](f.events))
		f.Close()
	})
}

func TestHalfOpenLetsOneCallTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManager(t, func(p *oppolicy.Policy) {
			p.Quarantine = oppolicy.Quarantine{Failures: 1, Backoff: time.Second}
		}, opmanager.Settings{})
		bound := opmanager.MustBind(f.Manager, addOne)
		f.vendor.do = halfWay
		require.NoError(t, bound.Call(newArgs(t)))
		afterBackoff(time.Second)

		entered, leave := make(chan struct{}), make(chan struct{})
		f.vendor.do = func(addArgs) error {
			close(entered)
			<-leave
			return nil
		}
		done := make(chan error)
		go func() { done <- bound.Call(newArgs(t)) }()
		<-entered
		for range 3 {
			require.NoError(t, bound.Call(newArgs(t)))
		}
		assert.Equal(t, 2, f.vendor.calls, "the others do not wait for the one that tries")
		assert.Equal(t, 4, f.flagos.calls)
		close(leave)
		require.NoError(t, <-done)
		assert.Empty(t, f.Quarantines())
		f.Close()
	})
}

func TestHalfOpenStaysWhenTheTrialIsDeclined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManager(t, func(p *oppolicy.Policy) {
			p.Quarantine = oppolicy.Quarantine{Failures: 1, Backoff: time.Second}
		}, opmanager.Settings{})
		bound := opmanager.MustBind(f.Manager, addOne)
		f.vendor.do = halfWay
		require.NoError(t, bound.Call(newArgs(t)))
		afterBackoff(time.Second)
		f.vendor.do = declines
		require.NoError(t, bound.Call(newArgs(t)))
		require.NoError(t, bound.Call(newArgs(t)))
		assert.Equal(t, 3, f.vendor.calls)
		assert.Equal(t, opmanager.QuarantineHalfOpen, f.Quarantines()[0].State)
		f.Close()
	})
}

func TestQuarantineSettings(t *testing.T) {
	fail := func(t *testing.T, set oppolicy.Quarantine, calls int) fixtureManager {
		f := newManager(t, func(p *oppolicy.Policy) { p.Quarantine = set }, opmanager.Settings{})
		f.vendor.do = func(addArgs) error { return errors.New("device lost") }
		for range calls {
			require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(newArgs(t)))
		}
		return f
	}
	f := fail(t, oppolicy.Quarantine{Disabled: true}, 10)
	assert.Equal(t, 10, f.vendor.calls)
	assert.Empty(t, f.Quarantines())

	f = fail(t, oppolicy.Quarantine{Failures: 5}, 10)
	assert.Equal(t, 5, f.vendor.calls)
	assert.Equal(t, 5, f.Quarantines()[0].Failures)

	synctest.Test(t, func(t *testing.T) {
		f := newManager(t, func(p *oppolicy.Policy) { p.Quarantine.Window = time.Second }, opmanager.Settings{})
		f.vendor.do = halfWay
		for range 10 {
			require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(newArgs(t)))
			time.Sleep(time.Second)
		}
		assert.Equal(t, 10, f.vendor.calls, "failures far apart do not count together")
		f.Close()
	})
}

func TestLongQuarantinesDoNotShrink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManager(t, func(p *oppolicy.Policy) {
			p.Quarantine = oppolicy.Quarantine{Failures: 1, Backoff: 2 * time.Hour}
		}, opmanager.Settings{})
		f.vendor.do = halfWay
		for range 3 {
			require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(newArgs(t)))
			assert.Equal(t, 2*time.Hour, time.Until(f.Quarantines()[0].Until))
			afterBackoff(2 * time.Hour)
		}
		assert.Equal(t, 3, f.vendor.calls)
		f.Close()
	})
}
