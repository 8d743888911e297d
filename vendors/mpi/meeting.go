package mpi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/primus-fl/primus/vendors/mpi/internal/pmi"
)

// The variables with which ranks meet that no launcher of MPI has started: those of torchrun, and
// ours.
const (
	envRank       = "RANK"
	envSize       = "WORLD_SIZE"
	envAddress    = "MASTER_ADDR"
	envPort       = "MASTER_PORT"
	envOwnAddress = "PRIMUS_MPI_ADDR"
	envOwnPort    = "PRIMUS_MPI_PORT"
	envSecret     = "PRIMUS_JOB_SECRET"
)

const (
	patience    = 10 * time.Minute // for which ranks wait for each other, unless Meet is given a time
	firstWord   = 5 * time.Second  // after which a rank says for whom it waits
	furtherWord = 30 * time.Second // between the words that follow
	retry       = time.Second / 5  // between attempts to listen
)

// LostError says that a job has ended before it began, because one of its other ranks did.
type LostError struct {
	Err         error
	Interrupted bool // that rank was interrupted
}

// wordInterrupted begins what a rank says that leaves because it was interrupted.
const wordInterrupted = "interrupted"

func lostError(err error) *LostError {
	return &LostError{err, strings.Contains(err.Error(), " has left: "+wordInterrupted)}
}

// Error says which rank, and why.
func (e *LostError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *LostError) Unwrap() error { return e.Err }

// place is where and as what a rank meets the others.
type place struct {
	rank, ranks int
	host, port  string
	local       int // ranks on this machine; 0 if that is not known
}

// address is where the first rank is for the others.
func (p place) address() string { return net.JoinHostPort(p.host, p.port) }

// String names the rank.
func (p place) String() string { return fmt.Sprintf("rank %d of %d", p.rank, p.ranks) }

// meetingOf returns the place of this process; ok is false when it is not one rank of several.
func meetingOf(lookup func(string) (string, bool)) (place, bool) {
	number := func(name string) int {
		text, _ := lookup(name)
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return -1
		}
		return n
	}
	p := place{rank: number(envRank), ranks: number(envSize), local: max(number("LOCAL_WORLD_SIZE"), 0)}
	p.host, _ = lookup(envAddress)
	if p.ranks < 2 || p.rank < 0 || p.host == "" || openMPI.own(lookup) {
		return place{}, false
	}
	port := number(envOwnPort)
	if port < 0 {
		port = number(envPort) + 1 // torchrun itself listens at the one before
	}
	p.port = strconv.Itoa(port)
	return p, port > 0
}

// meeting connects the ranks of a job with the first one.
type meeting struct {
	lookup func(string) (string, bool)
	lost   func(error) // may be nil
	warn   func(error)
	record *recorder
	server *pmi.Server // in the first rank
	client *pmi.Client

	gone  chan error  // a rank was lost before the job began
	begun atomic.Bool // MPI is initialised
}

// lose is told that the job cannot go on.
func (m *meeting) lose(err error) {
	switch {
	case !m.begun.Load():
		select {
		case m.gone <- err:
		default: // the first loss counts
		}
	case m.lost != nil:
		m.lost(err)
	}
}

// wait is how long ranks wait for each other.
type wait struct {
	ctx   context.Context
	limit time.Duration
	begun time.Time
	over  <-chan time.Time // after limit
}

func newWait(ctx context.Context, limit time.Duration) *wait {
	return &wait{ctx: ctx, limit: limit, begun: time.Now(), over: time.After(limit)}
}

// until waits for the end of something that runs on another goroutine, and warns at times for whom
// it waits, as state says.
func (m *meeting) until(w *wait, done <-chan error, state func() string) error {
	word := time.NewTimer(max(0, firstWord-time.Since(w.begun)))
	defer word.Stop()
	for {
		select {
		case err := <-done:
			return err
		case err := <-m.gone:
			return lostError(err)
		case <-w.ctx.Done():
			return interrupted(w.ctx)
		case <-w.over:
			return fmt.Errorf("the ranks have not met within %v (--rendezvous-timeout): %s", w.limit, state())
		case <-word.C:
			m.warn(fmt.Errorf("%s; given up after %v (--rendezvous-timeout), %v have passed", state(), w.limit, time.Since(w.begun).Round(time.Second)))
			word.Reset(furtherWord)
		}
	}
}

// interrupted is the error of a meeting whose context has ended.
func interrupted(ctx context.Context) error {
	by := ""
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		by = fmt.Sprintf(" by %v", cause)
	}
	return fmt.Errorf("%s%s while the ranks met: %w", wordInterrupted, by, ctx.Err())
}

// begin waits for all ranks, and lets MPICH communicate with the first one.
func (m *meeting) begin(w *wait) error {
	p, ok := meetingOf(m.lookup)
	if !ok {
		return fmt.Errorf("%s, %s, %s and %s do not say where the ranks meet", envRank, envSize, envAddress, envPort)
	}
	address, err := p.address(), error(nil)
	if p.rank == 0 {
		if address, err = m.open(w, p); err != nil {
			return err
		}
	}
	if err := m.join(w, p, address); err != nil {
		return err
	}
	met := make(chan error, 1)
	go func() {
		<-m.client.All()
		met <- nil
	}()
	if err := m.until(w, met, func() string { return m.missing(p, address) }); err != nil {
		return err
	}
	return errors.Join(
		os.Setenv("PMI_FD", strconv.Itoa(m.client.FD())), os.Setenv("PMI_RANK", strconv.Itoa(p.rank)), os.Setenv("PMI_SIZE", strconv.Itoa(p.ranks)),
	)
}

