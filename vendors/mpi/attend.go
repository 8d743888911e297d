package mpi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
	"unsafe"

	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/mpi/internal/pmi"
)

const (
	invitationSize = 1 << 10         // bytes
	callTime       = 2 * time.Second // for which a rank tries an address of the first one
)

// attend connects the ranks that a launcher of MPI has started with the first one, so that they see
// at once when one of them is gone or hangs: the launcher sees only a process that ends. If a rank
// cannot connect, such as behind a firewall, it warns and all go on without.
func (m *meeting) attend(h *handle, rank, ranks int) error {
	invitation := make([]byte, invitationSize) // a secret and addresses, then zeros
	var own error
	if rank == 0 {
		own = m.invite(invitation, h.together, ranks)
	}
	count, kind := h.bits(tensor.U8, len(invitation))
	if err := h.do("MPI_Bcast", h.broadcast, uintptr(unsafe.Pointer(&invitation[0])), count, kind, 0, h.world); err != nil {
		return err
	}
	if own == nil {
		own = m.accept(invitation, rank, ranks)
	}
	came, all := new(int32), new(int32)
	if own == nil {
		*came = 1
	}
	if err := h.do("MPI_Allreduce", h.allReduce, uintptr(unsafe.Pointer(came)), uintptr(unsafe.Pointer(all)), 1, h.int32, h.min, h.world); err != nil {
		return err
	}
	if *all == 1 {
		return nil
	}
	if own != nil {
		m.warn(fmt.Errorf("rank %d: %w; a rank that hangs is seen after distributed_timeout_minutes only", rank, own))
	}
	return m.part(h)
}

// part ends the connections, before any of them can look as if it were lost.
func (m *meeting) part(h *handle) error {
	var faults []error
	if m.client != nil {
		faults = append(faults, m.client.Close())
	}
	faults = append(faults, h.do("MPI_Barrier", h.barrier, h.world))
	if m.server != nil {
		faults = append(faults, m.server.Abandon())
	}
	m.client, m.server = nil, nil
	return errors.Join(faults...)
}

// invite listens for the other ranks, and writes to what all of them get.
func (m *meeting) invite(to []byte, together bool, ranks int) error {
	hosts := []string{"127.0.0.1"}
	listenAt := hosts[0]
	if own, _ := m.lookup(envOwnAddress); own != "" {
		hosts, listenAt = []string{own}, own
	} else if !together {
		listenAt = ""
		var err error
		if hosts, err = ownAddresses(); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(listenAt, "0"))
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return err
	}
	secret := rand.Text()
	words := []string{secret}
	for _, host := range hosts {
		words = append(words, net.JoinHostPort(host, port))
	}
	text := strings.Join(words, " ")
	for len(text) > len(to) {
		text = text[:strings.LastIndexByte(text, ' ')]
	}
	copy(to, text)
	m.server = pmi.Serve(listener, ranks, secret, pmi.Host{Judge: func(states map[int]string) string { return judge(states, ranks) }})
	return nil
}

// ownAddresses returns the addresses of this machine at which others can reach it.
func ownAddresses() ([]string, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var hosts []string
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			hosts = append(hosts, n.IP.String())
		}
	}
	return hosts, nil
}

// accept connects with the first rank, at the first of its addresses that answers.
func (m *meeting) accept(invitation []byte, rank, ranks int) error {
	words := strings.Fields(strings.TrimRight(string(invitation), "\x00"))
	if len(words) < 2 {
		return errors.New("the first rank has no address")
	}
	var faults []error
	for _, address := range words[1:] {
		ctx, cancel := context.WithTimeout(context.Background(), callTime)
		client, err := pmi.Attend(ctx, address, rank, ranks, words[0], pmi.Guest{Lost: m.lose, State: m.record.state})
		cancel()
		if err == nil {
			m.client = client
			return nil
		}
		faults = append(faults, err)
	}
	return fmt.Errorf("none of the addresses of rank 0 answers: %w", errors.Join(faults...))
}
