package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// target is a fuzz test.
type target struct {
	dir, name string
	floor     float64 // executions a second below which it tests too little
	oracle    string  // what it compares with, "" for properties of what was read
}

func (t target) String() string { return t.dir + "." + t.name }

// floor is that of targets that do not say another one.
const floor = 100

// floorText is the line of the comment of a fuzz test that gives another floor.
var floorText = regexp.MustCompile(`(?m)^Floor: (\d+) executions a second\.$`)

// oracleText is the line of the comment of a fuzz test that says what it compares with.
var oracleText = regexp.MustCompile(`(?m)^Oracle: (round trip|second decoder)\.$`)

// targets returns the fuzz tests below a directory whose names match, in order.
func targets(root string, only *regexp.Regexp) ([]target, error) {
	var found []target
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Fuzz") {
				continue
			}
			t := target{dir: filepath.ToSlash(dir), name: f.Name.Name, floor: floor}
			if m := floorText.FindStringSubmatch(f.Doc.Text()); m != nil {
				if t.floor, err = strconv.ParseFloat(m[1], 64); err != nil {
					return err
				}
			}
			if m := oracleText.FindStringSubmatch(f.Doc.Text()); m != nil {
				t.oracle = m[1]
			}
			if only.MatchString(t.String()) {
				found = append(found, t)
			}
		}
		return nil
	})
	slices.SortFunc(found, func(a, b target) int { return cmp.Compare(a.String(), b.String()) })
	return found, err
}
