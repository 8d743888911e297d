package primustest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// FreePort returns a port of this machine at which nobody listens, nor at the next one. The system
// gives none of this range to connections, which could take it before the test does.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		if n := 10000 + rand.IntN(20000); freeAt(n) && freeAt(n+1) {
			return n
		}
	}
	t.Fatal("no two ports in a row are free")
	return 0
}

func freeAt(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(port)))
	return err == nil && listener.Close() == nil
}

// FreeAddress returns the address of a free port.
func FreeAddress(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(FreePort(t)))
}
