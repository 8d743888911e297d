package sandbox

import (
	"encoding/binary"
	"fmt"
	"io"
)

// request is what the host sends for a call; the message is in shared memory.
type request struct {
	impl     uint32
	length   uint32 // of the message
	at       uint64 // where it begins
	reserved uint64 // bytes of shared memory
}

const requestBytes = 24

func (r request) write(w io.Writer) error {
	b := make([]byte, 0, requestBytes)
	b = binary.LittleEndian.AppendUint32(b, r.impl)
	b = binary.LittleEndian.AppendUint32(b, r.length)
	b = binary.LittleEndian.AppendUint64(b, r.at)
	b = binary.LittleEndian.AppendUint64(b, r.reserved)
	_, err := w.Write(b)
	return err
}

func readRequest(r io.Reader) (request, error) {
	var b [requestBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return request{}, err
	}
	return request{
		impl: binary.LittleEndian.Uint32(b[:]), length: binary.LittleEndian.Uint32(b[4:]),
		at: binary.LittleEndian.Uint64(b[8:]), reserved: binary.LittleEndian.Uint64(b[16:]),
	}, nil
}

// The outcomes of a reply.
const (
	served = iota
	declined
	failed
)

// reply is an outcome, with a text unless the call was served. The first reply of a process says
// whether it has opened the plugin; its text lists the impls.
type reply struct {
	outcome uint32
	text    string
}

// maxText bounds the text of a reply.
const maxText = 1 << 20

func (r reply) write(w io.Writer) error {
	text := r.text[:min(len(r.text), maxText)]
	b := make([]byte, 0, 8+len(text))
	b = binary.LittleEndian.AppendUint32(b, r.outcome)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	_, err := w.Write(append(b, text...))
	return err
}

func readReply(r io.Reader) (reply, error) {
	var b [8]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return reply{}, err
	}
	outcome, n := binary.LittleEndian.Uint32(b[:]), binary.LittleEndian.Uint32(b[4:])
	if outcome > failed || n > maxText {
		return reply{}, fmt.Errorf("its process sent an answer of outcome %d and %d bytes", outcome, n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return reply{}, err
	}
	return reply{outcome, string(text)}, nil
}
