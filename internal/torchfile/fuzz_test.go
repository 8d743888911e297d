package torchfile

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
)

// unicode is the instruction for a text.
func unicode(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

// metadata is the description of a checkpoint that has one tensor of 2 x 3 elements.
func metadata(size, chunks, length string) string {
	attributes := func(pairs ...string) string { return "}(" + strings.Join(pairs, "") + "u" }
	object := func(class, state string) string { return "c" + class + "\n)\x81" + state + "b" }
	planned := "torch.distributed.checkpoint.metadata\n"
	tensor := object(planned+"TensorStorageMetadata", attributes(
		unicode("size"), size,
		unicode("properties"), object(planned+"TensorProperties", attributes(unicode("dtype"), "ctorch\nfloat32\n")),
		unicode("chunks"), chunks,
	))
	index := object(planned+"MetadataIndex", attributes(unicode("fqn"), unicode("w"), unicode("offset"), "K\x00K\x00\x86"))
	place := object("torch.distributed.checkpoint.filesystem\n_StorageInfo", attributes(
		unicode("relative_path"), unicode("__0_0.distcp"), unicode("offset"), "K\x00", unicode("length"), length))
	return "\x80\x02" + object(planned+"Metadata", attributes(
		unicode("state_dict_metadata"), "}"+unicode("w")+tensor+"s",
		unicode("storage_data"), "}"+index+place+"s",
	)) + "."
}

// one is the list of the one piece of the tensor of metadata.
const one = "](ctorch.distributed.checkpoint.metadata\nChunkStorageMetadata\n)\x81}(" +
	"X\x07\x00\x00\x00offsetsK\x00K\x00\x86X\x05\x00\x00\x00sizesK\x02K\x03\x86ube"

// doubled is a value that two instructions of a few bytes double, so that its text has no end.
func doubled(times int) string {
	return "K\x01" + strings.Repeat("q\x00h\x00\x86", times)
}

// describeAll reads a description as OpenCheckpoint does.
func describeAll(text []byte) (*Checkpoint, error) {
	root, err := unpickle(text, newMeter(context.Background()))
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{tensors: map[string]*Tensor{}}
	return c, c.read(root)
}

// Instructions that use a value again and again cost no more than they are long.
func TestShortPicklesAreCheap(t *testing.T) {
	size := "K\x02K\x03\x86"
	if c, err := describeAll([]byte(metadata(size, one, "K\x18"))); err != nil || len(c.tensors["w"].chunks) != 1 {
		t.Fatalf("given %v, want a tensor of one piece", err)
	}
	name := "X" + string(binary.LittleEndian.AppendUint32(nil, 1<<20)) + strings.Repeat("a", 1<<20) + "q\x01"
	for what, tt := range map[string]struct{ text, want string }{
		"a size without an end":   {metadata(doubled(100), one, "K\x18"), "given the size tuple, want at most 32 whole numbers"},
		"a length without an end": {metadata(size, one, doubled(100)), "given tuple bytes from 0 on"},
		"many dimensions":         {metadata("("+strings.Repeat("K\x01", 33)+"t", one, "K\x18"), "want at most 32 whole numbers"},
		"long names":              {unicode("megatron") + "q\x00" + name + strings.Repeat("h\x00h\x01\x93", 1000) + ".", "given a class whose name has 1048584 bytes, want at most 512"},
	} {
		if _, err := describeAll([]byte(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: given %.200v, want %q", what, err, tt.want)
		}
	}
}

// The pieces of a tensor may be one value many times.
func TestPiecesAreBounded(t *testing.T) {
	root, err := unpickle([]byte(metadata("K\x02K\x03\x86", one, "K\x18")), newMeter(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	described, _ := entries(field(root, "state_dict_metadata"))
	pieces := field(described[0][1], "chunks").(*list)
	for len(pieces.items) <= maxChunks {
		pieces.items = append(pieces.items, pieces.items...)
	}
	if err := (&Checkpoint{tensors: map[string]*Tensor{}}).read(root); err == nil || !strings.Contains(err.Error(), "pieces, want at most 1048576") {
		t.Errorf("given %v, want an error that names the limit", err)
	}
}

// FuzzMetadata gives pickles to the reader of checkpoints. Whatever they hold, they cost memory in
// proportion to their length.
func FuzzMetadata(f *testing.F) {
	f.Add([]byte(metadata("K\x02K\x03\x86", one, "K\x18")))
	f.Add([]byte(metadata(doubled(40), one, "K\x18")))
	f.Add([]byte("\x80\x02]q\x00h\x00a."))
	f.Add([]byte("\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00\x8c\x05torch\x94\x8c\x04Size\x94\x93\x94K\x01\x85\x85R."))
	f.Add([]byte("(}(]\x8fNN\x88\x89J\xff\xff\xff\xffM\x00\x01\x8a\x02\xff\x80G\x00\x00\x00\x00\x00\x00\x00\x00C\x01aB\x01\x00\x00\x00bu1."))
	f.Fuzz(func(t *testing.T, text []byte) {
		var c *Checkpoint
		var err error
		primustest.Cost(t, len(text), 2000, func() { c, err = describeAll(text) })
		if err != nil {
			if len(err.Error()) > 2000+4*len(text) {
				t.Errorf("given %d bytes, the error has %d", len(text), len(err.Error()))
			}
			return
		}
		for _, name := range c.Names() {
			for _, k := range c.Tensor(name).chunks {
				if k.file == "" || k.begin < 0 || k.bytes < 1 {
					t.Errorf("tensor %q: given the piece %+v, want a place of it", name, k)
				}
			}
		}
	})
}
