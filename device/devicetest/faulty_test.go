package devicetest_test

import (
	"errors"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
)

// faults are ways to break the contract, and the sub-test that must notice.
var faults = map[string]struct {
	inject         func(b *cpu.Backend) device.Backend
	section, check string
}{
	"lower case name":        {func(b *cpu.Backend) device.Backend { return lowerCaseName{b} }, "identity", "name_is_upper_case_and_constant"},
	"any index":              {func(b *cpu.Backend) device.Backend { return anyIndex{b} }, "device", "index_out_of_range_is_an_error"},
	"wrong index":            {func(b *cpu.Backend) device.Backend { return wrongIndex{b} }, "device", "device_agrees_with_its_id"},
	"misaligned":             {func(b *cpu.Backend) device.Backend { return misaligned{b} }, "memory", "blocks_are_aligned"},
	"overlapping":            {func(b *cpu.Backend) device.Backend { return &overlapping{Backend: b} }, "memory", "blocks_do_not_overlap"},
	"dirty":                  {func(b *cpu.Backend) device.Backend { return dirty{b} }, "memory", "memory_is_zeroed_also_when_used_before"},
	"shared content":         {func(b *cpu.Backend) device.Backend { return &overlapping{Backend: b} }, "memory", "memory_keeps_what_is_written"},
	"size zero":              {func(b *cpu.Backend) device.Backend { return sizeZero{b} }, "memory", "size_zero_is_an_error"},
	"truncated size":         {func(b *cpu.Backend) device.Backend { return truncatedSize{b} }, "memory", "impossible_size_is_an_error"},
	"second free":            {func(b *cpu.Backend) device.Backend { return lenientFree{b} }, "memory", "second_free_is_an_error"},
	"free of nil":            {func(b *cpu.Backend) device.Backend { return lenientFree{b} }, "memory", "free_of_nil_is_an_error"},
	"foreign free":           {func(b *cpu.Backend) device.Backend { return lenientFree{b} }, "memory", "free_of_foreign_memory_is_an_error"},
	"interior free":          {func(b *cpu.Backend) device.Backend { return lenientFree{b} }, "memory", "free_of_an_interior_pointer_is_an_error"},
	"same event":             {func(b *cpu.Backend) device.Backend { return sameEvent{b} }, "event", "events_are_distinct_and_not_zero"},
	"unrecorded event":       {func(b *cpu.Backend) device.Backend { return lenientEvents{b} }, "event", "sync_of_an_unrecorded_event_is_an_error"},
	"freed event":            {func(b *cpu.Backend) device.Backend { return lenientEvents{b} }, "event", "use_of_a_freed_event_is_an_error"},
	"zero event":             {func(b *cpu.Backend) device.Backend { return lenientEvents{b} }, "event", "use_of_the_zero_event_is_an_error"},
	"event does not wait":    {func(b *cpu.Backend) device.Backend { return eagerEvents{b} }, "stream", "event_completes_with_the_work_before_it"},
	"event does not move":    {func(b *cpu.Backend) device.Backend { return eagerEvents{b} }, "stream", "recording_again_moves_the_event"},
	"work out of order":      {func(b *cpu.Backend) device.Backend { return &reversed{Backend: b} }, "stream", "work_runs_in_order"},
	"free does not wait":     {func(b *cpu.Backend) device.Backend { return eagerFree{b} }, "stream", "free_waits_for_the_work"},
	"freed stream":           {func(b *cpu.Backend) device.Backend { return lenientStreams{b} }, "stream", "use_of_a_freed_stream_is_an_error"},
	"free of default stream": {func(b *cpu.Backend) device.Backend { return lenientStreams{b} }, "stream", "free_of_the_default_stream_is_an_error"},
}

type lowerCaseName struct{ *cpu.Backend }

func (lowerCaseName) Name() string { return "cpu" }

type anyIndex struct{ *cpu.Backend }

func (anyIndex) SetDevice(int) error { return nil }

type wrongIndex struct{ *cpu.Backend }

func (wrongIndex) Device() (device.Device, error) {
	return device.Device{Type: device.TypeCPU, Index: 7}, nil
}

type misaligned struct{ *cpu.Backend }

func (b misaligned) Alloc(size uint64) (unsafe.Pointer, error) {
	p, err := b.Backend.Alloc(size + 8)
	if err != nil {
		return nil, err
	}
	return unsafe.Add(p, 8), nil
}

func (b misaligned) Free(p unsafe.Pointer) error { return b.Backend.Free(unsafe.Add(p, -8)) }

// overlapping returns the same memory to every caller.
type overlapping struct {
	*cpu.Backend
	memory [8 << 20]byte
}

func (b *overlapping) Alloc(uint64) (unsafe.Pointer, error) {
	return unsafe.Pointer(&b.memory[0]), nil
}

func (b *overlapping) Free(unsafe.Pointer) error { return nil }

type dirty struct{ *cpu.Backend }

func (b dirty) Alloc(size uint64) (unsafe.Pointer, error) {
	p, err := b.Backend.Alloc(size)
	if err == nil {
		*(*byte)(unsafe.Add(p, size-1)) = 1
	}
	return p, err
}

type sizeZero struct{ *cpu.Backend }

func (b sizeZero) Alloc(size uint64) (unsafe.Pointer, error) { return b.Backend.Alloc(max(size, 1)) }

type truncatedSize struct{ *cpu.Backend }

func (b truncatedSize) Alloc(size uint64) (unsafe.Pointer, error) {
	return b.Backend.Alloc(size % (1 << 24))
}

type lenientFree struct{ *cpu.Backend }

func (b lenientFree) Free(p unsafe.Pointer) error {
	_ = b.Backend.Free(p)
	return nil
}

type sameEvent struct{ *cpu.Backend }

func (sameEvent) CreateEvent() (device.Event, error) { return 1, nil }

// lenientEvents hides the errors of the real backend.
type lenientEvents struct{ *cpu.Backend }

func (b lenientEvents) FreeEvent(e device.Event) error {
	_ = b.Backend.FreeEvent(e)
	return nil
}

func (b lenientEvents) RecordEvent(e device.Event, s device.Stream) error {
	_ = b.Backend.RecordEvent(e, s)
	return nil
}

func (b lenientEvents) SyncEvent(e device.Event) error {
	_ = b.Backend.SyncEvent(e)
	return nil
}

type eagerEvents struct{ *cpu.Backend }

func (eagerEvents) SyncEvent(device.Event) error { return nil }

// reversed keeps work back and runs each pair of functions in the wrong order.
type reversed struct {
	*cpu.Backend
	held func()
}

func (b *reversed) Submit(s device.Stream, f func()) error {
	if b.held == nil {
		b.held = f
		return nil
	}
	first := b.held
	b.held = nil
	return errors.Join(b.Backend.Submit(s, f), b.Backend.Submit(s, first))
}

type eagerFree struct{ *cpu.Backend }

func (b eagerFree) FreeStream(s device.Stream) error {
	go func() { _ = b.Backend.FreeStream(s) }()
	return nil
}

// lenientStreams hides the errors of the real backend.
type lenientStreams struct{ *cpu.Backend }

func (b lenientStreams) FreeStream(s device.Stream) error {
	_ = b.Backend.FreeStream(s)
	return nil
}

func (b lenientStreams) Submit(s device.Stream, f func()) error {
	_ = b.Backend.Submit(s, f)
	return nil
}

func (b lenientStreams) RecordEvent(e device.Event, s device.Stream) error {
	_ = b.Backend.RecordEvent(e, s)
	return nil
}
