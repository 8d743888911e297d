package fleet_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/fleet"
	"github.com/primus-fl/primus/internal/fleet/fleettest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// victim is a run that may be killed and cut off, and the state that it must be listed with.
type victim struct {
	*trainer
	proxy *fleettest.Proxy
	want  string
	gone  bool
	cut   bool
}

// attack does something to the run at random. The runs that are gone stay so.
func (v *victim) attack(random *rand.Rand) string {
	if v.gone {
		return "nothing"
	}
	if v.cut {
		v.proxy.Unblock()
		v.cut, v.want = false, string(v.status.State)
		return "reach"
	}
	switch what := []string{"kill", "end", "cut", "state", "state", "nothing"}[random.IntN(6)]; what {
	case "kill": // nothing of what the process says at its end arrives
		v.proxy.Block()
		v.agent.Close()
		v.gone, v.want = true, "lost"
		return what
	case "end":
		code := random.IntN(4)
		v.agent.Ended(code, "as told")
		v.agent.Close()
		v.gone, v.want = true, fmt.Sprint("ended ", code)
		return what
	case "cut":
		v.proxy.Block()
		v.cut, v.want = true, "lost"
		return what
	case "state":
		state := []fleet.RunState{fleet.StateStarting, fleet.StateTraining, fleet.StateStalled, fleet.StateDiverged}[random.IntN(4)]
		v.is(fleet.Status{State: state, Step: random.IntN(100), Detail: "since " + string(state)})
		v.want = string(state)
		return what
	default:
		return what
	}
}

// Whatever happens to runs and to etcd, each run is listed with the state that it is in.
// `make chaos ARGS='-only fleet'` does the same to a hundred processes.
func TestStates(t *testing.T) {
	t.Parallel()
	etcd := fleettest.Start(t)
	c := open(t, fleetAt(etcd.Address))
	random := rand.New(rand.NewPCG(7, 0))
	all := make([]*victim, 8)
	for rank := range all {
		proxy := fleettest.NewProxy(t, etcd.Address)
		all[rank] = &victim{trainer: newTrainer(t, fleetAt(proxy.Address), rank), proxy: proxy, want: "training"}
		all[rank].agent.Start(t.Context())
		require.True(t, all[rank].agent.State().Connected, all[rank].log.String())
	}
	for round := range 4 {
		var did []string
		if round == 2 {
			etcd.Kill()
			did = append(did, "etcd is killed")
		}
		for _, v := range all {
			if round == 2 && !v.gone { // what ends now cannot say so
				continue
			}
			did = append(did, v.attack(random))
		}
		if round == 2 {
			etcd.Restart()
		}
		var got, want []string
		soon(t, func() bool {
			s, err := c.Snapshot(t.Context())
			if err != nil {
				return false
			}
			got, want = make([]string, len(all)), make([]string, len(all))
			for i, v := range all {
				want[i] = v.want
			}
			for _, m := range append(s.Members, s.Ended...) {
				got[m.Rank] = m.Status.String()
			}
			return assert.ObjectsAreEqual(want, got)
		}, "round %d, %v: want %v", round, did, want)
	}
}

func TestListAsksForNumbers(t *testing.T) {
	t.Parallel()
	etcd := fleettest.Start(t)
	config := fleetAt(etcd.Address)
	run := start(t, config, 1)[0]
	c := open(t, config)
	loss := 2.5
	run.is(fleet.Status{State: fleet.StateTraining, Step: 7, Steps: 9, Loss: &loss, Dir: "/runs/exp"})
	soon(t, func() bool { s, err := c.Snapshot(t.Context()); return err == nil && s.Members[0].Status.Dir != "" })
	run.is(fleet.Status{State: fleet.StateTraining, Step: 8, Steps: 9, Loss: &loss, Dir: "/runs/exp"})
	s, err := c.List(t.Context(), time.Minute)
	require.NoError(t, err)
	require.Len(t, s.Members, 1)
	got := s.Members[0].Status
	assert.Equal(t, 8, got.Step, "now, not when it was last written")
	assert.Equal(t, &loss, got.Loss)
	assert.WithinDuration(t, time.Now(), got.Seen, time.Hour)
	assert.Empty(t, s.Ended)

	run.agent.Ended(3, "it hangs")
	run.agent.Ended(0, "too late")
	run.agent.Close()
	s, err = c.List(t.Context(), time.Minute)
	require.NoError(t, err)
	assert.Empty(t, s.Members)
	require.Len(t, s.Ended, 1)
	assert.Equal(t, "ended 3", s.Ended[0].Status.String())
	assert.Equal(t, "it hangs", s.Ended[0].Status.Detail)
	assert.Equal(t, 8, s.Ended[0].Status.Step)
	assert.Empty(t, s.Lost())
}

