//go:build unix

package pmi_test

import (
	"bufio"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/heartbeat"
	"github.com/primus-fl/primus/vendors/mpi/internal/pmi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// serve starts a server and returns it with its address.
func serve(t *testing.T, ranks int, secret string) (*pmi.Server, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return pmi.Serve(listener, ranks, secret, pmi.Host{}), listener.Addr().String()
}

// rank is a rank as MPICH sees it.
type rank struct {
	*pmi.Client
	file  *os.File
	lines *bufio.Scanner
	lost  chan error
}

func join(t *testing.T, address string, number, ranks int, secret string) *rank {
	t.Helper()
	r := &rank{lost: make(chan error, 1)}
	var err error
	r.Client, err = pmi.Join(t.Context(), address, number, ranks, secret, pmi.Guest{Lost: func(err error) { r.lost <- err }})
	require.NoError(t, err)
	r.file = os.NewFile(uintptr(r.FD()), "pmi")
	r.lines = bufio.NewScanner(r.file)
	return r
}

func (r *rank) say(t *testing.T, line string) {
	t.Helper()
	_, err := fmt.Fprintln(r.file, line)
	require.NoError(t, err)
}

func (r *rank) hear(t *testing.T) string {
	t.Helper()
	require.True(t, r.lines.Scan(), "%v", r.lines.Err())
	return r.lines.Text()
}

func (r *rank) close(t *testing.T) {
	t.Helper()
	require.NoError(t, r.file.Close())
	require.NoError(t, r.Close())
}

// Ranks publish values, wait for each other and read them, as MPICH does when it starts.
func TestInterface(t *testing.T) {
	t.Parallel()
	server, address := serve(t, 2, "")
	ranks := []*rank{join(t, address, 0, 2, ""), join(t, address, 1, 2, "")}
	for i, r := range ranks {
		for _, exchange := range [][2]string{
			{"cmd=init pmi_version=1 pmi_subversion=1", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"},
			{"cmd=get_maxes", "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024"},
			{"cmd=get_appnum", "cmd=appnum appnum=0"},
			{"cmd=get_my_kvsname", "cmd=my_kvsname kvsname=primus"},
			{"cmd=get_universe_size", "cmd=universe_size size=2"},
			{"cmd=get kvsname=primus key=other", "cmd=get_result rc=-1 msg=key_not_found value=unknown"},
			{fmt.Sprintf("cmd=put kvsname=primus key=P%d value=at#%d$", i, i), "cmd=put_result rc=0 msg=success"},
			{"cmd=spawn", "cmd=spawn_result rc=-1 msg=unknown_command"},
		} {
			r.say(t, exchange[0])
			assert.Equal(t, exchange[1], r.hear(t))
		}
	}
	for range 2 { // a barrier can be used again
		for _, r := range ranks {
			r.say(t, "cmd=barrier_in")
		}
		for _, r := range ranks {
			assert.Equal(t, "cmd=barrier_out", r.hear(t))
		}
	}
	ranks[0].say(t, "cmd=get kvsname=primus key=P1")
	assert.Equal(t, "cmd=get_result rc=0 msg=success value=at#1$", ranks[0].hear(t))
	for _, r := range ranks {
		r.say(t, "cmd=finalize")
		assert.Equal(t, "cmd=finalize_ack rc=0", r.hear(t))
		r.close(t)
	}
	require.NoError(t, server.Close())
	for _, r := range ranks {
		assert.Empty(t, r.lost, "a job that ends in order loses no rank")
	}
}

func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	refused := make(chan error, 10)
	pmi.Serve(listener, 2, "secret", pmi.Host{Refused: func(err error) { refused <- err }})
	address := listener.Addr().String()
	first := join(t, address, 0, 2, "secret")
	for _, tt := range []struct {
		rank, ranks int
		secret      string
		want        string
	}{
		{1, 2, "", "rank 1 of 2 does not know the secret of the job"},
		{1, 2, "other", "rank 1 of 2 does not know the secret of the job"},
		{0, 2, "secret", "there is a rank 0 already"},
		{2, 2, "secret", "given rank 2 of 2, want one of 2 ranks"},
		{1, 4, "secret", "given rank 1 of 4, want one of 2 ranks"},
	} {
		_, err := pmi.Join(t.Context(), address, tt.rank, tt.ranks, tt.secret, pmi.Guest{})
		assert.ErrorContains(t, err, tt.want)
		text := (<-refused).Error()
		assert.Contains(t, text, tt.want)
		assert.Contains(t, text, "127.0.0.1:")
	}
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	_, err = conn.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	require.NoError(t, err)
	answer := bufio.NewScanner(conn)
	require.True(t, answer.Scan())
	require.True(t, answer.Scan())
	assert.Contains(t, answer.Text(), "want a claim")
	assert.Empty(t, first.lost)
}

// Ranks hear of one that ends without a word, that is the first one, or that aborts.
func TestLostRanks(t *testing.T) {
	t.Parallel()
	_, address := serve(t, 3, "")
	var ranks []*rank
	for i := range 3 {
		ranks = append(ranks, join(t, address, i, 3, ""))
	}
	ranks[2].say(t, "cmd=abort exitcode=7")
	for _, r := range ranks[:2] {
		assert.EqualError(t, <-r.lost, "rank 2 has ended the job: MPI_Abort with code 7")
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := pmi.Serve(listener, 2, "", pmi.Host{})
	left := join(t, listener.Addr().String(), 0, 2, "")
	silent, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	greet(t, silent, 1, 2)
	require.NoError(t, silent.Close())
	assert.EqualError(t, <-left.lost, "rank 1 is gone: its connection is closed")
	require.NoError(t, server.Close())

	server, address = serve(t, 2, "")
	last := join(t, address, 1, 2, "")
	go func() { _ = server.Close() }()
	assert.ErrorContains(t, <-last.lost, "rank 0 is gone: ")
}

// greet does what a rank does that says nothing afterwards.
func greet(t *testing.T, conn net.Conn, number, ranks int) {
	t.Helper()
	lines := bufio.NewScanner(conn)
	require.True(t, lines.Scan())
	word, nonce, _ := strings.Cut(lines.Text(), " ")
	require.Equal(t, "primus", word)
	claim := fmt.Sprintf("rank %d of %d", number, ranks)
	_, err := fmt.Fprintf(conn, "claim %s %s\n", heartbeat.Proof("", nonce, claim), claim)
	require.NoError(t, err)
	require.True(t, lines.Scan())
	assert.Equal(t, "welcome", lines.Text())
}

// A rank that hangs is taken for lost.
func TestSilentRank(t *testing.T) {
	t.Parallel()
	_, address := serve(t, 2, "")
	left := join(t, address, 0, 2, "")
	silent, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer silent.Close() // not earlier, by the garbage collector
	greet(t, silent, 1, 2)
	assert.EqualError(t, <-left.lost, "rank 1 is gone: nothing was heard of it for 15s")
}

// Ranks that wait too long name the one that does not.
func TestHangingRank(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		waiting []int
		want    string
	}{
		{[]int{0, 2}, "rank 1 hangs: it has not come to where the others wait, MPI_Barrier for 1s"},
		{[]int{2}, "ranks 0, 1 hang: they have not come to where the others wait, MPI_Barrier for 1s"},
		{[]int{0, 1, 2}, "all ranks wait for each other in MPI_Barrier for 1s"},
	} {
		_, address := serve(t, 3, "")
		var ranks []*rank
		for i := range 3 {
			ranks = append(ranks, join(t, address, i, 3, ""))
		}
		for _, i := range tt.waiting {
			ranks[i].Stuck("MPI_Barrier for 1s")
		}
		for _, r := range ranks {
			assert.EqualError(t, <-r.lost, tt.want)
		}
	}
}

// Ranks of a launcher see one that is gone, and leave a job that goes on without being watched.
func TestAttend(t *testing.T) {
	t.Parallel()
	server, address := serve(t, 3, "secret")
	lost := make(chan error, 2)
	attend := func(rank int) *pmi.Client {
		c, err := pmi.Attend(t.Context(), address, rank, 3, "secret", pmi.Guest{Lost: func(err error) { lost <- err }})
		require.NoError(t, err)
		return c
	}
	first, second := attend(0), attend(1)
	second.Stuck("MPI_Barrier")
	assert.EqualError(t, <-lost, "ranks 0, 2 hang: they have not come to where the others wait, MPI_Barrier")
	<-lost
	require.NoError(t, first.Close())
	require.NoError(t, second.Close())
	require.NoError(t, server.Close())

	server, address = serve(t, 3, "secret")
	first = attend(0)
	require.NoError(t, first.Close())
	require.NoError(t, server.Abandon())
	assert.Empty(t, lost, "a rank that leaves is not lost")
}

// Ranks that wait for others hear who has come, until all have.
func TestWaitingRanks(t *testing.T) {
	t.Parallel()
	_, address := serve(t, 4, "")
	first, last := join(t, address, 0, 4, ""), join(t, address, 3, 4, "")
	for _, r := range []*rank{first, last} {
		require.Eventually(t, func() bool { return r.Came() == "0, 3" }, 2*time.Minute, 10*time.Millisecond)
		select {
		case <-r.All():
			t.Fatal("two of four are not all")
		default:
		}
	}
	others := []*rank{join(t, address, 1, 4, ""), join(t, address, 2, 4, "")}
	for _, r := range append(others, first, last) {
		<-r.All()
	}
	require.NoError(t, last.Leave("it has no text"))
	for _, r := range append(others, first) {
		assert.EqualError(t, <-r.lost, "rank 3 has left: it has no text")
	}
	assert.Empty(t, last.lost, "who leaves knows it")
}

// A rank that leaves, and the end of the server, close no connection of MPICH: it may wait in
// MPI_Init_thread, and would end the process.
func TestLeaving(t *testing.T) {
	t.Parallel()
	server, address := serve(t, 2, "")
	first, second := join(t, address, 0, 2, ""), join(t, address, 1, 2, "")
	<-first.All()
	<-second.All()
	first.say(t, "cmd=barrier_in") // no answer comes before both have said so
	require.NoError(t, first.Leave("it was interrupted"))
	require.NoError(t, server.End("rank 0 has left: it was interrupted"))
	assert.EqualError(t, <-second.lost, "rank 0 has left: it was interrupted")
	require.NoError(t, second.Leave("so has the other"))
	for _, r := range []*rank{first, second} {
		fd := r.FD()
		require.NoError(t, syscall.SetNonblock(fd, true))
		_, err := syscall.Read(fd, make([]byte, 1))
		assert.ErrorIs(t, err, syscall.EAGAIN, "it is open, and says nothing")
	}
	runtime.KeepAlive(first)
	runtime.KeepAlive(second)
}

// Whatever numbers are written, the same are read.
func TestNumbers(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "0-2, 5, 7-8", pmi.Numbers([]int{0, 1, 2, 5, 7, 8}))
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		want := map[int]bool{}
		for n := range 40 {
			if r.IntN(3) > 0 {
				want[n] = true
			}
		}
		assert.Equal(t, want, pmi.Parse(pmi.Numbers(slices.Sorted(maps.Keys(want)))))
	}
	for _, text := range []string{"", "x", "3-", "-", "0-999999999", "2-1"} {
		assert.Empty(t, pmi.Parse(text), text)
	}
}
