//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/primus-fl/primus/internal/fleet"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
)

// Of the drill of a fleet.
const (
	fleetMembers = 100
	fleetRounds  = 4
	fleetWait    = 2 * time.Minute // for each round, on a machine that is busy with something else
)

// fleetServer is the etcd of a fleet.
type fleetServer struct {
	address, peer, dir string
	process            *process
}

// startEtcd starts etcd, or returns errSkip on a machine without it.
func (l *lab) startEtcd(ctx context.Context) (*fleetServer, error) {
	if _, err := exec.LookPath("etcd"); err != nil {
		return nil, fmt.Errorf("%w: no etcd on this machine", errSkip)
	}
	s := &fleetServer{dir: filepath.Join(l.dir, "etcd")}
	for _, at := range []*string{&s.address, &s.peer} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		*at = listener.Addr().String()
		listener.Close() // its port is for etcd
	}
	return s, s.start(ctx, l)
}

func (s *fleetServer) start(ctx context.Context, l *lab) (err error) {
	path, err := exec.LookPath("etcd")
	if err != nil {
		return err
	}
	client, peer := "http://"+s.address, "http://"+s.peer
	s.process, err = l.launch(ctx, func(cmd *exec.Cmd) {
		cmd.Path = path
		cmd.Args = append(cmd.Args[:1], "--name", "one", "--data-dir", s.dir, "--unsafe-no-fsync", "--log-level", "error",
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "one="+peer)
	})
	return err
}

// fleetRun is a process of a fleet and the state that it must be listed with.
type fleetRun struct {
	*process
	want   string
	hangs  bool
	gone   bool
	asleep bool
}

// watchFleet attacks a hundred processes of a fleet and their etcd, and returns an error when a
// process is listed with a state that it is not in.
func watchFleet(ctx context.Context, l *lab, random *rand.Rand) (attacks int, err error) {
	etcd, err := l.startEtcd(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { etcd.process.Kill() }()
	client, err := fleet.Open(fleet.Config{Endpoints: []string{etcd.address}})
	if err != nil {
		return 0, err
	}
	defer client.Close()
	all := make([]*fleetRun, fleetMembers)
	for rank := range all {
		p, err := l.launch(ctx, func(cmd *exec.Cmd) {
			cmd.Env = append(cmd.Env, roleVariable+"="+roleMember, "GOMAXPROCS=1")
			cmd.Args = append(cmd.Args, etcd.address, strconv.Itoa(rank))
		})
		if err != nil {
			return 0, err
		}
		defer p.Kill()
		all[rank] = &fleetRun{process: p, want: string(fleet.StateTraining)}
	}
	longest := time.Duration(0)
	for round := range fleetRounds {
		if round == 2 {
			etcd.process.Kill()
			attacks++
		}
		if round > 0 {
			for _, r := range all {
				if r.attack(random, round != 2) {
					attacks++
				}
			}
		}
		if round == 2 {
			if err := etcd.start(ctx, l); err != nil {
				return attacks, err
			}
		}
		took, err := statesAre(ctx, client, all)
		if err != nil {
			return attacks, fmt.Errorf("round %d: %w", round, err)
		}
		if round > 0 {
			longest = max(longest, took)
		}
	}
	fmt.Fprintf(l.progress, "\nstates are right after %v at most, with a lease of %v\n", longest.Round(100*time.Millisecond), fleet.DefaultLease)
	return attacks, nil
}

// attack does something to a process, and reports whether it did. While etcd is away no process
// ends, because it could not say so.
func (r *fleetRun) attack(random *rand.Rand, mayEnd bool) bool {
	if r.gone {
		return false
	}
	send := func(s syscall.Signal) { r.Process.Process.Signal(s) } // an error shows in the state
	if r.asleep {
		send(syscall.SIGCONT)
		r.asleep, r.want = false, string(fleet.StateTraining)
		if r.hangs {
			r.want = string(fleet.StateStalled)
		}
		return true
	}
	switch what := random.IntN(5); {
	case what == 0:
		send(syscall.SIGKILL)
		r.gone, r.want = true, string(fleet.StateLost)
	case what == 1 && mayEnd:
		send(syscall.SIGTERM)
		r.gone, r.want = true, "ended 130"
	case what == 2: // as behind a network that is gone
		send(syscall.SIGSTOP)
		r.asleep, r.want = true, string(fleet.StateLost)
	case what == 3:
		send(syscall.SIGUSR1)
		r.hangs, r.want = true, string(fleet.StateStalled)
	default:
		return false
	}
	return true
}

// statesAre waits until all processes are listed with the states that they are in, and returns how
// long that took.
func statesAre(ctx context.Context, client *fleet.Client, all []*fleetRun) (time.Duration, error) {
	began := time.Now()
	wrong := []string{"nothing is known"}
	for time.Since(began) < fleetWait && ctx.Err() == nil {
		s, err := client.Snapshot(ctx)
		if err != nil {
			wrong = []string{err.Error()}
			continue
		}
		got := map[int]string{}
		for _, m := range slices.Concat(s.Members, s.Ended) {
			got[m.Rank] = m.Status.String()
		}
		wrong = nil
		for rank, r := range all {
			if got[rank] != r.want {
				wrong = append(wrong, fmt.Sprintf("process %d is listed as %q, want %q", rank, got[rank], r.want))
			}
		}
		if len(wrong) == 0 {
			return time.Since(began), nil
		}
		pause(ctx, 100*time.Millisecond)
	}
	return 0, errors.Join(ctx.Err(), fmt.Errorf("after %v: %s", fleetWait, strings.Join(wrong[:min(len(wrong), 5)], "; ")))
}

// beMember is a run of a fleet: it trains until SIGUSR1, from when it hangs, and ends with SIGTERM.
func beMember(args []string) int {
	if len(args) != 2 {
		fmt.Fprintf(os.Stderr, "chaos: given %q, want an address and a rank\n", args)
		return 2
	}
	rank, err := strconv.Atoi(args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return 2
	}
	hang, stop := signal.NotifyContext(context.Background(), syscall.SIGUSR1)
	defer stop()
	end, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	manager := opmanager.New(opregistry.NewRegistry(), oppolicy.Default(), opmanager.Settings{})
	defer manager.Close()
	began := time.Now()
	agent, err := fleet.NewAgent(fleet.Settings{
		Config:   fleet.Config{Endpoints: []string{args[0]}},
		Identity: fleet.Identity{Experiment: "exp", Backend: "native", Rank: rank, WorldSize: fleetMembers, Host: "localhost", PID: os.Getpid(), Started: began},
		Manager:  manager, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Status: func() fleet.Status {
			if hang.Err() != nil {
				return fleet.Status{State: fleet.StateStalled, Detail: "told so"}
			}
			return fleet.Status{State: fleet.StateTraining, Step: int(time.Since(began).Seconds())}
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return 2
	}
	agent.Start(end)
	<-end.Done()
	agent.Ended(130, "interrupted")
	agent.Close()
	return 130
}
