//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/primus-fl/primus/document/formats"
	datacorpus "github.com/primus-fl/primus/internal/native/data/corpus"
	"github.com/primus-fl/primus/internal/pyreader"
	"github.com/primus-fl/primus/internal/safetensors"
	"github.com/primus-fl/primus/internal/tokenizer/chat"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/runtime/config"
)

// soon is within what time work ends after its context. It is time of the CPU, because other
// programs disturb the clock.
const soon = 100 * time.Millisecond

// cpuTime returns the time of the CPU that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("BUG: " + err.Error())
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// growing makes values of chat templates that cost much, and using are ways to go through them.
var (
	growing = []string{
		`{% set ns = namespace(x=['ab']) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}`,
		`{% set ns = namespace(x=[]) %}{% for i in range(90000) %}{% set ns.x = [ns.x] %}{% endfor %}`,
		`{% set ns = namespace(x='ab' * 400000) %}`,
		`{% set ns = namespace(x='ab ' * 5000000) %}`,
		`{% set ns = namespace(x='\n' * 9000000) %}`,
		`{% set ns = namespace(x=range(90000)|list) %}`,
		`{% set ns = namespace(x=('a'*1000000)|list) %}`,
	}
	using = []string{
		`{{ ns.x }}`, `{{ ns.x|tojson }}`, `{{ ns.x == ns.x }}`, `{{ ns.x|string|upper }}`, `{{ 'zz' in ns.x }}`, `{% set y = ns.x|list %}`,
		`{% set y = ns.x|replace('a', '') %}`, `{% set y = ns.x[::-1] %}`, `{% set y = ns.x|sort %}`, `{% set y = ns.x|unique|list %}`,
		`{% set y = ns.x.split('q') %}`, `{% set y = ns.x|join('') %}`, `{% set y = ns.x|indent %}`, `{% set y = ns.x ~ 'a' %}`, `{% set y = ns.x|max %}`,
		`{% set y = ns.x|title %}`, `{% set y = ns.x|wordcount %}`, `{% set y = ns.x.split() %}`, `{% set y = ns.x.rsplit('a') %}`, `{% set y = ns.x.splitlines() %}`,
		`{% set y = ns.x|string|replace('', 'b') %}`, `{% set y = ns.x|string|replace('a', 'b') %}`, `{% set y = ns.x.isspace() %}`, `{% set y = ns.x|indent(1000, blank=true) %}`,
	}
)

// cancelWork ends the context of each kind of work with hostile input at a random moment.
func cancelWork(ctx context.Context, l *lab, random *rand.Rand) (attacks int, err error) {
	if err := os.MkdirAll(l.dir, 0o755); err != nil {
		return 0, err
	}
	kinds, err := hostileWork(l.dir, random)
	if err != nil {
		return 0, err
	}
	for _, k := range kinds {
		ctx, cancel := context.WithCancel(ctx)
		after := time.Duration(random.IntN(300)) * time.Millisecond
		ended := make(chan time.Duration, 1)
		timer := time.AfterFunc(after, func() {
			ended <- cpuTime()
			cancel()
		})
		err := k.do(ctx)
		returned := cpuTime()
		early := timer.Stop()
		cancel()
		if early { // it was done, refused or beyond its budget
			attacks++
			continue
		}
		if took := returned - <-ended; took > soon {
			return attacks, fmt.Errorf("%s: given %v from the end of its context to that of the work (%v), want at most %v", k.name, took, err, soon)
		}
		attacks++
	}
	return attacks, nil
}

// work is something that has a budget, with an input that costs much.
type work struct {
	name string
	do   func(ctx context.Context) error
}

