package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// process is a child that serves a plugin.
type process struct {
	*child
	kill   context.CancelFunc
	limit  time.Duration
	socket *os.File
	memory *memory
}

// startProcess starts a child. line receives what it prints.
func startProcess(path string, set Settings, line func(string)) (_ *process, err error) {
	p := &process{limit: set.Timeout}
	if p.memory, err = newMemory(); err != nil {
		return nil, err
	}
	var theirs *os.File
	if p.socket, theirs, err = socketPair(); err != nil {
		p.memory.close()
		return nil, err
	}
	defer theirs.Close()
	var ctx context.Context
	ctx, p.kill = context.WithCancel(context.Background())
	if p.child, err = newChild(ctx, set, path, theirs, p.memory.file); err == nil {
		p.stderr.line = line
		err = p.start()
	}
	if err != nil {
		p.release()
		return nil, err
	}
	return p, nil
}

func (p *process) release() {
	p.kill()
	p.socket.Close()
	p.memory.close()
}

// answer waits for a reply.
func (p *process) answer() (reply, error) {
	if err := p.socket.SetReadDeadline(time.Now().Add(p.limit)); err != nil {
		return reply{}, err
	}
	return readReply(p.socket)
}

// call sends the message of a call with the operands that are read.
func (p *process) call(impl uint32, e *encoder) (reply, error) {
	if err := p.memory.reserve(e.size + len(e.body)); err != nil {
		return reply{}, err
	}
	for i := range e.tensors {
		t := &e.tensors[i]
		if !t.read {
			continue
		}
		in, err := t.in(p.memory.data)
		if err == nil {
			err = in.CopyFrom(t.tensor)
		}
		if err != nil {
			return reply{}, err
		}
	}
	copy(p.memory.data[e.size:], e.body)
	r := request{impl: impl, length: uint32(len(e.body)), at: uint64(e.size), reserved: uint64(len(p.memory.data))}
	if err := r.write(p.socket); err != nil {
		return reply{}, err
	}
	return p.answer()
}

// copyBack copies the operands that were written to the memory of the caller.
func (p *process) copyBack(e *encoder) error {
	for i := range e.tensors {
		t := &e.tensors[i]
		if !t.written {
			continue
		}
		out, err := t.in(p.memory.data)
		if err == nil {
			err = t.tensor.CopyFrom(out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lastWords is how long a child that has closed its end may take to say why.
const lastWords = time.Second

// end ends the child after an error of its connection in a call of what, and returns the cause.
func (p *process) end(err error, what string) error {
	gone := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
	patience := time.Duration(0)
	if gone || errors.Is(err, context.Canceled) {
		patience = lastWords
	}
	p.socket.Close()
	p.lifeline.Close()
	timer := time.AfterFunc(patience, p.kill)
	_ = p.wait()
	timer.Stop()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		if what == "" {
			what = p.stderr.step()
		}
		err = fmt.Errorf("its process did not answer within %v%s and was killed", p.limit, in(what))
	case gone && what != "":
		err = fmt.Errorf("%s in %s", p.ending(), what)
	case gone:
		err = errors.New(p.death())
	}
	p.release()
	return err
}
