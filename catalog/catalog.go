// Package catalog knows which models a room can run: their names, files, sizes and hashes, what their layers and caches
// weigh, and which of them are on this computer (spec room.md 2, cli.md 4.2 and 4.3).
//
// Units. All sizes are bytes; people see them through FormatBytes, where 1 GB is 2^30 bytes. "Per position" means keys
// and values together, for one layer, averaged over all layers of the model.
//
// Names. A model is known by its key, lower case ASCII. Keys go over the wire, so they are never renamed.
//
// Files. A model's weights are one GGUF file or the parts of a split one, in order. They hold the tokenizer and the
// chat template too: the separate config.json and tokenizer.json that other programs keep beside them are not needed
// and not looked for.
//
// One tiny model, key "mini", is part of the program itself.
//
// The catalogue is read-only data; every function is safe for concurrent use.
package catalog

import (
	"slices"
	"strings"
)

// hub is where model files are published.
const hub = "https://huggingface.co"

// Kinds of models, as on the wire.
const (
	Dense  = "gguf"   // attention in every layer
	Hybrid = "qwen35" // recurrent layers, full attention in every fourth, with a draft block
)

// KV modes, as on the wire.
const (
	KVF16 = "f16"
	KVQ8  = "q8"
)

// File is one file of a model.
type File struct {
	Name   string // in the store: the last part of the URL's path
	URL    string // empty for the embedded model
	Bytes  int64
	SHA256 string // lower case hex
}

// Entry is one model.
type Entry struct {
	Key    string
	Label  string
	Note   string // what to know before picking it; may be empty
	Kind   string // Dense or Hybrid
	Layers int
	Files  []File // the weights, in order

	CtxDefault  int // positions a room opens with
	CtxMax      int // the most it may be asked for; a room opened from a terminal starts here
	CtxFallback int // what to open with when the default does not fit; 0 when there is none

	LayerBytes  int64 // weights of one layer (hybrids: the average of a group of four)
	KVPerPos    int64 // per position, in the plain mode: f16, except that rooms count f32 for the three dense Qwen3
	KVPerPosQ8  int64 // per position in mode KVQ8; 0 when the model has no such mode
	EmbedBytes  int64
	HeadBytes   int64 // 0: the embedding is the head
	DraftBytes  int64 // draft block; 0 when there is none
	ExpertBytes int64 // of LayerBytes, what experts take

	Embedded bool // in the program itself
}

// Builtin returns the catalogue: the embedded model first, the others by size.
func Builtin() []Entry {
	list := slices.Clone(builtin)
	for i := range list {
		list[i].Files = slices.Clone(list[i].Files)
	}
	return list
}

// Short is the label without its format: "Qwen3 1.7B".
func (e Entry) Short() string {
	name, _, _ := strings.Cut(e.Label, " ·")
	return name
}

// Bytes is the size of all files.
func (e Entry) Bytes() int64 {
	var n int64
	for _, f := range e.Files {
		n += f.Bytes
	}
	return n
}

// Match finds the entry that typed means (spec cli.md 4.2): letter case and surrounding blanks don't count; an exact
// key wins, else the one key that typed is a part of. The error is a *MatchError.
func Match(entries []Entry, typed string) (Entry, error) {
	name := strings.ToLower(strings.TrimSpace(typed))
	missed := &MatchError{Typed: typed}
	var hit Entry
	for _, e := range entries {
		missed.Keys = append(missed.Keys, e.Key)
		if e.Key == name {
			return e, nil
		}
		if name != "" && strings.Contains(e.Key, name) {
			missed.Hits = append(missed.Hits, e.Key)
			hit = e
		}
	}
	if len(missed.Hits) == 1 {
		return hit, nil
	}
	return Entry{}, missed
}

// from makes the file at the path of a repository on the model hub.
func from(repo, path string, bytes int64, sha256 string) File {
	name := path[strings.LastIndexByte(path, '/')+1:]
	return File{Name: name, URL: hub + "/" + repo + "/resolve/main/" + path, Bytes: bytes, SHA256: sha256}
}