// hostileWork writes inputs into a directory.
func hostileWork(dir string, random *rand.Rand) ([]work, error) {
	source := growing[random.IntN(len(growing))] + "{% for i in range(90000) %}" + using[random.IntN(len(using))] + "{% endfor %}"
	template, err := chat.Parse(source)
	if err != nil {
		return nil, err
	}
	all := []work{{"the chat template " + source, func(ctx context.Context) error {
		_, _, err := template.Render(ctx, chat.Vars{}, time.Time{})
		return err
	}}}
	repository := filepath.Join(dir, "repository", "primus", "backends", "megatron", "patches")
	if err := os.MkdirAll(repository, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(repository, "a_patches.py"), []byte("x = 'ab'\n"+strings.Repeat("x = [x, x]\n", 60)+strings.Repeat("y = str(x)\n", 20_000)), 0o600); err != nil {
		return nil, err
	}
	all = append(all, work{"a repository of patches", func(ctx context.Context) error {
		_, err := pyreader.Open(ctx, filepath.Join(dir, "repository"))
		return err
	}})
	long := filepath.Join(dir, "long.yaml")
	if err := os.WriteFile(long, []byte("a:\n"+strings.Repeat("- {a: 1, b: [2, 3]}\n", 50_000)), 0o600); err != nil {
		return nil, err
	}
	all = append(all, work{"an experiment", func(ctx context.Context) error {
		_, err := config.LoadExperiment(ctx, long, config.Options{Formats: formats.All()})
		return err
	}}, work{"a policy", func(ctx context.Context) error {
		_, err := policyfile.Read(ctx, long)
		return err
	}})
	for name, write := range map[string]func(io.Writer) error{
		"zeros.txt.gz": func(w io.Writer) error {
			z := gzip.NewWriter(w)
			return errors.Join(zeros(z, 1<<30), z.Close())
		},
		"zeros.jsonl.zst": func(w io.Writer) error {
			z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
			return errors.Join(err, zeros(z, 1<<30), z.Close())
		},
		"zeros.parquet":  func(w io.Writer) error { return writeParquet(w, 1<<24, false) },
		"snappy.parquet": func(w io.Writer) error { return writeParquet(w, 1<<25, true) },
	} {
		path := filepath.Join(dir, name)
		if err := writeTo(path, write); err != nil {
			return nil, err
		}
		all = append(all, work{name, func(ctx context.Context) error {
			c, err := datacorpus.Find(ctx, datacorpus.Settings{Path: path})
			if err != nil {
				return err
			}
			return c.Read(ctx, func(datacorpus.Piece) error { return nil })
		}})
	}
	for name, write := range map[string]func(io.Writer) error{
		"header.safetensors": func(w io.Writer) error {
			text := `{"a":{"dtype":"U8","data_offsets":[0,0],"shape":[` + strings.Repeat("0,", 40<<20) + `0]}}`
			_, err := w.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...))
			return err
		},
		"tensor.safetensors": func(w io.Writer) error {
			text := `{"a":{"dtype":"U8","shape":[1073741824],"data_offsets":[0,1073741824]}}`
			_, err := w.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...))
			return errors.Join(err, w.(*os.File).Truncate(int64(8+len(text)+1<<30)))
		},
	} {
		path := filepath.Join(dir, name)
		if err := writeTo(path, write); err != nil {
			return nil, err
		}
		all = append(all, work{name, func(ctx context.Context) error {
			f, err := safetensors.Open(ctx, path)
			if err != nil {
				return err
			}
			defer f.Close()
			content, err := f.Section("a") // as weights are read
			if err == nil {
				_, err = io.Copy(io.Discard, content)
			}
			return err
		}})
	}
	return all, nil
}

// writeTo writes a file unless an earlier try has.
func writeTo(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

func zeros(w io.Writer, n int) error {
	b := make([]byte, 1<<20)
	for ; n > 0; n -= len(b) {
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// writeParquet writes a file with a page of empty texts in a column named text, which it may
// compress with Snappy.
func writeParquet(w io.Writer, values int, packed bool) error {
	varint := func(n int) []byte { return binary.AppendVarint(nil, int64(n)) }
	join := func(parts ...any) (b []byte) {
		for _, p := range parts {
			switch p := p.(type) {
			case int:
				b = append(b, byte(p))
			case string:
				b = append(append(b, byte(len(p))), p...)
			case []byte:
				b = append(b, p...)
			}
		}
		return append(b, 0)
	}
	page, codec := make([]byte, 4*values), 0
	size := varint(len(page))
	if packed {
		page, codec = snappy.Encode(nil, page), 1
	}
	header := join(0x15, varint(0), 0x15, size, 0x15, varint(len(page)), 0x2c, join(0x15, varint(values), 0x15, varint(0), 0x15, varint(3)))
	meta := join(0x15, varint(6), 0x35, varint(codec), 0x16, varint(values), 0x26, varint(len(header)+len(page)), 0x26, varint(4))
	group := join(0x19, 0x1c, join(0x3c, meta), 0x26, varint(values))
	schema := [][]byte{join(0x48, "root", 0x15, varint(1)), join(0x15, varint(6), 0x25, varint(0), 0x18, "text")}
	footer := join(0x29, 0x2c, schema[0], schema[1], 0x29, 0x1c, group)
	for _, b := range [][]byte{[]byte("PAR1"), header, page, footer, binary.LittleEndian.AppendUint32(nil, uint32(len(footer))), []byte("PAR1")} {
		if _, err := io.Copy(w, bytes.NewReader(b)); err != nil {
			return err
		}
	}
	return nil
}