// open lets the first rank listen for all, and returns where.
func (m *meeting) open(w *wait, p place) (address string, err error) {
	host, given := p.host, envAddress
	if own, _ := m.lookup(envOwnAddress); own != "" {
		host, given = own, envOwnAddress
	}
	var listener net.Listener
	for {
		listener, err = new(net.ListenConfig).Listen(w.ctx, "tcp", net.JoinHostPort(host, p.port))
		if _, unknown := errors.AsType[*net.DNSError](err); !unknown {
			break
		}
		// The name of a pod is known a while after it has started.
		later := make(chan error, 1)
		time.AfterFunc(retry, func() { later <- nil })
		if err := m.until(w, later, func() string { return fmt.Sprintf("%v cannot listen for the others yet: %v (%s)", p, err, given) }); err != nil {
			return "", err
		}
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "", m.occupied(w, p, net.JoinHostPort(host, p.port))
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "", fmt.Errorf("listen for the other ranks: %w: %s is not an address of this machine, on which rank 0 runs: %s names the one to listen at, such as 0.0.0.0 for all of them", err, given, envOwnAddress)
	case err != nil:
		return "", fmt.Errorf("listen for the other ranks: %w (%s)", err, given)
	}
	secret, _ := m.lookup(envSecret)
	m.server = pmi.Serve(listener, p.ranks, secret, pmi.Host{
		Refused: func(err error) { m.warn(fmt.Errorf("refused at the rendezvous: %w", err)) },
		Judge:   func(states map[int]string) string { return judge(states, p.ranks) },
	})
	return listener.Addr().String(), nil
}

// occupied says who listens where rank 0 should.
func (m *meeting) occupied(w *wait, p place, address string) error {
	ctx, cancel := context.WithTimeout(w.ctx, callTime)
	defer cancel()
	secret, _ := m.lookup(envSecret)
	client, err := pmi.Attend(ctx, address, p.rank, p.ranks, secret, pmi.Guest{Lost: func(error) {}})
	if err == nil { // it has just begun, and knows no rank 0 yet
		err = errors.Join(errors.New("another process waits for rank 0 there"), client.Leave("it met another rank 0"))
	}
	return fmt.Errorf("listen for the other ranks: the port is in use: %w; %s names another port", err, envOwnPort)
}

// join connects this rank with the first one.
func (m *meeting) join(w *wait, p place, address string) error {
	ctx, cancel := context.WithCancel(w.ctx)
	secret, _ := m.lookup(envSecret)
	joined, ended := make(chan error, 1), make(chan struct{})
	var client *pmi.Client
	go func() {
		defer close(ended)
		var err error
		client, err = pmi.Join(ctx, address, p.rank, p.ranks, secret, pmi.Guest{Lost: m.lose, State: m.record.state})
		joined <- err
	}()
	err := m.until(w, joined, func() string {
		return fmt.Sprintf("%v waits for rank 0, which does not answer at %s", p, address)
	})
	cancel()
	<-ended // what is connected now is closed with the meeting
	m.client = client
	return err
}

// missing says for whom a rank waits that has reached the first one.
func (m *meeting) missing(p place, address string) string {
	there := pmi.Parse(m.client.Came())
	var absent []int
	for rank := range p.ranks {
		if !there[rank] && rank != p.rank {
			absent = append(absent, rank)
		}
	}
	at := fmt.Sprintf("rank 0 listens at %s", address)
	if host, _, err := net.SplitHostPort(address); err == nil && p.rank == 0 && p.local < p.ranks {
		if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
			at += fmt.Sprintf(", which only this machine reaches: %s=0.0.0.0 listens at all addresses", envOwnAddress)
		}
	}
	if len(absent) == 0 {
		return fmt.Sprintf("%v waits for the word that all have come; %s", p, at)
	}
	there[p.rank] = true
	return fmt.Sprintf("%v waits for %s; there: %s; %s", p, named(absent), named(slices.Sorted(maps.Keys(there))), at)
}

// named returns the numbers of ranks after the word for them.
func named(ranks []int) string {
	if len(ranks) == 1 {
		return "rank " + pmi.Numbers(ranks)
	}
	return "ranks " + pmi.Numbers(ranks)
}

// leave ends the job. The other ranks hear why. The client is kept for MPICH, whose call may not
// have returned.
func (m *meeting) leave(why error) {
	if m.client != nil {
		_ = m.client.Leave(why.Error()) // the job has failed already
	}
	if m.server != nil {
		_ = m.server.End(fmt.Sprintf("rank 0 has left: %v", why))
	}
}

// close ends the meeting, after MPI has ended.
func (m *meeting) close() error {
	var faults []error
	if m.client != nil {
		faults = append(faults, m.client.Close())
	}
	if m.server != nil {
		faults = append(faults, m.server.Close())
	}
	return errors.Join(faults...)
}
