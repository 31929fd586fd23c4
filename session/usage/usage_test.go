package usage

import (
	"strings"
	"testing"
)

// full is the grammar of the sheet; the tests of missing commands use part of it.
var full = []Command{
	{"pull", []string{"download"}}, {"list", []string{"ls"}}, {"rm", []string{"remove", "delete"}}, {"host", nil}, {"join", nil},
	{"chat", nil}, {"serve", nil}, {"help", nil}, {"--version", nil},
}

var few = []Command{{"host", nil}, {"join", nil}, {"chat", nil}, {"list", []string{"ls"}}, {"signal", nil}, {"demo", nil}, {"version", nil}}

func TestSuggestCommand(t *testing.T) {
	tests := []struct {
		name, word string
		commands   []Command
		want       string
	}{
		{"synonym", "models", full, "list"},
		{"synonym in capitals", "FETCH", full, "pull"},
		{"synonym before distance: open is not join", "open", full, "host"},
		{"synonym for an option", "version", full, "--version"},
		{"synonym of a command that is not there", "api", few, ""},
		{"synonym of a missing command, near another", "lend", []Command{{"send", nil}}, "send"},
		{"swapped neighbours cost 1", "hsot", full, "host"},
		{"one letter off in four", "jion", full, "join"},
		{"two letters off in four are too many", "hots", []Command{{"chat", nil}}, ""},
		{"two letters off in five", "sreev", full, "serve"},
		{"three are too many", "sxxxe", full, ""},
		{"alias", "downlaod", full, "download"},
		{"alias of two letters", "lst", full, "list"},
		{"short word", "l", full, "ls"},
		{"prefix", "sig", few, "signal"},
		{"prefix of an alias", "downl", full, "download"},
		{"prefix of two commands", "ab", []Command{{"abcdef", nil}, {"abxyzw", nil}}, ""},
		{"prefix of a command and of an alias", "ab", []Command{{"xyzxyz", []string{"abcdef"}}, {"abxyzw", nil}}, "abxyzw"},
		{"one letter is no prefix", "s", []Command{{"signal", nil}}, ""},
		{"nothing like it", "frobnicate", full, ""},
		{"empty", "", few, ""},
		{"endless", strings.Repeat("x", 1<<20), full, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := SuggestCommand(tt.word, tt.commands); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Every word of the sheet's table leads where the sheet says.
func TestSynonyms(t *testing.T) {
	table := map[string]string{
		"list": "models model show", "pull": "get fetch install", "host": "start open create new run", "serve": "server api",
		"join": "connect lend enter", "chat": "talk ask prompt", "rm": "uninstall del", "--version": "version",
	}
	words := 0
	for want, from := range table {
		for _, w := range strings.Fields(from) {
			words++
			if got := SuggestCommand(w, full); got != want {
				t.Errorf("%s: got %q, want %q", w, got, want)
			}
		}
	}
	if words != len(synonyms) {
		t.Errorf("the sheet has %d synonyms, the program %d", words, len(synonyms))
	}
}

func TestSuggestOption(t *testing.T) {
	options := []string{"gb", "name", "signal", "no-pull", "json-log", "help"}
	tests := []struct{ name, typed, want string }{
		{"swapped", "--singal", "--signal"},
		{"letter too many in three", "--gbb", "--gb"},
		{"with a value", "--nmae=otter", "--name"},
		{"one dash", "-naem", "--name"},
		{"capitals", "--JSON-LOGS", "--json-log"},
		{"nothing near", "--temperature", ""},
		{"one letter", "-g", ""},
		{"only dashes", "--", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := SuggestOption(tt.typed, options); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestUnknownLines(t *testing.T) {
	long := strings.Repeat("x", 100)
	tests := []struct {
		name string
		got  [2]string
		want [2]string
	}{
		{"command, near", UnknownCommand("pooled", "hots", full), [2]string{
			`pooled: unknown command "hots": did you mean pooled host?`, "pooled --help lists the commands"}},
		{"command, none near, cut to 40", UnknownCommand("pooled", long, full), [2]string{
			`pooled: unknown command "` + long[:39] + `…"`, "pooled --help lists the commands"}},
		{"escapes are not passed on", UnknownCommand("pooled", "\x1b[2J", full), [2]string{
			`pooled: unknown command "\x1b[2J"`, "pooled --help lists the commands"}},
		{"option, near", UnknownOption("pooled", "join", "--nam", []string{"name"}), [2]string{
			`pooled join: unknown option "--nam": did you mean --name?`, "pooled join --help lists its options"}},
		{"option of the program, its value not shown", UnknownOption("pooled", "", "--key=secret", []string{"version"}), [2]string{
			`pooled: unknown option "--key"`, "pooled --help lists the commands"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.got != tt.want {
				t.Errorf("got  %q\nwant %q", tt.got, tt.want)
			}
		})
	}
}

func TestCut(t *testing.T) {
	tests := []struct {
		name, in string
		n        int
		want     string
	}{
		{"shorter", "abc", 4, "abc"}, {"as long", "abcd", 4, "abcd"}, {"longer", "abcde", 4, "abc…"}, {"characters, not bytes", "ééééé", 5, "ééééé"},
		{"none", "abc", 0, "…"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Cut(tt.in, tt.n); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestDistance(t *testing.T) {
	tests := []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"ca", "abc", 3}, {"kitten", "sitting", 3},
		{"é", "e", 1},
	}
	for _, tt := range tests {
		if got := distance([]rune(tt.a), []rune(tt.b)); got != tt.want {
			t.Errorf("%q to %q: got %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
