package preflight_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/preflight"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// outcome is what Gather returned to a rank.
type outcome struct {
	got *preflight.Gathered
	err error
}

// gather runs ranks, each on a host of its own name.
func gather(t *testing.T, ctx context.Context, world int, ranks []int, timeout time.Duration, change func(r *preflight.Report)) map[int]outcome {
	t.Helper()
	port := primustest.FreePort(t)
	var mu sync.Mutex
	var wait sync.WaitGroup
	all := map[int]outcome{}
	for _, rank := range ranks {
		wait.Go(func() {
			r := &preflight.Report{
				Rank: rank, World: world, Host: fmt.Sprintf("node%d", rank), Time: time.Now(),
				Facts: map[string]string{"kernel": "6.1", "devices": "8 × MI300X"}, Rates: map[string]float64{"copy of memory": 10e9},
			}
			change(r)
			got, err := preflight.Gather(ctx, r, preflight.Place{Rank: rank, World: world, Address: "127.0.0.1", Port: port}, preflight.DefaultLimits(), timeout)
			mu.Lock()
			defer mu.Unlock()
			all[rank] = outcome{got, err}
		})
	}
	wait.Wait()
	return all
}

func TestGatherNamesTheOddOnes(t *testing.T) {
	t.Parallel()
	all := gather(t, t.Context(), 4, []int{0, 1, 2, 3}, time.Minute, func(r *preflight.Report) {
		switch r.Rank {
		case 2:
			r.Facts["kernel"] = "5.15"
			r.Rates["copy of memory"] = 4e9
		case 3:
			delete(r.Facts, "devices")
		}
	})
	for rank, o := range all {
		require.NoError(t, o.err, rank)
		assert.Equal(t, all[0].got.Checks, o.got.Checks)
	}
	require.Len(t, all[0].got.Reports, 4)
	assert.Nil(t, all[1].got.Reports)
	checks := all[0].got.Checks
	assert.Equal(t, preflight.Warn, preflight.Worst(checks))
	require.Len(t, checks, 5)
	assert.Equal(t, preflight.Check{Group: "cluster", Name: "ranks", Status: "ok", Value: "all 4 reported"}, checks[0])
	assert.Contains(t, checks[1].Value, "every one of 4 hosts reaches every other, in at most ")
	assert.Equal(t, "rank 3 (node3): none; 3 others: 8 × MI300X", checks[2].Value)
	assert.Equal(t, "rank 2 (node2): 5.15; 3 others: 6.1", checks[3].Value)
	assert.Equal(t, "rank 2 (node2): 40 % of the median of the others", checks[4].Value)
}

func TestGatherOfEqualRanks(t *testing.T) {
	t.Parallel()
	all := gather(t, t.Context(), 2, []int{0, 1}, time.Minute, func(*preflight.Report) {})
	require.NoError(t, all[0].err)
	assert.Equal(t, preflight.OK, preflight.Worst(all[0].got.Checks))
	assert.Equal(t, "none between 2 ranks", all[0].got.Checks[2].Value)
}

func TestGatherWithoutARank(t *testing.T) {
	t.Parallel()
	all := gather(t, t.Context(), 4, []int{0, 2}, 500*time.Millisecond, func(*preflight.Report) {})
	require.NoError(t, all[0].err)
	require.NoError(t, all[2].err)
	assert.Equal(t, preflight.Fail, preflight.Worst(all[2].got.Checks))
	assert.Equal(t, "2 of 4 reported; missing: 1,3", all[0].got.Checks[0].Value)
	assert.Equal(t, preflight.OK, all[0].got.Checks[1].Status, "the two that are there reach each other")
}

func TestGatherWithoutRank0(t *testing.T) {
	t.Parallel()
	all := gather(t, t.Context(), 2, []int{1}, 300*time.Millisecond, func(*preflight.Report) {})
	assert.ErrorContains(t, all[1].err, "preflight: rank 1 cannot reach rank 0 at 127.0.0.1:")
	assert.ErrorContains(t, all[1].err, "check MASTER_ADDR")
}

func TestGatherIsInterrupted(t *testing.T) {
	t.Parallel()
	for _, rank := range []int{0, 1} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		all := gather(t, ctx, 2, []int{rank}, time.Hour, func(*preflight.Report) {})
		assert.Error(t, all[rank].err)
	}
}

