package recording

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"unsafe"

	"github.com/primus-fl/primus/internal/argcopy"
	"github.com/primus-fl/primus/internal/safetensors"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Extension ends the names of files of calls.
const Extension = ".safetensors"

const (
	metadataKey = "primus_call"
	formatName  = "primus-call/1"
)

// Site says where a call was made.
type Site struct {
	Step   int            `json:"step"`  // of the run, counted from 1; 0 for none
	Number int            `json:"call"`  // of the op in that step, counted from 1
	Layer  int            `json:"layer"` // counted from 0; -1 outside of layers
	Phase  oppolicy.Phase `json:"phase,omitzero"`
}

// String describes the site: "step 3 layer 0 backward".
func (s Site) String() string {
	text := fmt.Sprintf("step %d", s.Step)
	if s.Layer >= 0 {
		text += fmt.Sprintf(" layer %d", s.Layer)
	}
	if s.Phase != 0 {
		text += " " + s.Phase.String()
	}
	return fmt.Sprintf("%s call %d", text, s.Number)
}

// header is what a file says of a call besides the data of its tensors.
type header struct {
	Format  string `json:"format"`
	Op      string `json:"op"`
	Impl    string `json:"impl_id,omitempty"`   // that served the call
	Owner   string `json:"saved_by,omitempty"`  // the impl that wrote the saved state that the call reads
	Error   string `json:"error,omitempty"`     // of a call that failed
	Primus  string `json:"primus,omitempty"`    // the version
	Machine string `json:"cpu_class,omitempty"` // of the CPU
	Why     string `json:"kept_because,omitempty"`
	Wrote   string `json:"wrote,omitempty"` // what the impl wrote to and should not have
	Site
	Args  []argument `json:"args"`
	Views []*view    `json:"tensors"`
}

// Call is a recorded call. Its fields are not to be changed.
type Call struct {
	Op   opregistry.Handle
	File string // "" before it is written
	header
}

// Impl returns the id of the impl that served the call, "" if the call failed.
func (c *Call) Impl() string { return c.header.Impl }

// Failure returns the error of a call that failed, "" for none.
func (c *Call) Failure() string { return c.header.Error }

// Take copies a call before it runs. The Call has no results.
func Take(call opmanager.TappedCall, site Site) (c *Call, err error) {
	if err := Recordable(call.Op); err != nil {
		return nil, err
	}
	clone, err := argcopy.Args(call.Args)
	if err != nil {
		return nil, fmt.Errorf("op %q: %w", call.Op.Name(), err)
	}
	c = &Call{Op: call.Op, header: header{Format: formatName, Op: call.Op.Name(), Site: site}}
	if saved := call.Args.Saved(); saved != nil && !call.Op.Forward() {
		c.header.Owner = saved.Owner()
	}
	views, names := viewsOf(call.Args, clone)
	_, args := clone.Clone()
	c.Views = views
	c.Args, err = encodeArguments(call.Op, args, names)
	return c, err
}

// end adds the result of the call.
func (c *Call) end(args opregistry.Call, served opmanager.ImplInfo, fault error) error {
	c.header.Impl = served.ID
	if fault != nil {
		c.header.Error = fault.Error()
		return nil
	}
	after, err := argcopy.Args(args)
	if err != nil {
		return fmt.Errorf("op %q: %w", c.Op.Name(), err)
	}
	written := map[string]*tensor.Tensor{}
	for _, o := range after.Operands() {
		if o.Tensor != nil {
			written[o.Name] = o.Tensor
		}
	}
	for _, v := range c.Views {
		if v.Written {
			v.after = written[v.Name]
		}
	}
	return nil
}

// Bytes returns the size of the tensors.
func (c *Call) Bytes() (n int64) {
	for _, v := range c.Views {
		for _, t := range []*tensor.Tensor{v.before, v.after} {
			if t != nil {
				n += int64(t.NumElements() * t.DType().Size())
			}
		}
	}
	return n
}

