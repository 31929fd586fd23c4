package invite

import (
	"errors"
	"strings"
	"testing"
)

const testKey = "AAECAwQFBgcICQoLDA0ODw"

func TestParse(t *testing.T) {
	const long = "wss://a.example:443,b.example"
	tests := []struct {
		name string
		in   string
		want Invite
		err  error
	}{
		// Where the original slips (invites.json), our answer, spelled out.
		{"not the command line's 4TKG9O", "https://pooled.run/r/4TKG9O", Invite{}, ErrNotCode},
		{"not the command line's ROOM", "https://pooled.run/room#ABCD", Invite{Code: "ABCD"}, nil},
		{"not the command line's ROOM for #debug", "https://pooled.run/room#debug", Invite{}, ErrNoCode},
		{"not the page's ABCDE", "https://pooled.run/r/ABCDE", Invite{}, ErrNotCode},
		{"a dash in the path, which the page refuses", "https://pooled.run/r/4TK-G9P", Invite{Code: "4TKG9P"}, nil},
		{"a space, which the command line refuses", "4TK G9P", Invite{Code: "4TKG9P"}, nil},
		{"no https://, as narrow screens show the link", "pooled.run/r/4TKG9P#k=" + testKey, Invite{Code: "4TKG9P", Key: testKey}, nil},

		{"typed code", " 4tk-g9p ", Invite{Code: "4TKG9P"}, nil},
		{"quoted link", `"https://pooled.run/r/4TKG9P#k=` + testKey + `"`, Invite{Code: "4TKG9P", Key: testKey}, nil},
		{"signal", "https://pooled.run/r/4TKG9P?signal=wss%3A%2F%2Fa.example%3A443%2Cb.example&dev=0", Invite{Code: "4TKG9P", Signal: long}, nil},
		{"path before query", "https://pooled.run/r/ABCD?code=WXYZ", Invite{Code: "ABCD"}, nil},
		{"query before fragment", "https://pooled.run/?code=ABCD#WXYZ", Invite{Code: "ABCD"}, nil},
		{"fragment before the last part of the path", "https://pooled.run/page#WXYZ", Invite{Code: "WXYZ"}, nil},
		{"last part of the path", "http://localhost:8080/rooms/4TKG9P", Invite{Code: "4TKG9P"}, nil},
		{"code and key in the fragment", "https://pooled.run/#ABCD&k=" + testKey, Invite{Code: "ABCD", Key: testKey}, nil},
		{"bad code in the query is no reason to look on", "https://pooled.run/?code=ABCDE#WXYZ", Invite{}, ErrNotCode},
		{"host and port without a scheme", "192.168.1.20:8080/r/ABCD", Invite{Code: "ABCD"}, nil},

		{"bad code after /room/ neither", "https://pooled.run/room/ABCDE#WXYZ", Invite{}, ErrNotCode},
		{"code after /room/, then more", "https://pooled.run/room/ABCD/page", Invite{Code: "ABCD"}, nil},

		{"empty", "", Invite{}, ErrEmpty},
		{"quotes around nothing", `""`, Invite{}, ErrEmpty},
		{"only dashes", "---", Invite{}, ErrEmpty},
		{"wrong character", "XYZ!", Invite{}, ErrNotCode},
		{"two codes with a slash", "ABCD/WXYZ", Invite{}, ErrNotCode},
		{"other scheme", "file:///r/ABCD", Invite{}, ErrNotLink},
		{"no host", "https:///r/ABCD", Invite{}, ErrNotLink},
		{"broken escape", "https://pooled.run/r/%zz", Invite{}, ErrNotLink},
		{"no code", "https://pooled.run/", Invite{}, ErrNoCode},
		{"very long", "https://pooled.run/r/ABCD?x=" + strings.Repeat("x", 5000), Invite{}, ErrNotLink},
		{"very long signal", "https://pooled.run/r/ABCD?signal=" + strings.Repeat("x", 501), Invite{}, ErrNotLink},
		{"signal with a control character", "https://pooled.run/r/ABCD?signal=a%1b", Invite{}, ErrNotLink},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse(tt.in)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("got %+v, %v, want %+v, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct {
		name, in string
		with     []string
	}{
		{"what was typed and what a code looks like", "XYZ!", []string{`"XYZ!"`, "'!'", "4TK-G9P"}},
		{"wrong length", "ABCDE", []string{`"ABCDE"`, "6 characters", "4TK-G9P"}},
		{"letter that no code has", "4TKG9O", []string{"'O'"}},
		{"cut to 60", strings.Repeat("é", 200), []string{`"` + strings.Repeat("é", 59) + `…"`}},
		{"exactly 60", strings.Repeat("é", 60), []string{`"` + strings.Repeat("é", 60) + `"`}},
		{"terminal escapes are quoted", "\x1b[31m", []string{`\x1b`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse(tt.in)
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range tt.with {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("got %q, want it to contain %q", err, w)
				}
			}
		})
	}
}