// TestHostsThatAreNotReached checks what is said of a rank whose port is closed to the others.
func TestHostsThatAreNotReached(t *testing.T) {
	t.Parallel()
	port, closed := primustest.FreePort(t), primustest.FreePort(t)
	done := make(chan outcome)
	go func() {
		r := &preflight.Report{World: 2, Host: "node0", Time: time.Now()}
		got, err := preflight.Gather(t.Context(), r, preflight.Place{World: 2, Address: "127.0.0.1", Port: port}, preflight.DefaultLimits(), time.Minute)
		done <- outcome{got, err}
	}()
	var conn net.Conn
	require.Eventually(t, func() bool {
		var err error
		conn, err = net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		return err == nil
	}, 2*time.Minute, 10*time.Millisecond)
	defer conn.Close()
	_, err := fmt.Fprintf(conn, `{"protocol":"primus preflight 1","world_size":2,"report":{"rank":1,"host":"node1","time":"2020-01-01T00:00:00Z"},"listen":"%d"}`+"\n", closed)
	require.NoError(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	assert.Contains(t, line, `"peers":[{"rank":0,"host":"node0"`)
	_, err = fmt.Fprintln(conn, `{"protocol":"primus preflight 1"}`)
	require.NoError(t, err)
	o := <-done
	require.NoError(t, o.err)
	require.Len(t, o.got.Checks, 5)
	assert.Equal(t, "rank 0 reaches rank 1", o.got.Checks[1].Name)
	assert.Equal(t, preflight.Fail, o.got.Checks[1].Status)
	assert.Contains(t, o.got.Checks[1].Value, fmt.Sprintf("node1 at 127.0.0.1:%d: ", closed))
	assert.Equal(t, "1 of 2 connections between hosts were tried", o.got.Checks[2].Value)
	assert.Regexp(t, `^rank 1 \(node1\) is \d+h\d+m\d+s away from rank 0$`, o.got.Checks[3].Value)
}

// TestStrangersAreIgnored connects to rank 0 with what is no rank of the job.
func TestStrangersAreIgnored(t *testing.T) {
	t.Parallel()
	port := primustest.FreePort(t)
	r := &preflight.Report{World: 2, Host: "node0", Time: time.Now()}
	done := make(chan outcome)
	go func() {
		got, err := preflight.Gather(t.Context(), r, preflight.Place{World: 2, Address: "127.0.0.1", Port: port}, preflight.DefaultLimits(), 5*time.Second)
		done <- outcome{got, err}
	}()
	for _, text := range []string{"GET / HTTP/1.1\r\n\r\n", "{}\n", `{"protocol":"primus preflight 1","world_size":2,"report":{"rank":0}}` + "\n", `{"protocol":"primus preflight 1","world_size":3,"report":{"rank":1}}` + "\n", ""} {
		var conn net.Conn
		require.Eventually(t, func() (ok bool) {
			var err error
			conn, err = net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			return err == nil
		}, 2*time.Minute, 10*time.Millisecond)
		_, err := conn.Write([]byte(text))
		require.NoError(t, err)
		defer conn.Close()
	}
	o := <-done
	require.NoError(t, o.err)
	require.Len(t, o.got.Reports, 1)
	assert.Equal(t, "1 of 2 reported; missing: 1", o.got.Checks[0].Value)
}

func TestFindPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env  map[string]string
		want preflight.Place
		err  string
	}{
		"alone":              {nil, preflight.Place{World: 1}, ""},
		"torchrun":           {map[string]string{"RANK": "3", "WORLD_SIZE": "8", "MASTER_ADDR": "node1", "MASTER_PORT": "29500"}, preflight.Place{Rank: 3, World: 8, Address: "node1", Port: 29501, From: "RANK and WORLD_SIZE"}, ""},
		"one rank":           {map[string]string{"RANK": "0", "WORLD_SIZE": "1"}, preflight.Place{World: 1, From: "RANK and WORLD_SIZE"}, ""},
		"slurm":              {map[string]string{"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_JOB_NODELIST": "gpu[007-010],login"}, preflight.Place{Rank: 1, World: 2, Address: "gpu007", Port: 1235, From: "SLURM_PROCID and SLURM_NTASKS"}, ""},
		"batch script":       {map[string]string{"SLURM_NTASKS": "2", "SLURM_JOB_NODELIST": "a,b"}, preflight.Place{World: 1}, ""},
		"MPI":                {map[string]string{"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "MASTER_ADDR": "h"}, preflight.Place{Rank: 1, World: 2, Address: "h", Port: 1235, From: "OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE"}, ""},
		"Primus":             {map[string]string{"NODE_RANK": "1", "NNODES": "2", "MASTER_ADDR": "h"}, preflight.Place{Rank: 1, World: 2, Address: "h", Port: 1235, From: "NODE_RANK and NNODES"}, ""},
		"no address":         {map[string]string{"RANK": "1", "WORLD_SIZE": "2"}, preflight.Place{}, "no variable says where rank 0 is: set MASTER_ADDR"},
		"second of its host": {map[string]string{"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "MASTER_ADDR": "h"}, preflight.Place{Rank: 1, World: 2, Local: 1, Address: "h", Port: 1235, From: "RANK and WORLD_SIZE"}, ""},
		"rank too large":     {map[string]string{"RANK": "2", "WORLD_SIZE": "2"}, preflight.Place{}, `variable RANK: given "2", want a number from 0 to 1`},
		"no number":          {map[string]string{"RANK": "0", "WORLD_SIZE": "two"}, preflight.Place{}, `variable WORLD_SIZE: given "two"`},
		"no rank":            {map[string]string{"WORLD_SIZE": "2"}, preflight.Place{}, "WORLD_SIZE is 2, and no variable says which rank this is: set RANK"},
		"node rank":          {map[string]string{"WORLD_SIZE": "16", "NODE_RANK": "1", "NNODES": "2", "MASTER_ADDR": "h"}, preflight.Place{Rank: 1, World: 2, Address: "h", Port: 1235, From: "NODE_RANK and NNODES"}, ""},
		"port":               {map[string]string{"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "65535"}, preflight.Place{}, `variable MASTER_PORT: given "65535", want a number from 1 to 65534`},
	} {
		got, err := preflight.FindPlace(func(name string) string { return c.env[name] })
		if c.err != "" {
			assert.ErrorContains(t, err, c.err, name)
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, c.want, got, name)
	}
}

func TestFirstHost(t *testing.T) {
	t.Parallel()
	for give, want := range map[string]string{"a": "a", "a,b": "a", "n[1-3]": "n1", "n[03,05-9]x,z": "n03x", "": "", "n[1": ""} {
		assert.Equal(t, want, preflight.FirstHost(give), give)
	}
}