// Write writes the call to a file.
func (c *Call) Write(path string) error {
	text, err := json.Marshal(c.header)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	var entries []safetensors.Entry
	add := func(name string, t *tensor.Tensor) error {
		if t == nil {
			return nil
		}
		e, err := safetensors.FromTensor(name, t)
		entries = append(entries, e)
		return err
	}
	for _, v := range c.Views {
		if err := errors.Join(add(v.Name+".before", v.before), add(v.Name+".after", v.after)); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	return safetensors.WriteFile(path, entries, map[string]string{metadataKey: string(text)})
}

// FormatError says that a file does not hold a call that this program can run.
type FormatError struct {
	File    string
	Problem string
}

// Error names the file and what is wrong with it.
func (e *FormatError) Error() string { return fmt.Sprintf("%s: %s", e.File, e.Problem) }

// Open reads the file of a call of an op in a registry.
func Open(ctx context.Context, path string, snap *opregistry.Snapshot) (*Call, error) {
	f, err := safetensors.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fail := func(format string, args ...any) (*Call, error) {
		return nil, &FormatError{File: path, Problem: fmt.Sprintf(format, args...)}
	}
	text, ok := f.Metadata()[metadataKey]
	if !ok {
		return fail("given a safetensors file without the key %q in its metadata, want one that train --record-ops wrote", metadataKey)
	}
	c := &Call{File: path}
	if err := json.Unmarshal([]byte(text), &c.header); err != nil {
		return fail("its metadata: %v", err)
	}
	if c.Format != formatName {
		return fail("given format %q, want %q, which this version of primus reads", c.Format, formatName)
	}
	i, ok := snap.Index(c.header.Op)
	if !ok {
		return fail("given op %q, which this program does not have", c.header.Op)
	}
	c.Op = snap.Ops()[i]
	if err := c.read(f); err != nil {
		return fail("%v", err)
	}
	if _, err := c.Arguments(); err != nil {
		return fail("%v", err)
	}
	return c, nil
}

// read reads the tensors of a call.
func (c *Call) read(f *safetensors.File) error {
	seen := map[string]bool{}
	for _, v := range c.Views {
		if v == nil || seen[v.Name] {
			return errors.New("a tensor is listed twice or is null")
		}
		seen[v.Name] = true
		if !v.DType.Valid() || len(v.Shape) != len(v.Strides) {
			return fmt.Errorf("tensor %q: given dtype %v, shape %v and strides %v, want a dtype and one stride for each axis", v.Name, v.DType, v.Shape, v.Strides)
		}
		err := v.sized()
		if err != nil {
			return err
		}
		if v.before, err = c.tensor(f, v, ".before", v.Read); err == nil {
			v.after, err = c.tensor(f, v, ".after", v.Written && c.header.Error == "")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Call) tensor(f *safetensors.File, v *view, suffix string, wanted bool) (*tensor.Tensor, error) {
	if !wanted {
		return nil, nil
	}
	if err := f.Check(v.Name+suffix, v.DType, v.Shape); err != nil {
		return nil, err
	}
	t, err := newTensor(v.DType, v.Shape)
	if err != nil {
		return nil, err
	}
	return t, f.ReadInto(v.Name+suffix, t)
}

// newTensor returns a contiguous tensor in Go memory.
func newTensor(d tensor.DType, shape tensor.Shape) (*tensor.Tensor, error) {
	const word = 8
	n := shape.NumElements() * d.Size()
	words := make([]uint64, (n+word-1)/word)
	return tensor.FromBytes(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n), d, shape...)
}

// Arguments returns the arguments of the call in memory of their own, with the strides that they
// had. Operands that the call only writes are 0.
func (c *Call) Arguments() (opregistry.Call, error) {
	tensors := map[string]*tensor.Tensor{}
	for _, v := range c.Views {
		t, err := v.strided()
		if err != nil {
			return opregistry.Call{}, fmt.Errorf("tensor %q: %w", v.Name, err)
		}
		tensors[v.Name] = t
	}
	args := reflect.New(c.Op.Args()).Elem()
	if err := decodeArguments(c.Op, c.Args, args, tensors); err != nil {
		return opregistry.Call{}, err
	}
	if saved := savedOf(args); saved.IsValid() {
		record := &opregistry.Saved{}
		record.SetOwner(c.header.Owner)
		saved.Set(reflect.ValueOf(record))
	}
	call := opregistry.CallOf(c.Op, args.Interface())
	return call, call.Validate()
}

// Bounds of the memory of a tensor: its bytes, and how much larger than its elements gaps make it.
const (
	maxBytes = 1 << 34
	maxGap   = 64
)

// sized returns an error unless the tensor fits into the bounds.
func (v *view) sized() error {
	elements, span := 1.0, 1.0
	for i, n := range v.Shape {
		if n < 0 || v.Strides[i] < 0 {
			return fmt.Errorf("tensor %q: given shape %v and strides %v, want numbers >= 0", v.Name, v.Shape, v.Strides)
		}
		elements *= float64(n)
		span += float64(max(n-1, 0)) * float64(v.Strides[i])
	}
	if elements*float64(v.DType.Size()) > maxBytes || elements > 0 && span > maxGap*elements {
		return fmt.Errorf("tensor %q: given shape %v and strides %v, want at most %d bytes and gaps of at most %d times its elements", v.Name, v.Shape, v.Strides, maxBytes, maxGap)
	}
	return nil
}

// strided returns the tensor before the call with the strides that it had.
func (v *view) strided() (*tensor.Tensor, error) {
	span := 0
	if v.Shape.NumElements() > 0 {
		span = 1
		for i, n := range v.Shape {
			span += (n - 1) * v.Strides[i]
		}
	}
	t, err := newTensor(v.DType, tensor.Shape{span})
	if err != nil {
		return nil, err
	}
	if t, err = t.AsStrided(v.Shape, v.Strides, 0); err != nil {
		return nil, err
	}
	if v.before != nil {
		err = t.CopyFrom(v.before)
	}
	return t, err
}

// Files lists the files of calls that paths name: files, and directories with all that they hold,
// in the order of their names.
func Files(paths ...string) ([]string, error) {
	var all []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("recording: %w; want a file of a call, or a directory with some", err)
		}
		if !info.IsDir() {
			all = append(all, path)
			continue
		}
		found, err := filepath.Glob(filepath.Join(path, "*"+Extension))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: given a directory without files *%s, want that of train --record-dir", path, Extension)
		}
		slices.Sort(found)
		all = append(all, found...)
	}
	return all, nil
}
