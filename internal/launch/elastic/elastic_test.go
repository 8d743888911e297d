package elastic_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/heartbeat"
	"github.com/primus-fl/primus/internal/launch/elastic"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// envScript is what a process of this program does as a rank: words such as 0:1:exit=3, each for a
// round and a rank, of which * is any. With asked= before it a rank does so when it is asked to
// end.
const envScript = "PRIMUS_ELASTIC_TEST"

// envBegan names a file that a rank writes when it expects signals, or waits without doing so.
const envBegan = "PRIMUS_ELASTIC_BEGAN"

func TestMain(m *testing.M) {
	if script := os.Getenv(envScript); script != "" {
		os.Exit(act(script))
	}
	primustest.EndChildren()
	os.Exit(m.Run())
}

// act does what the script says for this rank. Without a word for it the rank ends well.
func act(script string) int {
	for word := range strings.FieldsSeq(script) {
		part := strings.SplitN(word, ":", 3)
		if part[0] != "*" && part[0] != os.Getenv("ROUND") || part[1] != "*" && part[1] != os.Getenv("RANK") {
			continue
		}
		what, value, _ := strings.Cut(part[2], "=")
		asked := make(chan os.Signal, 1)
		if what == "asked" {
			signal.Notify(asked, syscall.SIGTERM)
		}
		if began := os.Getenv(envBegan); began != "" {
			if err := os.WriteFile(began, nil, 0o600); err != nil {
				panic(err)
			}
		}
		if what == "asked" {
			<-asked
			what, value, _ = strings.Cut(value, "=")
		}
		switch what {
		case "kill":
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = self.Kill()
			}
			panic(err)
		case "exit":
			code, err := strconv.Atoi(value)
			if err != nil {
				panic(err)
			}
			return code
		case "error", "follow", "usage":
			message := strings.NewReplacer("_", " ", "|", "\n").Replace(value)
			if err := elastic.WriteError(os.Getenv(elastic.EnvErrorFile), elastic.RankError{Message: message, Follows: what == "follow", Usage: what == "usage"}); err != nil {
				panic(err)
			}
			return 1
		case "wait":
			time.Sleep(time.Minute)
		}
	}
	return 0
}

// record is what members do.
type record struct {
	mu     sync.Mutex
	places []elastic.Place
	lines  []string
}

// settings returns those of a member whose ranks follow a script. They are not killed unless they
// wait.
func (r *record) settings(script string, member, members, slots int) elastic.Settings {
	grace := time.Minute
	if strings.Contains(script, "wait") {
		grace = 200 * time.Millisecond
	}
	return elastic.Settings{
		Member: member, Members: members, Slots: slots, ComeBack: 200 * time.Millisecond, Grace: grace, Secret: "secret",
		Port: func() (int, error) { return 1234, nil },
		Command: func(p elastic.Place) *exec.Cmd {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.places = append(r.places, p)
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), envScript+"="+script, "ROUND="+strconv.Itoa(p.Restarts), "RANK="+strconv.Itoa(p.Rank), elastic.EnvErrorFile+"="+p.ErrorFile)
			return cmd
		},
		Log: func(line string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.lines = append(r.lines, line)
		},
	}
}

func TestRestarts(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		restarts     int
		rounds       int
		want         string   // the error, "" for none
		reason       string   // of the last restart
		lines        []string // that are logged, apart from those of restarts
	}{
		{"all end well", "x:x:exit", 3, 1, "", "", nil},
		{"a failure", "0:1:exit=3", 3, 2, "", "rank 1 of 2 has failed: exit status 3", nil},
		{"an error with words", "0:1:error=disk_full", 3, 2, "", "rank 1 of 2 has failed: disk full", nil},
		{"the first cause counts", "0:0:follow=gone 0:1:error=disk_full", 3, 2, "", "rank 1 of 2 has failed: disk full", []string{"rank 0 of 2 has failed: gone"}},
		{"the same error twice", "*:*:error=no_text|in_lines", 1, 2, "both ranks have failed: no text\nin lines; there was one restart before", "both ranks have failed: no text", nil},
		{"always", "*:1:exit=3", 2, 3, "rank 1 of 2 has failed: exit status 3; there were 2 restarts before", "rank 1 of 2 has failed: exit status 3", nil},
		{"no restarts", "*:1:exit=3", 0, 1, "rank 1 of 2 has failed: exit status 3", "", nil},
		{"a wrong command line", "*:*:usage=two_values", 3, 1, "both ranks have failed: two values", "", nil},
		{"a panic is no wrong command line", "0:*:exit=2", 3, 2, "", "both ranks have failed: exit status 2", nil},
		{"interrupted by itself", "*:*:exit=130", 3, 1, "all ranks have ended", "", nil},
		{"a crash after a kill", "0:0:exit=2 0:1:kill", 3, 2, "", "rank 1 of 2 has failed: signal: killed", []string{"rank 0 of 2 has failed: exit status 2"}},
		{"a rank waits for one that failed", "0:1:exit=3 0:0:wait", 1, 2, "", "rank 1 of 2 has failed: exit status 3", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := &record{}
			s := r.settings(tt.script, 0, 1, 2)
			s.MaxRestarts = tt.restarts
			err := elastic.Run(t.Context(), s)
			if tt.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tt.want)
			}
			failed, isFailure := errors.AsType[*elastic.Failure](err)
			assert.Equal(t, tt.name == "a wrong command line", isFailure && failed.Usage)
			assert.Equal(t, tt.name == "interrupted by itself", errors.Is(err, elastic.ErrInterrupted))
			assert.Len(t, r.places, 2*tt.rounds)
			assert.ElementsMatch(t, tt.lines, slices.DeleteFunc(r.lines, func(line string) bool { return strings.Contains(line, "start again") }))
			last := r.places[len(r.places)-1]
			assert.Equal(t, tt.reason, last.Reason)
			last.ErrorFile, last.Reason = "", ""
			assert.Equal(t, elastic.Place{Rank: 1, Ranks: 2, Local: 1, Locals: 2, Port: 1234, Restarts: tt.rounds - 1, MaxRestarts: tt.restarts}, last)
		})
	}
}

