//go:build linux && (amd64 || arm64)

package main

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// disk is a model of what a disk holds after system calls, and of what a loss of power may leave of
// that. POSIX promises only what fsync was called for: the content of a file after an fsync of the
// file, and a name after an fsync of its directory. Everything else may have reached the disk or
// not, in any order.
type disk struct {
	dir  string
	root *node
}

func newDisk(dir string) *disk { return &disk{dir, newNode(true)} }

// node is a file or a directory.
type node struct {
	isDir bool

	names  map[string]*node // of a directory as processes see it
	synced map[string]*node // those that are on the disk for certain
	moves  []move           // changes of names that are not

	data    []byte // of a file as processes see it
	flushed []byte // the content that is on the disk for certain
	writes  []write
}

// move gives a name to a node, or none. Both halves of a rename in one directory are one move.
type move map[string]*node

// write changes the content of a file: its length, or bytes in it.
type write struct {
	size int64 // the new length, -1 for bytes
	at   int64
	data []byte
}

func newNode(isDir bool) *node {
	return &node{isDir: isDir, names: map[string]*node{}, synced: map[string]*node{}}
}

// at returns the directory of a path and the last element.
func (d *disk) at(path string) (*node, string, error) {
	below, err := filepath.Rel(d.dir, path)
	if err != nil {
		return nil, "", err
	}
	parts := strings.Split(below, "/")
	n := d.root
	for _, part := range parts[:len(parts)-1] {
		if n = n.names[part]; n == nil || !n.isDir {
			return nil, "", fmt.Errorf("%s: no directory %s in the model", path, part)
		}
	}
	return n, parts[len(parts)-1], nil
}

// file returns the node at a path.
func (d *disk) file(path string) (*node, error) {
	if path == d.dir {
		return d.root, nil
	}
	dir, base, err := d.at(path)
	if err == nil && dir.names[base] == nil {
		err = fmt.Errorf("%s is not in the model", path)
	}
	if err != nil {
		return nil, err
	}
	return dir.names[base], nil
}

// apply makes a call.
func (d *disk) apply(c fileCall) error {
	switch c.kind {
	case callReport, callClose:
		return nil
	case callSync:
		n, err := d.file(c.path)
		if err == nil {
			n.sync()
		}
		return err
	case callWrite, callTruncate:
		n, err := d.file(c.path)
		if err != nil {
			return err
		}
		if c.kind == callWrite {
			n.change(write{size: -1, at: c.at, data: c.data})
		} else {
			n.change(write{size: c.size})
		}
		return nil
	}
	dir, base, err := d.at(c.path)
	if err != nil {
		return err
	}
	switch c.kind {
	case callOpen, callMkdir:
		if n := dir.names[base]; n == nil {
			dir.move(move{base: newNode(c.kind == callMkdir)})
		} else if c.empty {
			n.change(write{})
		}
	case callRemove:
		dir.move(move{base: nil})
	case callRename, callExchange:
		to, name, err := d.at(c.to)
		if err != nil {
			return err
		}
		there, here := move{name: dir.names[base]}, move{base: nil}
		if c.kind == callExchange {
			here[base] = to.names[name]
		}
		if dir != to {
			to.move(there)
		} else {
			maps.Copy(here, there)
		}
		dir.move(here)
	}
	return nil
}

func (n *node) move(m move) {
	m.on(n.names)
	n.moves = append(n.moves, m)
}

func (m move) on(names map[string]*node) {
	for name, n := range m {
		if n == nil {
			delete(names, name)
		} else {
			names[name] = n
		}
	}
}

func (n *node) change(w write) {
	n.data = w.on(n.data)
	n.writes = append(n.writes, w)
}

// on returns the content after the write.
func (w write) on(data []byte) []byte {
	size := w.size
	if w.size < 0 {
		size = max(int64(len(data)), w.at+int64(len(w.data)))
	}
	data = slices.Grow(slices.Clone(data), int(max(0, size-int64(len(data)))))
	for int64(len(data)) < size {
		data = append(data, 0)
	}
	data = data[:size]
	copy(data[min(w.at, size):], w.data)
	return data
}

func (n *node) sync() {
	n.synced, n.moves = maps.Clone(n.names), nil
	n.flushed, n.writes = n.data, nil
}

// survivor draws what a loss of power leaves: of the changes that were not synced, all, none, the
// first ones or some. Of writes, a part may be left, and the length without the bytes.
func (n *node) survivor(random *rand.Rand) *node {
	left := newNode(n.isDir)
	maps.Copy(left.names, n.synced)
	for i, keep := range kept(random, len(n.moves)) {
		if keep {
			n.moves[i].on(left.names)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left.names)) {
		left.names[name] = left.names[name].survivor(random)
	}
	left.data = n.flushed
	for i, keep := range kept(random, len(n.writes)) {
		w := n.writes[i]
		switch torn := random.IntN(4); {
		case keep && torn == 0 && w.size < 0:
			w.data = w.data[:random.IntN(len(w.data)+1)]
			left.change(w)
		case keep:
			left.change(w)
		case torn == 0 && w.size < 0:
			left.change(write{size: max(int64(len(left.data)), w.at+int64(len(w.data)))})
		}
	}
	return left
}

// kept draws which of n changes are left.
func kept(random *rand.Rand, n int) []bool {
	some := make([]bool, n)
	how, first := random.IntN(4), random.IntN(n+1)
	for i := range some {
		some[i] = []bool{false, true, i < first, random.IntN(2) == 0}[how]
	}
	return some
}

// put writes the files of a directory to a real one.
func (n *node) put(dir string) error {
	for name, child := range n.names {
		path := filepath.Join(dir, name)
		if !child.isDir {
			if err := os.WriteFile(path, child.data, 0o644); err != nil {
				return err
			}
			continue
		}
		if err := errors.Join(os.Mkdir(path, 0o755), child.put(path)); err != nil {
			return err
		}
	}
	return nil
}
