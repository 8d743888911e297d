package mpi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/primus-fl/primus/vendors/mpi/internal/pmi"
)

// The variables with which ranks meet that no launcher of MPI has started: those of torchrun, and
// ours.
const (
	envRank    = "RANK"
	envSize    = "WORLD_SIZE"
	envAddress = "MASTER_ADDR"
	envPort    = "MASTER_PORT"
	envOwnPort = "PRIMUS_MPI_PORT"
	envSecret  = "PRIMUS_JOB_SECRET"
)

// patience is how long a rank waits for the first one.
const patience = 10 * time.Minute

// place is where and as what a rank meets the others.
type place struct {
	rank, ranks int
	address     string
}

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
	p := place{rank: number(envRank), ranks: number(envSize)}
	host, _ := lookup(envAddress)
	if p.ranks < 2 || p.rank < 0 || host == "" || openMPI.own(lookup) {
		return place{}, false
	}
	port := number(envOwnPort)
	if port < 0 {
		port = number(envPort) + 1 // torchrun itself listens at the one before
	}
	p.address = net.JoinHostPort(host, strconv.Itoa(port))
	return p, port > 0
}

// meeting connects the ranks of a job with the first one.
type meeting struct {
	server *pmi.Server // in the first rank
	client *pmi.Client
}

// begin waits for the first rank, and lets MPICH communicate with it.
func (m *meeting) begin(lookup func(string) (string, bool), lost func(error)) error {
	p, ok := meetingOf(lookup)
	if !ok {
		return fmt.Errorf("mpi: %s, %s, %s and %s do not say where the ranks meet", envRank, envSize, envAddress, envPort)
	}
	secret, _ := lookup(envSecret)
	if p.rank == 0 {
		_, port, err := net.SplitHostPort(p.address)
		if err != nil {
			return fmt.Errorf("mpi: %w", err)
		}
		listener, err := net.Listen("tcp", net.JoinHostPort("", port))
		if err != nil {
			return fmt.Errorf("mpi: listen for the other ranks: %w; %s names another port", err, envOwnPort)
		}
		m.server = pmi.Serve(listener, p.ranks, secret)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	if m.client, err = pmi.Join(ctx, p.address, p.rank, p.ranks, secret, lost); err != nil {
		return fmt.Errorf("mpi: %w", err)
	}
	return errors.Join(
		os.Setenv("PMI_FD", strconv.Itoa(m.client.FD())), os.Setenv("PMI_RANK", strconv.Itoa(p.rank)), os.Setenv("PMI_SIZE", strconv.Itoa(p.ranks)),
	)
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