// A lost run is listed until another one has taken its place.
func TestLost(t *testing.T) {
	t.Parallel()
	member := func(id string, rank, hour int, state fleet.RunState) fleet.Member {
		return fleet.Member{
			ID: id, Status: fleet.Status{State: state},
			Identity: fleet.Identity{Experiment: "exp", Rank: rank, Started: time.Date(2026, 1, 2, hour, 0, 0, 0, time.UTC)},
		}
	}
	s := fleet.Snapshot{
		Members: []fleet.Member{member("a", 0, 3, fleet.StateTraining)},
		Ended: []fleet.Member{
			member("b", 0, 2, fleet.StateLost), member("c", 1, 2, fleet.StateLost), member("d", 2, 2, fleet.StateLost),
			member("e", 2, 4, fleet.StateEnded), member("f", 0, 5, fleet.StateLost),
		},
	}
	var ids []string
	for _, m := range s.Lost() {
		ids = append(ids, m.ID)
	}
	assert.Equal(t, []string{"c", "f"}, ids)
}

func TestLog(t *testing.T) {
	t.Parallel()
	config := fleetAt(fleettest.Start(t).Address)
	run := start(t, config, 2)[1]
	c := open(t, config)
	id := run.agent.State().ID
	fmt.Fprint(&run.tail, "one\ntwo\nthr\x1b[2Jee \xff\n")
	part, err := c.Log(t.Context(), fleet.LogQuestion{Run: id, Lines: 2}, time.Minute)
	require.NoError(t, err)
	assert.Equal(t, []string{"two", `thr\x1b[2Jee ` + "\uFFFD"}, part.Lines, "nothing that changes the terminal")
	fmt.Fprint(&run.tail, "four\n")
	part, err = c.Log(t.Context(), fleet.LogQuestion{Run: id, Lines: 2, After: part.Next}, time.Minute)
	require.NoError(t, err)
	assert.Equal(t, []string{"four"}, part.Lines)
	part, err = c.Log(t.Context(), fleet.LogQuestion{Run: id, Lines: 2, After: part.Next}, time.Minute)
	require.NoError(t, err)
	assert.Empty(t, part.Lines)

	_, err = c.Log(t.Context(), fleet.LogQuestion{Run: "nobody"}, time.Minute)
	assert.ErrorContains(t, err, `given run "nobody"`)
	run.agent.Ended(0, "")
	run.agent.Close()
	var gone *fleet.GoneError
	_, err = c.Log(t.Context(), fleet.LogQuestion{Run: id}, time.Minute)
	require.ErrorAs(t, err, &gone)
	assert.Equal(t, "fleet: run "+id+" is ended 0, so nobody can answer; its log is on host", err.Error())
}

// Steps are counted for the dispatch table that they began and ended under.
func TestPaceMeter(t *testing.T) {
	t.Parallel()
	generation, calls, fallbacks := uint64(1), uint64(0), uint64(0)
	m := fleet.NewPaceMeter(func() uint64 { return generation }, func() (uint64, uint64) { return calls, fallbacks })
	assert.Zero(t, m.Pace())
	for i := range 100 {
		calls, fallbacks = calls+10, fallbacks+1
		m.Step(time.Duration(i) * time.Second)
	}
	p := m.Pace()
	assert.Equal(t, 84.0, p.Median(), "of the last 32: 68 to 99 seconds")
	assert.Equal(t, 0.1, p.FallbackRate())
	generation = 2
	m.Step(time.Hour)
	assert.Equal(t, fleet.Pace{Generation: 2}, m.Pace(), "the table has changed in this step")
	calls += 10
	m.Step(time.Minute)
	assert.Equal(t, fleet.Pace{Generation: 2, StepSeconds: []float64{60}, Calls: 10}, m.Pace())
	assert.Zero(t, m.Pace().FallbackRate())
}