func TestErrorsNeverShowTheKey(t *testing.T) {
	for _, in := range []string{
		"https://pooled.run/r/ABCDE#k=" + testKey,
		"https://pooled.run/#k=" + testKey,
		"https://x.y/%zz#k=" + testKey,
		"ftp://x.y/r/ABCD#k=" + testKey,
		"#k=" + testKey,
		"k=" + testKey,
		"pooled.run/r/ABCDE%23k=" + testKey,
	} {
		_, err := Parse(in)
		if err == nil {
			t.Errorf("%s: no error", in)
		} else if strings.Contains(err.Error(), testKey[:6]) {
			t.Errorf("%s: the error shows the key: %v", in, err)
		}
	}
}

func TestLinkRoundTrip(t *testing.T) {
	for range 50 {
		want := Invite{Code: NewCode(), Key: NewKey(), Signal: "ws://127.0.0.1:9000/x, cloud"}
		if c, err := ParseCode(want.Code.Shown()); err != nil || c != want.Code || len(c) != 6 {
			t.Fatalf("code %s: got %s, %v", want.Code, c, err)
		}
		if got, err := Parse(want.Link()); err != nil || got != want {
			t.Fatalf("%s: got %+v, %v, want %+v", want.Link(), got, err, want)
		}
	}
}

func TestNewDiffers(t *testing.T) {
	if a, b := NewCode(), NewCode(); a == b {
		t.Errorf("two codes alike: %s", a)
	}
	if a, b := NewKey(), NewKey(); a == b {
		t.Error("two keys alike")
	}
}

func TestValidKey(t *testing.T) {
	tests := []struct {
		name, key string
		want      bool
	}{
		{"22", testKey, true}, {"64", strings.Repeat("-", 64), true}, {"21", testKey[1:], false},
		{"65", strings.Repeat("a", 65), false}, {"padding", testKey[2:] + "==", false}, {"space", testKey + " ", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ValidKey(tt.key); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestCleanName(t *testing.T) {
	tests := []struct{ name, in, fallback, want string }{
		{"cut between characters: a pair of units is kept whole", strings.Repeat("x", 39) + "😀", "id", strings.Repeat("x", 39)},
		{"40 units of pairs", strings.Repeat("😀", 30), "id", strings.Repeat("😀", 20)},
		{"not UTF-8", "a\xff\xfeb", "id", "a\uFFFDb"},
		{"trimmed, then cut", " " + strings.Repeat("x", 39) + " y", "id", strings.Repeat("x", 39) + " "},
		{"odd spaces", "\u3000\ufeffa\u2003", "id", "a"},
		{"nothing at all", "\x7f", "", ""},
		{"hostile fallback", "", "<b>\x1b[31mred", "b[31mred"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := CleanName(tt.in, tt.fallback); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestDeviceName(t *testing.T) {
	tests := []struct{ hostname, letters string }{
		{"", "ddg"}, {"a", "wfn"}, {"x", "zvz"}, {"spark", "jxe"}, {"spark-host", "zsg"}, {"macbook.local", "ptc"}, {"büro", "pwh"},
		{"desk", "wzc"}, {"ubuntu", "wap"}, {"localhost", "wcx"}, {"mac-studio", "vcr"}, {"alice-laptop", "mcc"},
		{"DESKTOP-AB12CD", "kws"}, {"host-😀", "jxr"},
	}
	for _, tt := range tests {
		for goos, prefix := range map[string]string{"darwin": "mac-", "linux": "linux-", "windows": "pc-", "freebsd": "node-"} {
			if got := DeviceName(tt.hostname, goos); got != prefix+tt.letters {
				t.Errorf("%q on %s: got %s, want %s", tt.hostname, goos, got, prefix+tt.letters)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"4tk-g9p", "https://pooled.run/r/4TKG9P?signal=a%2Cb#k=" + testKey, "pooled.run/room#ABCD", `"ABCD"`, "://", "a.b/%23"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, err := Parse(in)
		if err != nil {
			if got != (Invite{}) {
				t.Fatalf("%q: an error and %+v", in, got)
			}
			if len(err.Error()) > 2000 {
				t.Fatalf("%q: an error of %d bytes", in, len(err.Error()))
			}
			return
		}
		if c, err := ParseCode(string(got.Code)); err != nil || c != got.Code {
			t.Fatalf("%q: code %q", in, got.Code)
		}
		if got.Key != "" && !ValidKey(got.Key) {
			t.Fatalf("%q: key %q", in, got.Key)
		}
		if again, err := Parse(got.Link()); err != nil || again != got {
			t.Fatalf("%q: link %s gives %+v, %v, want %+v", in, got.Link(), again, err, got)
		}
	})
}

func TestNamesHaveNoTerminalControls(t *testing.T) {
	if got := CleanName("a\x1b[2J\u009b31m\u0085b\x7f", ""); got != "a[2J31mb" {
		t.Errorf("got %q", got)
	}
}
