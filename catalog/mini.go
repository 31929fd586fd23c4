package catalog

import (
	_ "embed"
	"strings"
)

// miniModel is the embedded model's file. Where it comes from is told in mini/README.md.
//
//go:embed mini/pooled-mini.gguf
var miniModel string

func miniBlob(f File) Blob {
	return Blob{Name: f.Name, R: strings.NewReader(miniModel), Size: int64(len(miniModel))}
}
