package rankops

import (
	"bytes"
	"io"
	"net"
	"testing"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"

	"github.com/primus-fl/primus/internal/primustest"
)

// FuzzCollector reads what a process may send: no line ends the collector, and what reaches the
// sink is bounded by what was sent.
func FuzzCollector(f *testing.F) {
	f.Add([]byte(`{"protocol":1,"version":"1","rank":"3"}` + "\n" + `{"events":[{"event":"selected","op":"add","times":3}],"calls":[{}]}` + "\n"))
	f.Add([]byte(`{"protocol":2}` + "\n"))
	f.Add([]byte(`{"protocol":1,"rank":"-1"}` + "\n" + `{"events":[{"event":"fell_back","times":18446744073709551615}]}`))
	f.Add([]byte(`{"protocol":1}` + "\n" + `{"events":[{"event":"selected","times":1048576},{"event":"released","times":1048576}]}`))
	f.Fuzz(func(t *testing.T, sent []byte) {
		defer primustest.Measured(t, len(sent))()
		told, events := 0, 0
		c := &Collector{conns: map[net.Conn]struct{}{}, sink: Sink{
			Event: func(rank int, _ opmanager.Event) {
				events++
				if rank < 0 {
					t.Errorf("an event of rank %d", rank)
				}
			},
			Calls: func(_ int, calls []backend.RankCalls) { told += len(calls) },
			Warn:  func(text string) { told += len(text) / 1000 },
		}}
		here, there := net.Pipe()
		go func() {
			_, _ = there.Write(sent) // which ends when serve closes the connection
			there.Close()
		}()
		go io.Copy(io.Discard, there)
		c.serve(here)
		if told > len(sent) {
			t.Errorf("given %d bytes, told of %d", len(sent), told)
		}
		if most := mostTimes * bytes.Count(sent, []byte("\n")); events > most {
			t.Errorf("told of %d events, want at most %d", events, most)
		}
	})
}
