package torchfile

import (
	"math/big"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pickles are one value as Python's pickle writes it with the protocols 2 and 4.
var pickles = []string{
	"\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01]q\x02(K\x01J\xfe\xff\xff\xffM,\x01Jp\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x06\x00\x00\x00\x00\x00\xff\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00@\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\xc0eX\x01\x00\x00\x00bq\x03(N\x88\x89G?\xf8\x00\x00\x00\x00\x00\x00tq\x04X\x01\x00\x00\x00cq\x05)X\x01\x00\x00\x00dq\x06c_codecs\x0aencode\x0aq\x07X\x02\x00\x00\x00xyq\x08X\x06\x00\x00\x00latin1q\x09\x86q\x0aRq\x0bX\x01\x00\x00\x00eq\x0cX\x02\x00\x00\x00\xc3\xa9q\x0d\x85q\x0eX\x01\x00\x00\x00fq\x0fK\x01K\x02\x86q\x10X\x01\x00\x00\x00gq\x11c__builtin__\x0afrozenset\x0aq\x12]q\x13K\x07a\x85q\x14Rq\x15X\x01\x00\x00\x00hq\x16}q\x17X\x01\x00\x00\x00iq\x18h\x02u.",
	"\x80\x04\x95\x8d\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01a\x94]\x94(K\x01J\xfe\xff\xff\xffM,\x01Jp\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x06\x00\x00\x00\x00\x00\xff\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00@\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\xc0e\x8c\x01b\x94(N\x88\x89G?\xf8\x00\x00\x00\x00\x00\x00t\x94\x8c\x01c\x94)\x8c\x01d\x94C\x02xy\x94\x8c\x01e\x94\x8c\x02\xc3\xa9\x94\x85\x94\x8c\x01f\x94K\x01K\x02\x86\x94\x8c\x01g\x94(K\x07\x91\x94\x8c\x01h\x94}\x94\x8c\x01i\x94h\x02u.",
}

func TestUnpickle(t *testing.T) {
	t.Parallel()
	large := new(big.Int).Lsh(big.NewInt(1), 70)
	numbers := &list{[]any{int64(1), int64(-2), int64(300), int64(70000), int64(1 << 40), int64(-1 << 40), large, new(big.Int).Neg(large)}}
	for i, text := range pickles {
		v, err := unpickle([]byte(text), newMeter(t.Context()))
		require.NoError(t, err)
		d, ok := v.(*dict)
		require.True(t, ok)
		for name, want := range map[string]any{
			"a": numbers, "b": tuple{nil, true, false, 1.5}, "c": tuple(nil), "e": tuple{"é"}, "f": tuple{int64(1), int64(2)}, "h": &dict{}, "i": numbers,
			"d": []any{&object{class: "_codecs.encode", args: tuple{"xy", "latin1"}}, []byte("xy")}[i],
			"g": []any{&object{class: "__builtin__.frozenset", args: tuple{&list{[]any{int64(7)}}}}, &list{[]any{int64(7)}}}[i],
		} {
			assert.Equal(t, want, d.get(name), name)
		}
		assert.Len(t, d.pairs, 9)
		for n := range text {
			_, err := unpickle([]byte(text[:n]), newMeter(t.Context()))
			assert.ErrorIs(t, err, errShort, n)
		}
	}
}

// Classes and functions that checkpoints do not need are refused by their names, however they are
// named; nothing is called.
func TestUnpickleRefusesClasses(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"posix", "system"}, {"os", "system"}, {"builtins", "eval"}, {"builtins", "getattr"}, {"__builtin__", "exec"}, {"subprocess", "Popen"},
		{"torch", "load"}, {"torch.hub", "load"}, {"torch", "Size.x"}, {"numpy", "load"}, {"x\x00torch", "Size"}, {"torch", "Size\x00"},
	} {
		for _, text := range []string{
			"\x80\x02c" + c[0] + "\n" + c[1] + "\nX\x02\x00\x00\x00id\x85R.",
			"\x80\x04\x8c" + string(rune(len(c[0]))) + c[0] + "\x8c" + string(rune(len(c[1]))) + c[1] + "\x93\x8c\x02id\x85R.",
		} {
			_, err := unpickle([]byte(text), newMeter(t.Context()))
			require.ErrorContains(t, err, "given the class ")
			assert.ErrorContains(t, err, c[1][:4])
		}
	}
	for text, want := range map[string]string{
		"\x80\x04.":                         "without its operands",
		"\x80\x04h\x07.":                    "without its operands",
		"\x80\x04Kat.":                      "without its operands",
		"\x80\x04(K\x01.":                   "",
		"\x80\x04]K\x01K\x02s.":             "without its operands",
		"\x80\x04}(K\x01u.":                 "without its operands",
		"\x80\x04N}b.":                      "without its operands",
		"\x80\x04K\x01K\x02R.":              "without its operands",
		"\x80\x04(i":                        "the instruction 0x69",
		"\x80\x04X\xff\xff\xff\xffx.":       "cut short",
		"\x80\x04\x8e\xff\xff\xff\xff" + "": "cut short",
		"":                                  "cut short",
	} {
		_, err := unpickle([]byte(text), newMeter(t.Context()))
		if want == "" {
			assert.NoError(t, err, "%q", text)
		} else {
			assert.ErrorContains(t, err, want, "%q", text)
		}
	}
}

func FuzzUnpickle(f *testing.F) {
	for _, text := range pickles {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		primustest.Cost(t, len(text), 2000, func() {
			if v, err := unpickle(text, newMeter(t.Context())); err == nil {
				_, _ = entries(v)
				_, _ = ints(v)
				_ = field(v, "size")
			}
		})
	})
}
