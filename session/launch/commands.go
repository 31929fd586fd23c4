package launch

import (
	"os"

	"pooled/catalog"
)

// Streams are a command's standard streams.
type Streams struct{ In, Out, Err *os.File }

// ListCommand prints the catalogue.
type ListCommand struct {
	Models string `help:"Where models are kept (default: ~/.pooled/models; also POOLED_MODELS)." placeholder:"DIR"`
}

// Run prints it.
func (c *ListCommand) Run(s Streams) error {
	store, err := catalog.OpenStore(c.Models)
	if err != nil {
		return err
	}
	return catalog.List(s.Out, store)
}
