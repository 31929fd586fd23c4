package shaders

import (
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sample gives every constant of a kernel a value.
func sample(k Kernel) Consts {
	c := Consts{}
	for i, name := range k.Consts {
		c[name] = uint32(32 * (i + 1))
	}
	return c
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSourcePutsConstantsInFront(t *testing.T) {
	got, err := Source("silu_mul", Consts{"WIDTH": 96, "WG": 64})
	if err != nil {
		t.Fatal(err)
	}
	if want := "const WIDTH: u32 = 96u;\nconst WG: u32 = 64u;\n"; !strings.HasPrefix(got, want) {
		t.Errorf("source starts with %q, want %q", got[:60], want)
	}
	for _, part := range []string{"var<uniform> frame", "@compute"} {
		if strings.Count(got, part) != 1 {
			t.Errorf("%d times %q, want once", strings.Count(got, part), part)
		}
	}
}

func TestSourceRefuses(t *testing.T) {
	cases := map[string]struct {
		name   string
		consts Consts
		want   string
	}{
		"unknown kernel":   {"no_such", nil, `no kernel "no_such"`},
		"missing constant": {"silu_mul", Consts{"WIDTH": 1}, "constant WG is missing"},
		"unknown constant": {"silu_mul", Consts{"WIDTH": 1, "WG": 1, "DEPTH": 1}, "no constant DEPTH"},
	}
	for name, c := range cases {
		if _, err := Source(c.name, c.consts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// Every file is a kernel or a helper of one, and every kernel has its file.
func TestTableAndFilesAgree(t *testing.T) {
	known := map[string]bool{"frame.wgsl": true}
	for _, k := range Kernels() {
		known[k.File+".wgsl"] = true
		for _, h := range k.Helpers {
			known[h+".wgsl"] = true
		}
	}
	on, err := fs.Glob(files, "*.wgsl")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range on {
		if !known[f] {
			t.Errorf("%s belongs to no kernel", f)
		}
		delete(known, f)
	}
	for f := range known {
		t.Errorf("%s is in the table but not embedded", f)
	}
	if !slices.IsSortedFunc(Kernels(), func(a, b Kernel) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the table is not ordered by name")
	}
}

var (
	word     = regexp.MustCompile(`\b(?:[A-Z][A-Z_0-9]+|F)\b`)
	own      = regexp.MustCompile(`const ([A-Z][A-Z_0-9]*)`)
	comment  = regexp.MustCompile(`//[^\n]*`)
	binding  = regexp.MustCompile(`@group\(1\) @binding\((\d+)\) var<(storage, read|storage, read_write|uniform)>`)
	fileHead = regexp.MustCompile(`(?s)^// .*?\n//\n//`)
)

// Every constant that a kernel's table entry lists is used by its code, and every constant the code uses is listed or its own.
func TestConstantsAreUsed(t *testing.T) {
	for _, k := range Kernels() {
		code := read(t, k.File+".wgsl")
		for _, h := range k.Helpers {
			code += read(t, h+".wgsl")
		}
		code = comment.ReplaceAllString(code, "")
		have := slices.Clone(k.Consts)
		for _, m := range own.FindAllStringSubmatch(code, -1) {
			have = append(have, m[1])
		}
		used := word.FindAllString(own.ReplaceAllString(code, ""), -1)
		for _, c := range have {
			if !slices.Contains(used, c) && (slices.Contains(k.Consts, c) || k.Weights == 0) { // a decode file's may serve other kernels
				t.Errorf("%s: constant %s is not used", k.Name, c)
			}
		}
		for _, u := range used {
			if !slices.Contains(have, u) {
				t.Errorf("%s: constant %s is not in the table", k.Name, u)
			}
		}
	}
}

// The binding signature of the table is what the file declares, in order.
func TestBindingsAgree(t *testing.T) {
	kinds := map[string]string{"storage, read": "r", "storage, read_write": "w", "uniform": "u"}
	for _, k := range Kernels() {
		var got string
		weights, own := 0, ""
		for _, h := range k.Helpers {
			if strings.HasPrefix(h, "x_") || strings.HasPrefix(h, "store_") || strings.HasPrefix(h, "kv_io_") {
				own += read(t, h+".wgsl")
				continue
			}
			for _, m := range binding.FindAllStringSubmatch(read(t, h+".wgsl"), -1) {
				if want := strconv.Itoa(WeightBinding + weights); m[1] != want || kinds[m[2]] != "r" {
					t.Errorf("%s: %s declares binding %s (%s), want %s, only read", k.Name, h, m[1], m[2], want)
				}
				weights++
			}
		}
		if weights != k.Weights {
			t.Errorf("%s: helpers declare %d arrays, table says %d", k.Name, weights, k.Weights)
		}
		if n := weights + strings.Count(k.Bindings, "r") + strings.Count(k.Bindings, "w"); n > 8 || weights > 0 && len(k.Bindings) > WeightBinding {
			t.Errorf("%s: %d storage bindings, WebGPU's default limit is 8", k.Name, n)
		}
		all := binding.FindAllStringSubmatch(own+read(t, k.File+".wgsl"), -1)
		number := func(m []string) int { n, _ := strconv.Atoi(m[1]); return n }
		slices.SortFunc(all, func(a, b []string) int { return number(a) - number(b) })
		for i, m := range all {
			if number(m) != i {
				t.Errorf("%s: binding %s is declared as number %d", k.Name, m[1], i)
			}
			got += kinds[m[2]]
		}
		if got != k.Bindings {
			t.Errorf("%s: file declares %q, table says %q", k.Name, got, k.Bindings)
		}
	}
}

// A header says the formula, then shapes and what a workgroup does; the constants are named in it.
func TestHeaders(t *testing.T) {
	for _, k := range Kernels() {
		text := read(t, k.File+".wgsl")
		head, _, _ := strings.Cut(text, "\nstruct")
		head, _, _ = strings.Cut(head, "\n@group")
		if !fileHead.MatchString(text) {
			t.Errorf("%s: no header comment with a formula line", k.Name)
		}
		if !strings.Contains(head, "workgroup") || !strings.Contains(head, "Constants:") {
			t.Errorf("%s: the header says nothing about workgroups or constants", k.Name)
		}
		for _, c := range k.Consts {
			if !strings.Contains(head, c) {
				t.Errorf("%s: the header does not name constant %s", k.Name, c)
			}
		}
		if strings.Count(text, "@compute") != 1 || !strings.Contains(text, "\nfn main(") {
			t.Errorf("%s: not exactly one entry point main", k.Name)
		}
	}
}

// The compiler of the binding refuses these (spec engine.md 0.1).
func TestDialect(t *testing.T) {
	refused := []string{"enable ", "override ", "subgroup", "f16;", "unpack4xU8", "dot4I8Packed", "const_assert", "quantizeToF16"}
	for _, k := range Kernels() {
		source, err := Source(k.Name, sample(k))
		if err != nil {
			t.Fatal(err)
		}
		code := comment.ReplaceAllString(source, "")
		for _, r := range refused {
			if strings.Contains(code, r) {
				t.Errorf("%s uses %q", k.Name, r)
			}
		}
	}
}