// Members that wait for others say for whom, and end after the time that they are given.
func TestMissingMembers(t *testing.T) {
	t.Parallel()
	address := primustest.FreeAddress(t)
	run := func(member int) (*record, <-chan error) {
		r, ended := &record{}, make(chan error, 1)
		s := r.settings("", member, 3, 1)
		s.Address, s.Patience = address, 3*time.Second
		go func() { ended <- elastic.Run(t.Context(), s) }()
		return r, ended
	}
	alone, ended := run(2)
	require.ErrorContains(t, <-ended, "the nodes have not met within 3s (--rendezvous-timeout): node 2 of 3 waits for node 0 at "+address+": ")
	require.Len(t, alone.lines, 1)
	assert.Contains(t, alone.lines[0], "node 2 of 3 waits for node 0 at "+address+"; given up after 3s (--rendezvous-timeout), ")

	first, firstEnded := run(0)
	_, secondEnded := run(1)
	const missing = "node 0 of 3 waits for node 2; there: nodes 0, 1; node 0 listens at "
	for _, ended := range []<-chan error{firstEnded, secondEnded} {
		err := <-ended
		require.ErrorContains(t, err, "the nodes have not met within 3s (--rendezvous-timeout): "+missing+address)
		require.ErrorAs(t, err, new(*elastic.Failure))
	}
	require.Len(t, first.lines, 1)
	assert.Contains(t, first.lines[0], missing+address+"; given up after 3s")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := (&record{}).settings("", 1, 2, 1)
	s.Address = address
	require.ErrorIs(t, elastic.Run(ctx, s), elastic.ErrInterrupted, "whoever waits can be interrupted")
}

// Ranks that were asked to end have ended for that reason, also one that another has told so first,
// and one that did not expect the signal yet.
func TestInterrupt(t *testing.T) {
	for script, want := range map[string]string{
		"*:0:asked=exit=130 *:1:asked=follow=rank_0_has_left": "",
		"*:0:asked=exit=130 *:1:wait":                         "",
		"*:*:wait":                                            "",
		"*:*:asked=follow=the_other_has_left":                 "",
		"*:0:asked=exit=130 *:1:asked=error=disk_full":        "rank 1 of 2 has failed: disk full",
		"*:0:asked=exit=130 *:1:asked=exit=15":                "rank 1 of 2 has failed: exit status 15",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			r := &record{}
			s := r.settings(script, 0, 1, 2)
			s.MaxRestarts, s.Grace = 3, time.Minute
			began := filepath.Join(t.TempDir(), "rank-")
			start := s.Command
			s.Command = func(p elastic.Place) *exec.Cmd {
				cmd := start(p)
				cmd.Env = append(cmd.Env, envBegan+"="+began+strconv.Itoa(p.Rank))
				return cmd
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				defer cancel()
				for rank := range 2 {
					for _, err := os.Stat(began + strconv.Itoa(rank)); err != nil && ctx.Err() == nil; _, err = os.Stat(began + strconv.Itoa(rank)) {
						time.Sleep(time.Millisecond)
					}
				}
			}()
			err := elastic.Run(ctx, s)
			if want == "" {
				require.ErrorIs(t, err, elastic.ErrInterrupted)
				assert.Empty(t, r.lines)
			} else {
				require.EqualError(t, err, want)
			}
			assert.Len(t, r.places, 2)
		})
	}
}

