// Package usage is what the command line says beside its work: the nearest command or option to a mistyped one, numbers
// as people read them, and the status line (spec cli.md 1.3, 3.4, 6.4). It is pure: values in, text out, no clock, no
// output. Lengths of words are in characters, widths of lines in terminal cells.
package usage

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Lengths to which a message cuts what was typed, in characters.
const (
	WordLen = 40 // a command or an option
	ArgLen  = 60 // an argument
)

// Command is a command of the grammar: its name and its other names.
type Command struct {
	Name    string
	Aliases []string
}

// synonyms are words people try, and the command they mean.
var synonyms = map[string]string{
	"models": "list", "model": "list", "show": "list",
	"get": "pull", "fetch": "pull", "install": "pull",
	"start": "host", "open": "host", "create": "host", "new": "host", "run": "host",
	"server": "serve", "api": "serve",
	"connect": "join", "lend": "join", "enter": "join",
	"talk": "chat", "ask": "chat", "prompt": "chat",
	"uninstall": "rm", "del": "rm",
	"version": "--version",
}

// SuggestCommand returns the command that an unknown word probably stands for, empty for none: by a table of synonyms,
// as far as the command is there, then the nearest name or alias, then the one command that begins with the word. A
// command may be an option, like --version.
func SuggestCommand(word string, commands []Command) string {
	word = strings.ToLower(word)
	if to := synonyms[word]; to != "" && slices.ContainsFunc(commands, func(c Command) bool { return c.Name == to }) {
		return to
	}
	var names []string
	for _, c := range commands {
		names = append(append(names, c.Name), c.Aliases...)
	}
	if s := nearest(word, names); s != "" {
		return s
	}
	return byPrefix(word, commands)
}

// byPrefix is the only command that word begins; if none, the only alias.
func byPrefix(word string, commands []Command) string {
	if utf8.RuneCountInString(word) < 2 {
		return ""
	}
	var byName, byAlias []string
	for _, c := range commands {
		if strings.HasPrefix(c.Name, word) {
			byName = append(byName, c.Name)
		} else if i := slices.IndexFunc(c.Aliases, func(a string) bool { return strings.HasPrefix(a, word) }); i >= 0 {
			byAlias = append(byAlias, c.Aliases[i])
		}
	}
	switch {
	case len(byName) == 1:
		return byName[0]
	case len(byName) == 0 && len(byAlias) == 1:
		return byAlias[0]
	}
	return ""
}

// SuggestOption returns the option that an unknown one probably stands for, with its dashes, empty for none. options
// are the names of the command's long options without dashes; of typed, dashes and a value behind = are ignored.
func SuggestOption(typed string, options []string) string {
	bare := bareOption(typed)
	if utf8.RuneCountInString(bare) < 2 {
		return ""
	}
	if s := nearest(bare, options); s != "" {
		return "--" + s
	}
	return ""
}

func bareOption(typed string) string {
	bare, _, _ := strings.Cut(strings.TrimLeft(typed, "-"), "=")
	return strings.ToLower(bare)
}

// UnknownCommand is the two lines about a word that is no command. prog is the program's name.
func UnknownCommand(prog, word string, commands []Command) [2]string {
	first := fmt.Sprintf("%s: unknown command %q", prog, Cut(word, WordLen))
	if s := SuggestCommand(word, commands); s != "" {
		first += fmt.Sprintf(": did you mean %s %s?", prog, s)
	}
	return [2]string{first, fmt.Sprintf("%s --help lists the commands", prog)}
}

// UnknownOption is the two lines about an option the command does not have. command is empty for the program itself.
func UnknownOption(prog, command, typed string, options []string) [2]string {
	who := strings.TrimSpace(prog + " " + command)
	typed, _, _ = strings.Cut(typed, "=")
	first := fmt.Sprintf("%s: unknown option %q", who, Cut(typed, WordLen))
	if s := SuggestOption(typed, options); s != "" {
		first += fmt.Sprintf(": did you mean %s?", s)
	}
	if command == "" {
		return [2]string{first, who + " --help lists the commands"}
	}
	return [2]string{first, who + " --help lists its options"}
}

// Cut shortens s to at most n characters, the last of them … if it was longer.
func Cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:max(0, n-1)]) + "…"
}

// nearest is the name with the smallest distance to word, the first of equals, if it is near enough: 1 when the longer
// of the two has four letters or fewer, else 2.
func nearest(word string, names []string) string {
	best, least := "", 3
	w := []rune(word)
	if len(w) > WordLen {
		return ""
	}
	for _, name := range names {
		n := []rune(name)
		most := 2
		if max(len(w), len(n)) <= 4 {
			most = 1
		}
		if d := distance(w, n); d <= most && d < least {
			best, least = name, d
		}
	}
	return best
}

// distance is the optimal string alignment distance: insertions, deletions, replacements and swaps of neighbours, none
// within another.
func distance(a, b []rune) int {
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range a {
		cur[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			cur[j+1] = min(prev[j]+cost, prev[j+1]+1, cur[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				cur[j+1] = min(cur[j+1], before[j-1]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
