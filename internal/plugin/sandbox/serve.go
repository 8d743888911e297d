package sandbox

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"strings"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/plugin"
	"github.com/primus-fl/primus/opregistry"
)

// The files of a process that serves a plugin.
const (
	socketFile = firstExtraFile + 1 + iota
	memoryFile
)

// Serve does the work of the process of an isolated plugin. It returns when the host is gone.
func Serve(path string, set plugin.Settings) error {
	enterChild(memoryFile - firstExtraFile + 1)
	if _, err := takeStdout(); err != nil {
		return err
	}
	socket := os.NewFile(socketFile, "host")
	s := &server{exec: opregistry.NewExec(nil, device.DefaultStream), memory: &memory{file: os.NewFile(memoryFile, "shared memory")}}
	set.Before = announceStep
	set.Log = slog.New(&lineLog{out: os.Stderr})
	p, err := plugin.Open(path, set)
	if err != nil {
		return reply{failed, err.Error()}.write(socket)
	}
	s.impls = p.Source().Impls
	if err := (reply{served, implList(s.impls)}).write(socket); err != nil {
		return fmt.Errorf("sandbox: answer the host: %w", err)
	}
	for {
		r, err := readRequest(socket)
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("sandbox: read a call: %w", err)
		}
		if err := s.answer(r).write(socket); err != nil {
			return fmt.Errorf("sandbox: answer the host: %w", err)
		}
	}
}

// implList names the impls, one per line. Both processes compare it, so that a number means the
// same impl in both.
func implList(impls []opregistry.Impl) string {
	var b strings.Builder
	for _, i := range impls {
		fmt.Fprintf(&b, "%s %s\n", i.Op.Name(), i.ID)
	}
	return b.String()
}

// server serves the calls of an isolated plugin.
type server struct {
	exec   *opregistry.Exec
	memory *memory
	impls  []opregistry.Impl
}

func (s *server) answer(r request) reply {
	switch err := s.call(r); {
	case err == nil:
		return reply{outcome: served}
	case errors.Is(err, opregistry.ErrUnsupported):
		return reply{declined, strings.TrimPrefix(err.Error(), opregistry.ErrUnsupported.Error()+": ")}
	default:
		return reply{failed, err.Error()}
	}
}

func (s *server) call(r request) error {
	if int64(r.impl) >= int64(len(s.impls)) {
		return fmt.Errorf("given a call of impl %d of %d", r.impl, len(s.impls))
	}
	if err := s.memory.attach(int(r.reserved)); err != nil {
		return err
	}
	data := s.memory.data
	if r.at > uint64(len(data)) || uint64(r.length) > uint64(len(data))-r.at {
		return errShort
	}
	impl := s.impls[r.impl]
	args, err := decode(impl.Op, data[r.at:r.at+uint64(r.length)], data)
	if err != nil {
		return err
	}
	result := reflect.ValueOf(impl.Run).Call([]reflect.Value{reflect.ValueOf(s.exec), args})
	err, _ = result[0].Interface().(error)
	return err
}
