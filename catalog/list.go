package catalog

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// List prints the catalogue (spec cli.md 4.5): the models on this computer by size, those that are not, and the folder.
func List(w io.Writer, s *Store) error {
	var here, missing []string
	entries := Builtin()
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Bytes(), b.Bytes()) })
	downloads, example := 0, ""
	for _, e := range entries {
		st := s.Status(e)
		var notes []string
		switch {
		case e.Embedded:
			notes = append(notes, "part of this program")
		case st.Err != nil:
			notes = append(notes, st.Err.Error())
		case !st.Present && st.Bytes > 0:
			notes = append(notes, FormatBytes(st.Bytes)+" of it here")
		}
		if !st.Present {
			notes = append(notes, fileNames(e))
		}
		if e.Note != "" {
			notes = append(notes, e.Note)
		}
		line := row(e, strings.Join(notes, "; "))
		if !st.Present {
			if example == "" {
				example = filepath.Join(e.Key, e.Files[0].Name)
			}
			missing = append(missing, line)
			continue
		}
		here = append(here, line)
		if !e.Embedded {
			downloads++
		}
	}
	var out strings.Builder
	section := func(title string, rows []string) {
		if len(rows) > 0 {
			fmt.Fprintf(&out, "%s\n%s\n\n", title, strings.Join(rows, "\n"))
		}
	}
	section("on this computer", here)
	section("not on this computer", missing)
	if downloads == 0 {
		fmt.Fprintf(&out, "no downloaded model in %s\n", tilde(s.Dir))
	} else {
		fmt.Fprintf(&out, "models are kept in %s\n", tilde(s.Dir))
	}
	if example != "" {
		fmt.Fprintf(&out, "a model's file goes into the folder of its name there, like %s\n", example)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// Keys prints one model a line, key and label: the answer to `host --model list`.
func Keys(w io.Writer) error {
	var out strings.Builder
	for _, e := range Builtin() {
		fmt.Fprintf(&out, "%-18s %s\n", e.Key, e.Label)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func row(e Entry, note string) string {
	line := fmt.Sprintf("  %-18s %-24s %8s", e.Key, e.Label, FormatBytes(e.Bytes()))
	if note != "" {
		line += "  " + note
	}
	return line
}

// fileNames names the file of a model as the store looks for it; of several, the first.
func fileNames(e Entry) string {
	if more := len(e.Files) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", e.Files[0].Name, more)
	}
	return e.Files[0].Name
}

// tilde shortens the home folder in a path.
func tilde(path string) string {
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return path
	}
	rel, err := filepath.Rel(home, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return filepath.Join("~", rel)
}