// Members number their ranks in order. When one is gone, the others go on without it, with as many
// ranks as fit.
func TestMembers(t *testing.T) {
	r, at := &record{}, primustest.FreeAddress(t)
	results := make(chan error, 3)
	for member := range 2 {
		s := r.settings("0:*:wait", member, 3, 2)
		s.Address, s.MaxRestarts = at, 1
		s.Fit = func(n int) int { return n - n%3 }
		go func() { results <- elastic.Run(t.Context(), s) }()
	}
	_, err := heartbeat.Dial(t.Context(), at, "wrong", "member 2 with 2 ranks")
	require.ErrorContains(t, err, "member 2 with 2 ranks does not know the secret of the job")
	_, err = heartbeat.Dial(t.Context(), at, "secret", "member 7 with 2 ranks")
	require.ErrorContains(t, err, "given member 7, want one of 3, from 0")
	link, err := heartbeat.Dial(t.Context(), at, "secret", "member 2 with 2 ranks")
	require.NoError(t, err)
	_, err = heartbeat.Dial(t.Context(), at, "secret", "member 2 with 2 ranks")
	require.ErrorContains(t, err, "there is a member 2 already")
	word, rest, err := link.Receive()
	require.NoError(t, err)
	assert.Equal(t, "begin", word)
	assert.JSONEq(t, `{"first":4,"count":2,"ranks":6,"port":1234,"round":0,"rounds":1,"reason":""}`, rest)
	link.Close()
	for range 2 {
		require.NoError(t, <-results)
	}
	require.Len(t, r.places, 7)
	for _, p := range r.places[4:] {
		assert.Equal(t, 3, p.Ranks)
		assert.Equal(t, "node 2 is gone: its connection is closed", p.Reason)
	}
	require.Len(t, r.lines, 2)
	assert.Equal(t, "3 of 4 ranks train: the batch cannot be divided among more", r.lines[1])
}

// Ranks of several nodes that fail for one reason are named together; what a node saw besides is
// logged there.
func TestMembersFail(t *testing.T) {
	at := primustest.FreeAddress(t)
	var members [2]record
	results := make(chan error, len(members))
	for i := range members {
		s := members[i].settings("0:0:error=no_text 0:2:error=no_text 0:3:follow=gone", i, 2, 2)
		s.Address = at
		go func() { results <- elastic.Run(t.Context(), s) }()
	}
	for range members {
		require.EqualError(t, <-results, "ranks 0, 2 of 4 have failed: no text")
	}
	assert.Empty(t, members[0].lines)
	assert.Equal(t, []string{"rank 3 of 4 has failed: gone"}, members[1].lines)
}

// A member that comes back in time takes part in the next round.
func TestMemberComesBack(t *testing.T) {
	r, at := &record{}, primustest.FreeAddress(t)
	s := r.settings("0:*:wait", 0, 2, 1)
	s.Address, s.MaxRestarts, s.ComeBack = at, 1, time.Minute
	ended := make(chan error)
	go func() { ended <- elastic.Run(t.Context(), s) }()
	for round := range 2 {
		link, err := heartbeat.Dial(t.Context(), at, "secret", "member 1 with 1 ranks")
		for err != nil { // the coordinator may not have noticed yet that the connection is closed
			link, err = heartbeat.Dial(t.Context(), at, "secret", "member 1 with 1 ranks")
		}
		word, rest, err := link.Receive()
		require.NoError(t, err)
		assert.Equal(t, "begin", word)
		assert.Contains(t, rest, fmt.Sprintf(`"round":%d`, round))
		if round == 0 {
			link.Close()
			continue
		}
		link.Send("ended", `{"kind":"done"}`)
		word, rest, err = link.Receive()
		require.NoError(t, err)
		assert.Equal(t, `finish {"kind":"done","restarts":1}`, word+" "+rest)
		link.Close()
	}
	require.NoError(t, <-ended)
}

// The end of member 0 ends the others.
func TestCoordinatorGone(t *testing.T) {
	r := &record{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := r.settings("*:*:wait", 1, 2, 1)
	s.Address = l.Addr().String()
	ended := make(chan error)
	go func() { ended <- elastic.Run(t.Context(), s) }()
	conn, err := l.Accept()
	require.NoError(t, err)
	link, claim, err := heartbeat.Accept(conn, "secret")
	require.NoError(t, err)
	assert.Equal(t, "member 1 with 1 ranks", claim)
	link.Welcome()
	link.Send("begin", `{"first":1,"count":1,"ranks":2,"port":1}`)
	link.Close()
	require.EqualError(t, <-ended, "node 0, which coordinates the job, is gone: its connection is closed")
}

func TestErrorFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "error.json")
	for _, follows := range []bool{true, false} {
		want := elastic.RankError{Message: "a \"text\"\nin lines", Follows: follows, Usage: !follows}
		require.NoError(t, elastic.WriteError(file, want))
		got, err := elastic.ReadError(file)
		require.NoError(t, err)
		assert.Equal(t, want, got)
		require.Error(t, elastic.WriteError(file, want), "the first error counts")
		require.NoError(t, os.Remove(file))
	}
	require.NoError(t, elastic.WriteError("", elastic.RankError{}))
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	_, err := elastic.ReadError(file)
	require.Error(t, err)
	assert.Equal(t, "x; there was one restart before", fmt.Sprint(&elastic.Failure{Reason: "x", Restarts: 1}))
}
