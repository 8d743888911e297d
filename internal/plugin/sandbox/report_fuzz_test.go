package sandbox

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/internal/primustest"
)

// Whatever a child prints, in whatever pieces, its report is read or refused, and nothing that was
// said is lost or made up.
func FuzzReport(f *testing.F) {
	said := `{"said":{"name":"acme_ops","version":"1.2.0","abi":"1.0","ops":[{"op":"probe","impl_id":"vendor.acme","kind":"vendor","priority":100,"flags":["thread_safe"],"available":true,"trial":{"served":4,"declined":2}}],"left_out":[]}}`
	f.Add([]byte(said+"\n"+`{"done":true}`+"\n"), uint8(7))
	f.Add([]byte(said+"\n"+said+"\n"), uint8(1))
	f.Add([]byte(`{"said":{"error":"it is no plugin"}}`+"\n"), uint8(0))
	f.Add([]byte("{\"done\":true}\n{\"done\":false}\n"), uint8(3))
	f.Add([]byte("printed by a library\n"), uint8(2))
	f.Add([]byte(`{"said":null}`+"\n\n"+`{"said":[1e999]}`), uint8(5))
	f.Fuzz(func(t *testing.T, data []byte, piece uint8) {
		defer primustest.Measured(t, len(data))()
		var got [][]byte
		box := inbox{said: func(value []byte) error {
			got = append(got, bytes.Clone(value))
			var a answer
			return json.Unmarshal(value, &a)
		}}
		for rest := data; len(rest) > 0; {
			n := min(len(rest), int(piece)+1)
			written, err := box.Write(rest[:n])
			assert.NoError(t, err)
			assert.Equal(t, n, written, "a child is never blocked")
			rest = rest[n:]
		}
		for _, value := range got {
			assert.True(t, json.Valid(value))
			assert.Contains(t, string(data), string(value))
		}
	})
}

// Whatever a child prints on its standard error, how it ended is one line of printable text.
func FuzzListener(f *testing.F) {
	f.Add([]byte("primus: runs its constructors\nSIGSEGV: segmentation violation\nPC=0x0\n"))
	f.Add([]byte("primus: was ended by SIGKILL (killed)\nprimus: processes left over 3\n"))
	f.Add([]byte("acme: no licence\x1b[2J\r\n\xff\xfe"))
	f.Add([]byte("primus: logs WARN+7 hello\nprimus: processes left over -9999999999999999999999\n"))
	f.Add([]byte(strings.Repeat("x", 20000)))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer primustest.Measured(t, len(data))()
		var l listener
		lines := 0
		l.line = func(line string) {
			lines++
			assert.LessOrEqual(t, len(line), maxLine+len(data))
		}
		_, err := l.Write(data)
		assert.NoError(t, err)
		l.end()
		assert.NotContains(t, l.step(), "\x1b")
		assert.NotContains(t, l.step(), "\n")
		assert.NotContains(t, l.ended, "\x1b")
		assert.LessOrEqual(t, len(l.last), maxQuoted+3*maxQuoted)
		assert.LessOrEqual(t, lines, bytes.Count(data, []byte("\n"))+1+len(data)/maxLine)
	})
}
