package library_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/capi/internal/library"
	"github.com/primus-fl/primus/internal/plugin"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/vendors/abi"
)

// described returns the address of the description of an impl, and what it points to.
func described(op, id, vendor string, kind uint32, layout uint64) (unsafe.Pointer, *encoder) {
	e := &encoder{}
	text := func(s string) uintptr {
		if s == "" {
			return 0
		}
		return uintptr(place(e, append([]byte(s), 0)))
	}
	entry := []abi.Op{{
		StructSize: uint32(unsafe.Sizeof(abi.Op{})), Kind: kind, Op: text(op), ImplID: text(id), Vendor: text(vendor), Priority: 100,
		Run: 1, Layout: layout, // it is never called
	}}
	entries := []uintptr{uintptr(place(e, entry))}
	table := []abi.Plugin{{
		StructSize: uint32(unsafe.Sizeof(abi.Plugin{})), AbiMajor: abi.Major, NOps: 1, Name: text("program"), Ops: uintptr(place(e, entries)),
	}}
	place(e, table)
	return unsafe.Pointer(&table[0]), e
}

func TestRegister(t *testing.T) {
	t.Parallel()
	h := newHost(nil)
	m := h.open(t, library.Options{})
	layout := plugin.LayoutHash(activation.SiLU)
	table, e := described("silu", "reference.mine", "", abi.KindReference, layout)
	e.keep = append(e.keep, table)
	require.NoError(t, h.Register(m, table))
	text, err := h.Explain(m, "silu", false)
	require.NoError(t, err)
	assert.Contains(t, text, "reference.mine")
	err = h.Register(m, table)
	require.ErrorContains(t, err, "program")
	assert.EqualValues(t, library.CodeInvalid, library.Code(err))

	other := h.open(t, library.Options{})
	text, err = h.Explain(other, "silu", false)
	require.NoError(t, err)
	assert.NotContains(t, text, "reference.mine", "an impl belongs to one manager")

	for want, given := range map[string]func() (unsafe.Pointer, *encoder){
		"primus_plugin is NULL": func() (unsafe.Pointer, *encoder) { return nil, &encoder{} },
		"has no such op": func() (unsafe.Pointer, *encoder) {
			return described("sillu", "vendor.mine", "mine", abi.KindVendor, layout)
		},
		"without a vendor":         func() (unsafe.Pointer, *encoder) { return described("silu", "vendor.mine", "", abi.KindVendor, layout) },
		"kind of op \"silu\" is 7": func() (unsafe.Pointer, *encoder) { return described("silu", "vendor.mine", "mine", 7, layout) },
	} {
		table, e := given()
		err := h.Register(other, table)
		assert.ErrorContains(t, err, want)
		assert.EqualValues(t, library.CodeInvalid, library.Code(err), want)
		e.keep = nil
	}
}
