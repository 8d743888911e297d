package scaffold_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/primus-fl/primus/internal/plugin/scaffold"
)

func ExampleProject() {
	dir, err := os.MkdirTemp("", "scaffold-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	p := scaffold.Project{Language: "c", Name: "acme"}
	if err := p.Write(filepath.Join(dir, "acme")); err != nil {
		log.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "acme", "*"))
	if err != nil {
		log.Fatal(err)
	}
	for _, file := range files {
		fmt.Println(filepath.Base(file))
	}
	for _, line := range p.Next() {
		fmt.Println("$", line)
	}
	// Output:
	// .gitignore
	// Makefile
	// README.md
	// acme.c
	// include
	// $ make
	// $ primus plugins check ./libacme.so
}
