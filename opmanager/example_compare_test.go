package opmanager_test

import (
	"fmt"
	"log"

	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
)

func ExampleCompare() {
	registry := opregistry.NewRegistry()
	for _, src := range []opregistry.Source{flagos.Source(), reference.Source()} {
		if err := registry.Register(src); err != nil {
			log.Fatal(err)
		}
	}
	today := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{})
	defer today.Close()
	tomorrow := oppolicy.Default()
	if err := tomorrow.SetPerOp("swiglu=reference;dswiglu=vendor:acme", "tomorrow.yaml"); err != nil {
		log.Fatal(err)
	}
	view := today.With(tomorrow)
	defer view.Close()

	changes, err := opmanager.Compare(today, view, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range changes {
		fmt.Printf("%s: %s -> %q\n", c.Op, c.From, c.To)
	}
	for _, c := range opmanager.WithoutImpl(today, view) {
		fmt.Println("without an impl:", c.Op)
	}
	// Output:
	// swiglu: default.flagos -> "reference.go"
	// dswiglu: default.flagos -> ""
	// without an impl: dswiglu
}
