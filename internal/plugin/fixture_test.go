package plugin_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/loadertest"
	"github.com/primus-fl/primus/internal/plugin"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// side is an enumeration as ops have them.
type side uint8

// everything has an argument of every sort.
type everything struct {
	In      *tensor.Tensor           `op:"0 in read any ?"`
	Out     *tensor.Tensor           `op:"1 out write any ?"`
	Flag    bool                     `op:"2 flag"`
	Side    side                     `op:"3 side"`
	Small   int8                     `op:"4 small"`
	Count   uint64                   `op:"5 count"`
	Step    int                      `op:"6 step"`
	Scale   float32                  `op:"7 scale"`
	Factor  float64                  `op:"8 factor"`
	Alpha   opregistry.OptionalFloat `op:"9 alpha"`
	List    []*tensor.Tensor         `op:"10 list update any ?"`
	Lists   [][]*tensor.Tensor       `op:"11 lists"`
	Axes    []int                    `op:"12 axes"`
	Options `op:"13"`
	Saved   *opregistry.Saved
}

// Window and Options are structs in arguments.
type Window struct {
	Left  int `op:"0 left"`
	Right int `op:"1 right"`
}

type Options struct {
	WindowSize Window  `op:"0 window_size"`
	PDropout   float32 `op:"2 pdropout"`
}

// probe is what most ops of the fixture take.
type probe struct {
	Out  *tensor.Tensor `op:"0 out update any ?"`
	Mode int            `op:"1 mode"`
	Text int            `op:"2 text"`
}

var everythingOp = opregistry.NewOp("everything", opregistry.Schema[everything]{Family: "everything", Forward: true, Lists: "a update any; b? update any; c? update any"})

var probeOp = opregistry.NewOp("probe", opregistry.Schema[probe]{})

// fixtureOps is the catalogue that fixtures implement.
var fixtureOps = []opregistry.Handle{everythingOp, probeOp}

// compile builds a C file of testdata into a shared library and returns its path.
func compile(t testing.TB, source string, flags ...string) string {
	t.Helper()
	macros := []string{"-I../../vendors/abi", fmt.Sprintf("-DPROBE=%#xULL", plugin.LayoutHash(probeOp)), fmt.Sprintf("-DEVERYTHING=%#xULL", plugin.LayoutHash(everythingOp))}
	name := "lib" + strings.TrimSuffix(source, ".c") + ".so"
	return loadertest.Library(t, name, "testdata/"+source, append(macros, flags...)...)
}

// lines collects what plugins log, one "LEVEL text" a line.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// take returns the lines since the last take.
func (l *lines) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.TrimSuffix(l.text.String(), "\n")
	l.text.Reset()
	return strings.Split(text, "\n")
}

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// openFixture opens fixture.c and returns its impls by id.
func openFixture(t testing.TB) (*plugin.Plugin, map[string]opregistry.Impl, *lines) {
	t.Helper()
	log := &lines{}
	p, err := plugin.Open(compile(t, "fixture.c"), plugin.Settings{Ops: fixtureOps, Log: log.logger()})
	require.NoError(t, err)
	return p, implsOf(p.Source()), log
}

func implsOf(src opregistry.Source) map[string]opregistry.Impl {
	impls := map[string]opregistry.Impl{}
	for _, i := range src.Impls {
		impls[i.ID] = i
	}
	return impls
}

func newExec() *opregistry.Exec { return opregistry.NewExec(nil, device.DefaultStream) }

func floats(t testing.TB, values []float32, shape ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.FromSlice(values, shape...)
	require.NoError(t, err)
	return x
}

// call runs an impl of probeOp and returns what it wrote.
func call(t testing.TB, impl opregistry.Impl, mode, text int) ([]float32, error) {
	t.Helper()
	out := make([]float32, 4)
	err := impl.Run.(opregistry.Func[probe])(newExec(), probe{Out: floats(t, out, 4), Mode: mode, Text: text})
	return out, err
}
