package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// layers lists what each package of this module may import of the module, by prefix; "" allows nothing. A package
// takes the longest entry that matches it. It is the table of docs/architecture.md.
var layers = map[string][]string{
	"pooled":                       {"pooled/"},
	"pooled/screens":               {"pooled/widgets", "pooled/screens", "pooled/session", "pooled/catalog"},
	"pooled/widgets":               {},
	"pooled/session":               {"pooled/session/deal", "pooled/netmesh", "pooled/compute", "pooled/catalog"},
	"pooled/session/deal":          {},
	"pooled/session/gate":          {"pooled/netmesh/proof"},
	"pooled/session/usage":         {"pooled/session", "pooled/netmesh/invite"},
	"pooled/session/headless":      {"pooled/session", "pooled/session/usage", "pooled/catalog"},
	"pooled/session/demo":          {"pooled/session", "pooled/netmesh/invite", "pooled/catalog"},
	"pooled/session/launch":        {"pooled/session", "pooled/netmesh", "pooled/compute", "pooled/catalog"},
	"pooled/session/sessiontest":   {"pooled/session", "pooled/netmesh", "pooled/compute"},
	"pooled/netmesh":               {"pooled/netmesh"},
	"pooled/compute":               {"pooled/compute", "pooled/shaders"},
	"pooled/compute/bench":         {"pooled/compute", "pooled/compute/op"},
	"pooled/compute/op":            {"pooled/compute/quant"},
	"pooled/compute/ref":           {"pooled/compute/op", "pooled/compute/quant"},
	"pooled/compute/gpu":           {"pooled/compute/op", "pooled/compute/quant", "pooled/shaders"},
	"pooled/compute/gguf":          {"pooled/compute/quant"},
	"pooled/compute/gguf/gguftest": {"pooled/compute/gguf", "pooled/compute/quant"},
	"pooled/compute/quant":         {},
	"pooled/compute/shape":         {"pooled/compute/gguf", "pooled/compute/quant"},
	"pooled/compute/token":         {},
	"pooled/catalog":               {},
	"pooled/shaders":               {},
}

// owners lists outside libraries that belong to one part of the program only.
var owners = map[string][]string{
	"github.com/rivo/tview":        {"pooled/screens", "pooled/widgets"},
	"github.com/gdamore/tcell":     {"pooled/screens", "pooled/widgets"},
	"github.com/pion/":             {"pooled/netmesh"},
	"github.com/cogentcore/webgpu": {"pooled/compute/gpu"},
	"github.com/alecthomas/kong":   {"pooled"},
	"github.com/cheggaaa/pb":       {"pooled"},
	"github.com/coder/websocket":   {"pooled/netmesh/signal"},
}

// vague are package names that say nothing.
var vague = []string{"util", "utils", "common", "helpers", "types", "models", "misc"}

type listedPackage struct {
	ImportPath string
	Imports    []string
}

// packages lists the module's packages with their direct imports, tests left out.
func packages(t *testing.T) []listedPackage {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listedPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// within reports whether path is prefix itself or below it.
func within(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, strings.TrimSuffix(prefix, "/")+"/")
}

// longest returns the longest key of layers that holds path.
func longest(path string) string {
	best := ""
	for k := range layers {
		if within(path, k) && len(k) > len(best) && (k != "pooled" || path == "pooled") {
			best = k
		}
	}
	return best
}

func TestImportRules(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range packages(t) {
		rule := longest(p.ImportPath)
		if rule == "" {
			t.Errorf("%s is in no layer: add it to the table here and in docs/architecture.md", p.ImportPath)
			continue
		}
		seen[rule] = true
		for _, v := range vague {
			if strings.HasSuffix(p.ImportPath, "/"+v) {
				t.Errorf("%s: a package named %q says nothing", p.ImportPath, v)
			}
		}
		for _, imp := range p.Imports {
			if err := allowed(p.ImportPath, rule, imp); err != "" {
				t.Errorf("%s imports %s: %s", p.ImportPath, imp, err)
			}
		}
	}
	for rule := range layers {
		if !seen[rule] {
			t.Errorf("the table names %s, which does not exist", rule)
		}
	}
}

// allowed says why pkg, under the given rule, may not import imp; empty when it may.
func allowed(pkg, rule, imp string) string {
	if imp == "pooled" || within(imp, "pooled/") {
		for _, ok := range layers[rule] {
			if within(imp, ok) {
				return ""
			}
		}
		return "not in its layer"
	}
	for lib, who := range owners {
		if !strings.HasPrefix(imp, lib) {
			continue
		}
		for _, w := range who {
			if pkg == w || w != "pooled" && within(pkg, w) {
				return ""
			}
		}
		return "only " + strings.Join(who, " and ") + " may"
	}
	return ""
}

func TestImportRulesCatchMistakes(t *testing.T) {
	for _, c := range []struct{ pkg, imp string }{
		{"pooled/netmesh", "pooled/compute"},
		{"pooled/catalog", "pooled/session"},
		{"pooled/widgets", "pooled/session"},
		{"pooled/session", "github.com/rivo/tview"},
		{"pooled/compute", "github.com/cogentcore/webgpu/wgpu"},
		{"pooled/session", "github.com/pion/webrtc/v4"},
		{"pooled/screens", "github.com/alecthomas/kong"},
	} {
		if allowed(c.pkg, longest(c.pkg), c.imp) == "" {
			t.Errorf("%s may import %s", c.pkg, c.imp)
		}
	}
}
