// Command sbom writes the bill of materials of a Go program as CycloneDX JSON, from what the go
// command recorded in it.
//
//	go run ./internal/sbom PROGRAM VERSION > PROGRAM.cdx.json
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
)

// bom is the part of a CycloneDX 1.5 document that a Go program can fill.
type bom struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Ref        string     `json:"bom-ref"`
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom PROGRAM VERSION")
		os.Exit(2)
	}
	if err := run(os.Stdout, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// run writes the bill of materials of a program. The version is an argument because the go command
// does not know it when it builds a checkout.
func run(out io.Writer, program, version string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("read how %s was built: %w", program, err)
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(billOf(info, version))
}

// billOf lists the standard library and the modules that are linked in.
func billOf(info *debug.BuildInfo, version string) bom {
	program := module("application", info.Main.Path, version)
	for _, s := range info.Settings {
		program.Properties = append(program.Properties, property{"go:build:" + s.Key, s.Value})
	}
	b := bom{Format: "CycloneDX", SpecVersion: "1.5", Version: 1, Metadata: metadata{program}}
	b.Components = append(b.Components, module("library", "std", info.GoVersion))
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := module("library", m.Path, m.Version)
		if m.Sum != "" {
			c.Properties = []property{{"go:sum", m.Sum}}
		}
		b.Components = append(b.Components, c)
	}
	whole := dependency{Ref: program.Ref}
	for _, c := range b.Components {
		whole.DependsOn = append(whole.DependsOn, c.Ref)
	}
	b.Dependencies = []dependency{whole}
	return b
}

func module(kind, path, version string) component {
	purl := "pkg:golang/" + path + "@" + version
	return component{Ref: purl, Type: kind, Name: path, Version: version, PURL: purl}
}
