package session

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite testdata")

// events is one of each.
var events = []Event{RoomOpened{}, RoomClosed{}, RoomOnline{}, RoomDegraded{}, SignalChanged{}, PeerJoined{}, PeerLeft{},
	PeerReady{}, PeerRefused{}, LinkRTT{}, DealMade{}, LoadProgress{}, LoadFailed{}, AnswerStarted{}, AnswerText{},
	AnswerDone{}, AskRefused{}, Lap{}, Notice{}, Lagged{}}

func TestGoldenEvents(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "events.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	methods := 0
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "EventName" {
			methods++
		}
	}
	if methods != len(events) {
		t.Errorf("events.go has %d events, the list here %d", methods, len(events))
	}
	var b strings.Builder
	for _, ev := range events {
		fmt.Fprintln(&b, ev.EventName())
		writeFields(&b, "  ", reflect.TypeOf(ev))
	}
	const golden = "testdata/events.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the public events changed; if that is wanted, run with -update. Now:\n%s", b.String())
	}
}

// writeFields writes the JSON fields of a struct.
func writeFields(b *strings.Builder, indent string, t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for f := range t.Fields() {
		tag := f.Tag.Get("json")
		if tag == "-" {
			continue
		}
		fmt.Fprintf(b, "%s%s %s\n", indent, tag, shape(f.Type))
		writeFields(b, indent+"  ", f.Type)
	}
}

// shape is a type as JSON has it.
func shape(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return shape(t.Elem())
	case reflect.Slice:
		return "list of " + shape(t.Elem())
	case reflect.Map:
		return "map of " + shape(t.Elem())
	case reflect.Struct:
		return "object"
	case reflect.Int, reflect.Int64, reflect.Float64:
		return "number"
	}
	return t.Kind().String()
}

func TestEnvelopesAreFlatJSON(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.FixedZone("x", 3600))
	for _, c := range []struct {
		ev   Event
		want string
	}{
		{RoomOnline{Epoch: 2}, `{"seq":7,"at":"2026-01-02T02:04:05.678Z","ev":"room.online","epoch":2}`},
		{AnswerText{ID: 1, Text: "a\"b"}, `{"seq":7,"at":"2026-01-02T02:04:05.678Z","ev":"answer.text","id":1,"text":"a\"b"}`},
	} {
		got, err := json.Marshal(Envelope{Seq: 7, At: at, Event: c.ev})
		if err != nil || string(got) != c.want {
			t.Errorf("got %s (%v), want %s", got, err, c.want)
		}
	}
}
